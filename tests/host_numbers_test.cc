// Numbers of the host beside tensors: comparisons are exact, what does not fit a dtype is an error,
// and 64-bit integers keep every digit.
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/anneal.h>

#include "error_text.h"
#include "ir/dtype.h"

using namespace anneal;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

bool holds(const Tensor& condition) {
  REQUIRE(condition.dtype() == DType::Bool);
  return condition.item<bool>();
}

// All six comparisons, with the number on either side. `order` is -1, 0 or 1 as the tensor's value
// is less, equal or greater, and 2 where neither is true.
template <typename T>
void check_order(const Tensor& x, T number, int order) {
  CAPTURE(x.item<int64_t>());
  CAPTURE(number);
  CHECK(holds(x < number) == (order == -1));
  CHECK(holds(x <= number) == (order == -1 || order == 0));
  CHECK(holds(x > number) == (order == 1));
  CHECK(holds(x >= number) == (order == 1 || order == 0));
  CHECK(holds(x == number) == (order == 0));
  CHECK(holds(x != number) == (order != 0));
  CHECK(holds(number < x) == (order == 1));
  CHECK(holds(number <= x) == (order == 1 || order == 0));
  CHECK(holds(number > x) == (order == -1));
  CHECK(holds(number >= x) == (order == -1 || order == 0));
  CHECK(holds(number == x) == (order == 0));
  CHECK(holds(number != x) == (order != 0));
}

}  // namespace

TEST_CASE("host numbers: comparisons of integers are exact") {
  const Tensor ten = tensor<uint8_t>({10});
  check_order(ten, -1, 1);
  check_order(ten, 266, -1);
  check_order(ten, 10, 0);
  check_order(ten, 10.0, 0);
  check_order(ten, 9.5, 1);
  check_order(ten, 10.5, -1);
  check_order(ten, 1e300, -1);
  check_order(ten, -kInf, 1);
  check_order(ten, kInf, -1);
  check_order(ten, kNan, 2);
  check_order(ten, kMost, -1);
  check_order(ten, std::numeric_limits<uint64_t>::max(), -1);

  const Tensor large = tensor<int32_t>({16777217});  // no f32
  check_order(large, 16777216.5, 1);
  check_order(large, 16777217.5, -1);
  const Tensor most = tensor<int64_t>({kMost});
  check_order(most, kMost, 0);
  check_order(most, kMost - 1, 1);
  check_order(most, 9223372036854775808.0, -1);
  check_order(most, uint64_t{1} << 63, -1);
  check_order(tensor<int64_t>({kLeast}), -9223372036854775808.0, 0);
  const Tensor top = tensor<uint64_t>({std::numeric_limits<uint64_t>::max()});
  check_order(top, -1, 1);
  check_order(top, std::numeric_limits<uint64_t>::max(), 0);
  check_order(top, std::numeric_limits<uint64_t>::max() - 1, 1);
  check_order(top, 18446744073709551616.0, -1);
  check_order(tensor<int8_t>({-128}), -128.5, 1);
  check_order(tensor<int8_t>({-128}), -1000, 1);

  const Tensor truth = tensor({true});
  CHECK(holds(truth == 1));
  CHECK_FALSE(holds(truth == 2));
  CHECK(holds(truth < 1.5));
  CHECK(to_text((tensor<uint8_t>({1, 2}) < 300).shape()) == "[2]");
}

