// The part of doctest that the core's tests use, for platforms on which doctest itself does not
// build: it wants files, signals, and takes WASI for a platform without exceptions.
#pragma once

#include <exception>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace core_tests {

struct Test {
  const char* name;
  void (*run)();
};

struct Run {
  std::vector<Test> tests;
  int checks = 0, failed = 0;
};
inline Run& all() {
  static Run run;
  return run;
}

struct Register {
  Register(const char* name, void (*run)()) { all().tests.push_back({name, run}); }
};

// A REQUIRE failed: the test cannot go on.
struct Stop {};

bool check(bool holds, const char* what, const char* file, int line, const std::string& message);
inline void require(bool holds) {
  if (!holds) throw Stop();
}

template <typename Thrown>
bool throws(const std::function<void()>& call) {
  try {
    call();
  } catch (const Thrown&) {
    return true;
  }
  return false;
}

}  // namespace core_tests

#define CORE_TESTS_JOINED(a, b) a##b
#define CORE_TESTS_NAME(a, b) CORE_TESTS_JOINED(a, b)
#define CORE_TESTS_CASE(function, name)                                                \
  static void function();                                                              \
  static const core_tests::Register CORE_TESTS_JOINED(function, _row)(name, function); \
  static void function()
#define CORE_TESTS_CHECK(condition, text, message)                                   \
  core_tests::check(static_cast<bool>(condition), text, __FILE__, __LINE__, [&] {    \
    std::ostringstream core_tests_stream;                                            \
    core_tests_stream << message; /* NOLINT(bugprone-macro-parentheses): "a << b" */ \
    return std::move(core_tests_stream).str();                                       \
  }())

#define TEST_CASE(name) CORE_TESTS_CASE(CORE_TESTS_NAME(core_test_, __LINE__), name)
#define CHECK(...) CORE_TESTS_CHECK((__VA_ARGS__), #__VA_ARGS__, "")
#define CHECK_MESSAGE(condition, ...) CORE_TESTS_CHECK(condition, #condition, __VA_ARGS__)
#define FAIL_CHECK(...) CORE_TESTS_CHECK(false, "failed", __VA_ARGS__)
#define REQUIRE(...) core_tests::require(CHECK(__VA_ARGS__))
#define REQUIRE_MESSAGE(condition, ...) core_tests::require(CHECK_MESSAGE(condition, __VA_ARGS__))
#define CHECK_THROWS_AS(expression, type) \
  CHECK(core_tests::throws<type>([&] { static_cast<void>(expression); }))
