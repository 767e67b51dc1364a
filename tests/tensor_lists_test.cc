// Tensors from lists and vectors of the host, and operators that put a new tensor in a handle.
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "error_text.h"

using namespace anneal;

namespace {

bool has(const Tensor& x, DType dtype, const std::string& shape) {
  return x.dtype() == dtype && to_text(x.shape()) == shape;
}

}  // namespace

TEST_CASE("lists: as many axes as there are levels") {
  CHECK(has(tensor({1.f, 2.f}), DType::F32, "[2]"));
  CHECK(has(tensor({1, 2, 3}), DType::I32, "[3]"));
  CHECK(has(tensor({{1, 2}}), DType::I32, "[1, 2]"));
  CHECK(has(tensor({{1}, {2}}), DType::I32, "[2, 1]"));
  CHECK(has(tensor({{1.f}, {2.f}}), DType::F32, "[2, 1]"));
  CHECK(has(tensor({{true, false}, {false, false}}), DType::Bool, "[2, 2]"));
  CHECK(has(tensor({{1.0, 2.0}, {3.0, 4.0}}), DType::F64, "[2, 2]"));
  CHECK(has(tensor({{{1.f}}}), DType::F32, "[1, 1, 1]"));
  CHECK(has(tensor({{{1, 2}, {3, 4}, {5, 6}}}), DType::I32, "[1, 3, 2]"));
  CHECK(has(tensor({{{{1}, {2}}}, {{{3}, {4}}}}), DType::I32, "[2, 1, 2, 1]"));
  CHECK(has(tensor({{{{1.f, 2.f}}}}), DType::F32, "[1, 1, 1, 2]"));
  CHECK(tensor({{1, 2}, {3, 4}}).to_vector<int>() == std::vector{1, 2, 3, 4});
  CHECK(tensor({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}})[1][0].to_vector<int>() == std::vector{5, 6});
}

TEST_CASE("lists: a dtype may be given, and sizes") {
  CHECK(has(tensor<uint8_t>({200, 100}), DType::U8, "[2]"));
  CHECK(has(tensor<uint8_t>({{1, 2}, {3, 4}}), DType::U8, "[2, 2]"));
  CHECK(has(tensor<float>({{1}, {2}}), DType::F32, "[2, 1]"));
  CHECK(has(tensor({1, 2, 3, 4}, {2, 2}), DType::I32, "[2, 2]"));
  CHECK(has(tensor({1, 2, 3, 4}, {2, -1}), DType::I32, "[2, 2]"));
}

TEST_CASE("lists: empty ones") {
  CHECK(has(tensor({}), DType::F32, "[0]"));
  CHECK(has(tensor<int>({}), DType::I32, "[0]"));
  CHECK(has(tensor({{}, {}}), DType::F32, "[2, 0]"));
  CHECK(has(tensor<int64_t>({{}, {}, {}}), DType::I64, "[3, 0]"));
}

TEST_CASE("lists: of one level they are as long as each other") {
  CHECK(contains(error_of([] { tensor({{1, 2}, {3}}); }),
                 "tensor: the list at [1] has 1 elements, those before it have 2"));
  CHECK(contains(error_of([] { tensor({{{1}, {2}}, {{3}, {4, 5}}}); }),
                 "the list at [1, 1] has 2 elements, those before it have 1"));
  CHECK(contains(error_of([] { tensor({{1, 2}, {}}); }), "the list at [1] has 0 elements"));
  CHECK(contains(error_of([] { tensor({{{1}}, {{2}, {3}}}); }), "the list at [1] has 2 elements"));
  try {
    tensor({{1, 2}, {3}});
  } catch (const UserError& error) {
    CHECK(error.where().line() == __LINE__ - 2);
    CHECK(error.hint() == "lists of one level have one length");
  }
}

TEST_CASE("lists: vectors need no sizes, and may be of bool") {
  CHECK(has(from_data(std::vector<float>{1, 2, 3}), DType::F32, "[3]"));
  CHECK(has(from_data(std::vector<int>{}), DType::I32, "[0]"));
  CHECK(has(from_data(std::vector<float>{5}, {}), DType::F32, "[]"));
  CHECK(has(from_data(std::vector<float>(6), {2, -1}), DType::F32, "[2, 3]"));
  const std::vector<bool> mask{true, false, true, true};
  CHECK(has(from_data(mask), DType::Bool, "[4]"));
  CHECK(from_data(mask, {2, 2}).to_vector<bool>() == mask);
  Tensor p = parameter("p", zeros({4}, DType::Bool));
  p.write(mask);
  CHECK(p.to_vector<bool>() == mask);

  CHECK(contains(error_of([] { from_data(std::vector<float>(5), {2, -1}); }),
                 "from_data: 5 values do not tell what -1 in [2, -1] is"));
  CHECK(contains(error_of([] { from_data(std::vector<float>(4), {-1, -1}); }),
                 "4 values do not tell what -1 in [-1, -1] is"));
  CHECK(contains(error_of([] { from_data(std::vector<float>{}, {0, -1}); }), "do not tell"));
  CHECK(contains(error_of([] { from_data(std::vector<float>(4), {-2}); }), "negative"));
  CHECK(contains(error_of([&] { parameter("q", zeros({4})).write(mask); }),
                 "\"q\" is f32, the values are bool"));
}

TEST_CASE("compound operators rebind the handle") {
  Tensor p = parameter("p", tensor({1.f, 2.f}));
  Tensor x = p;
  x += 1;
  x *= tensor({2.f, 3.f});
  CHECK(x.to_vector() == std::vector<float>{4, 9});
  CHECK(p.to_vector() == std::vector<float>{1, 2});  // as it was
  Tensor whole = tensor({7, 8});
  Tensor same = whole;
  whole /= 2;  // as whole / 2 would: floats
  CHECK(whole.dtype() == DType::F32);
  CHECK(same.dtype() == DType::I32);
  Tensor flags = tensor({true, false});
  (flags |= true) &= false;
  CHECK(flags.to_vector<bool>() == std::vector<bool>{false, false});
  Tensor itself = tensor({1.f, 2.f});
  itself -= itself;
  CHECK(itself.to_vector() == std::vector<float>{0, 0});
  try {
    x += zeros({3});
    FAIL_CHECK("nothing was wrong");
  } catch (const UserError& error) {
    CHECK(error.where().line() == __LINE__ - 3);
    CHECK(contains(error.what(), "add: shapes do not broadcast: [2] and [3]"));
  }
  CHECK(x.to_vector() == std::vector<float>{4, 9});
}