TEST_CASE("host numbers: what does not fit is an error that says so") {
  const Tensor bytes = tensor<uint8_t>({10, 20});
  const std::string too_large = "300 does not fit u8, which goes from 0 to 255";
  const std::vector<std::pair<std::string, std::function<Tensor()>>> rows{
      {"full: " + too_large, [] { return full({1}, 300, DType::U8); }},
      {"full_like: " + too_large, [&] { return full_like(bytes, 300); }},
      {"add: " + too_large, [&] { return bytes + 300; }},
      {"multiply: " + too_large, [&] { return 300 * bytes; }},
      {"subtract: -1 does not fit u8", [&] { return bytes - -1; }},
      {"remainder: " + too_large, [&] { return bytes % 300; }},
      {"floor_divide: -1 does not fit u8", [&] { return floor_divide(bytes, -1); }},
      {"maximum: " + too_large, [&] { return maximum(bytes, 300); }},
      {"and: " + too_large, [&] { return bytes & 300; }},
      {"shift_left: " + too_large, [&] { return bytes << 300; }},
      {"pow: " + too_large, [&] { return pow(bytes, 300); }},
      {"where: " + too_large, [&] { return where(bytes > 10, bytes, 300); }},
      {"masked_fill: " + too_large, [&] { return masked_fill(bytes, bytes > 10, 300); }},
      {"clamp: " + too_large, [&] { return clamp(bytes, 300, 400); }},
      {"clamp: -1 does not fit u8", [&] { return clamp(bytes, -2, -1); }},
      {"pad: " + too_large, [&] { return pad(bytes, {{1, 1}}, PadMode::Constant, 300); }},
      {"arange: 299 does not fit u8", [] { return arange(300, DType::U8); }},
      {"arange: 300 does not fit u8", [] { return arange(0, 301, 100, DType::U8); }},
      {"arange: -1 does not fit u8", [] { return arange(-1, 3, 1, DType::U8); }},
      {"from_dim: " + too_large, [] { return from_dim(300, DType::U8); }},
      {"integers: 999 does not fit u8", [] { return randint({2}, 0, 1000, DType::U8); }},
      {"full: nan does not fit i32", [] { return full({1}, kNan, DType::I32); }},
      {"full: inf does not fit i64", [] { return full({1}, kInf, DType::I64); }},
      {"full: 9223372036854775808 does not fit i64",
       [] { return full({1}, uint64_t{1} << 63, DType::I64); }},
      {"where: 3000000000 does not fit i32", [&] { return where(bytes > 10, 3000000000, 0); }},
  };
  for (const auto& [wanted, build] : rows) {
    const std::string text = error_of(build);
    CHECK_MESSAGE(contains(text, wanted), fmt::format("wanted \"{}\", got \"{}\"", wanted, text));
    CHECK_MESSAGE(contains(text, "hint"), text);
  }
}

TEST_CASE("host numbers: what fits is taken as it is") {
  const int64_t digits = 9007199254740993;  // no double
  CHECK(full({1}, digits, DType::I64).item<int64_t>() == digits);
  CHECK((tensor<int64_t>({1}) + digits).item<int64_t>() == digits + 1);
  CHECK(full_like(tensor<int64_t>({1}), kMost).item<int64_t>() == kMost);
  CHECK(clamp(tensor<int64_t>({kMost}), 0, digits).item<int64_t>() == digits);
  CHECK(full({1}, std::numeric_limits<uint64_t>::max(), DType::U64).item<uint64_t>() ==
        std::numeric_limits<uint64_t>::max());
  CHECK((tensor<uint64_t>({0}) + (uint64_t{1} << 63)).item<uint64_t>() == uint64_t{1} << 63);
  CHECK(arange(kMost - 2, kMost, 1, DType::I64).to_vector<int64_t>() ==
        std::vector<int64_t>{kMost - 2, kMost - 1});
  CHECK(arange(kLeast, kLeast + 5, 2, DType::I64).to_vector<int64_t>() ==
        std::vector<int64_t>{kLeast, kLeast + 2, kLeast + 4});
  CHECK(arange(5, 0, -2, DType::I32).to_vector<int>() == std::vector{5, 3, 1});
  CHECK(arange(0, 256, 1, DType::U8).to_vector<int>().back() == 255);

  const Tensor bytes = tensor<uint8_t>({10, 200});
  CHECK(clamp(bytes, -5, 100).to_vector<int>() == std::vector{10, 100});
  CHECK(clamp(bytes, 20.5, kInf).to_vector<int>() == std::vector{21, 200});
  CHECK(clamp(bytes, -kInf, kInf).to_vector<int>() == std::vector{10, 200});
  CHECK((bytes / 400).to_vector() == std::vector{0.025F, 0.5F});  // true division is in f32
  CHECK(pow(tensor<uint8_t>({2}), -1).item() == 0.5);
  CHECK((~bytes).to_vector<int>() == std::vector{245, 55});
  CHECK(sign(bytes).to_vector<int>() == std::vector{1, 1});
  CHECK(full({1}, 2.9, DType::I32).item<int>() == 2);  // as a cast
  CHECK(full({1}, 255.9, DType::U8).item<int>() == 255);
  CHECK((bytes + 0.5).dtype() == DType::F32);
  CHECK(full({1}, 1e300).item() == kInf);
}
