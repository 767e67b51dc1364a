// The tests' main program where the library has no backend: everything runs on the interpreter.
#include <cstdio>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/device.h>
#include <anneal/error.h>

bool core_tests::check(bool holds, const char* what, const char* file, int line,
                       const std::string& message) {
  ++all().checks;
  if (holds) return true;
  ++all().failed;
  std::printf("%s:%d: %s does not hold\n  %s\n", file, line, what, message.c_str());
  return false;
}

TEST_CASE("core: the interpreter is the only device, and says so") {
  CHECK(anneal::devices() == std::vector<std::string>{"interpreter"});
  CHECK(anneal::device_name() == "interpreter");
  CHECK_THROWS_AS(anneal::set_device("cpu"), anneal::UserError);
  CHECK(anneal::threads() == 1);
  anneal::set_threads(1);
  CHECK_THROWS_AS(anneal::set_threads(2), anneal::UserError);
}

int main() {
  core_tests::Run& run = core_tests::all();
  for (const core_tests::Test& test : run.tests) {
    const int before = run.failed;
    try {
      test.run();
    } catch (const core_tests::Stop&) {
    } catch (const std::exception& error) {
      ++run.failed;
      std::printf("it threw: %s\n", error.what());
    }
    std::printf("%s: %s\n", test.name, run.failed == before ? "passed" : "FAILED");
    std::fflush(stdout);
  }
  std::printf("test cases: %zu, checks: %d, failed: %d\n", run.tests.size(), run.checks,
              run.failed);
  return run.failed == 0 && !run.tests.empty() ? 0 : 1;
}
