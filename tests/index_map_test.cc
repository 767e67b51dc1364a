// What chains of movement ops read, as tables of texts. Values are checked in bulk by
// symbolic_fuzz_test.cc.
#include "symbolic/index_map.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "index_text.h"
#include "ir/build.h"
#include "ir/index.h"
#include "ir/print.h"
#include "symbolic/bounds.h"
#include "symbolic/simplify.h"

using namespace anneal;

namespace {

using Axes = std::vector<int64_t>;

std::vector<NodeRef> dims_of(const std::vector<std::string_view>& texts) {
  std::vector<NodeRef> dims;
  for (std::string_view text : texts) dims.push_back(simplify(read(text)));
  return dims;
}
NodeRef source(const std::vector<std::string_view>& sizes) {
  return make_buffer("source", 1, DType::F32, dims_of(sizes));
}
NodeRef reshape(NodeRef x, const std::vector<std::string_view>& sizes) {
  return make_tail(Op::Reshape, x, dims_of(sizes));
}
NodeRef expand_to(NodeRef x, const std::vector<std::string_view>& sizes) {
  return make_tail(Op::Expand, x, dims_of(sizes));
}
NodeRef pad(NodeRef x, const std::vector<std::string_view>& pairs) {
  return make_tail(Op::Pad, x, dims_of(pairs));
}
NodeRef shrink(NodeRef x, const std::vector<std::string_view>& pairs) {
  return make_tail(Op::Shrink, x, dims_of(pairs));
}
NodeRef permute(NodeRef x, const Axes& axes) { return make_axes(Op::Permute, x, axes); }
NodeRef flip(NodeRef x, const Axes& axes) { return make_axes(Op::Flip, x, axes); }

std::vector<NodeRef> coordinates_of(NodeRef node) {
  std::vector<NodeRef> coordinates;
  for (size_t axis = 0; axis < node->rank(); ++axis)
    coordinates.push_back(
        make_variable(fmt::format("i{}", axis), 0, bounds(node->dim(axis)).max - 1));
  return coordinates;
}

}  // namespace

TEST_CASE("symbolic: movement ops that undo each other leave the very coordinates") {
  NodeRef s = source({"4", "6", "10"}), d = source({"n", "6", "m"}), e = source({"n", "m"});
  const std::vector<std::pair<std::string, NodeRef>> kRows{
      {"reshape back", reshape(reshape(s, {"24", "10"}), {"4", "6", "10"})},
      {"reshape to other groups and back", reshape(reshape(s, {"8", "30"}), {"4", "6", "10"})},
      {"flatten and back", reshape(reshape(s, {"240"}), {"4", "6", "10"})},
      {"permute back", permute(permute(s, {2, 0, 1}), {1, 2, 0})},
      {"split, permute, merge and back",
       reshape(permute(reshape(reshape(permute(reshape(s, {"24", "10"}), {1, 0}), {"240"}),
                               {"10", "24"}),
                       {1, 0}),
               {"4", "6", "10"})},
      {"permuted through a flat tensor",
       permute(reshape(reshape(permute(s, {2, 0, 1}), {"240"}), {"10", "4", "6"}), {1, 2, 0})},
      {"permuted through unrelated sizes",
       permute(reshape(reshape(permute(s, {2, 0, 1}), {"16", "15"}), {"10", "4", "6"}), {1, 2, 0})},
      {"flip twice", flip(flip(s, {0, 2}), {0, 2})},
      {"flip through a flat tensor",
       flip(reshape(flip(reshape(s, {"240"}), {0}), {"4", "6", "10"}), {0, 1, 2})},
      {"pad, then shrink",
       shrink(pad(s, {"1", "2", "0", "0", "3", "0"}), {"1", "5", "0", "6", "3", "13"})},
      {"pad and merge, then split and shrink",
       shrink(
           reshape(reshape(pad(s, {"0", "0", "0", "0", "1", "1"}), {"24", "12"}), {"4", "6", "12"}),
           {"0", "4", "0", "6", "1", "11"})},
      {"symbolic: flatten and back", reshape(reshape(d, {"n * m * 6"}), {"n", "6", "m"})},
      {"symbolic: merge two and back", reshape(reshape(d, {"n", "6 * m"}), {"n", "6", "m"})},
      {"symbolic: permuted through a flat tensor",
       permute(reshape(reshape(permute(e, {1, 0}), {"n * m"}), {"m", "n"}), {1, 0})},
      {"symbolic: permuted through a flat tensor, three axes",
       permute(reshape(reshape(permute(d, {2, 0, 1}), {"n * m * 6"}), {"m", "n", "6"}), {1, 2, 0})},
      {"symbolic: flip twice", flip(flip(d, {0, 2}), {0, 2})},
      {"symbolic: flip through a flat tensor",
       flip(reshape(flip(reshape(e, {"n * m"}), {0}), {"n", "m"}), {0, 1})},
      {"symbolic: pad, then shrink",
       shrink(pad(e, {"1", "n", "0", "0"}), {"1", "n + 1", "0", "m"})},
      {"symbolic: pad and merge, then split and shrink",
       shrink(reshape(reshape(pad(e, {"0", "0", "1", "1"}), {"n * (m + 2)"}), {"n", "m + 2"}),
              {"0", "n", "1", "m + 1"})},
  };
  for (const auto& [what, last] : kRows) {
    std::vector<NodeRef> coordinates = coordinates_of(last);
    auto [from, map] = through_chain(last, coordinates);
    INFO(what);
    CHECK(from->op == Op::Buffer);
    REQUIRE(map.coordinates.size() == coordinates.size());
    for (size_t axis = 0; axis < coordinates.size(); ++axis) {
      INFO(to_text(map.coordinates[axis]));
      CHECK(map.coordinates[axis] == coordinates[axis]);
    }
    INFO(to_text(map.valid));
    CHECK(map.valid == make_const(DType::Bool, 1));
  }
}

TEST_CASE("symbolic: round trips over a flat coordinate") {
  struct Row {
    std::string what;
    NodeRef last;
  };
  NodeRef flat = source({"24"}), wide = source({"n * m"});
  const Row kRows[] = {
      {"reshape, permute, reshape, and back",
       reshape(
           permute(reshape(reshape(permute(reshape(flat, {"4", "6"}), {1, 0}), {"24"}), {"6", "4"}),
                   {1, 0}),
           {"24"})},
      {"three axes",
       reshape(permute(reshape(reshape(permute(reshape(flat, {"2", "3", "4"}), {2, 0, 1}), {"24"}),
                               {"4", "2", "3"}),
                       {1, 2, 0}),
               {"24"})},
      {"symbolic",
       reshape(permute(reshape(reshape(permute(reshape(wide, {"n", "m"}), {1, 0}), {"n * m"}),
                               {"m", "n"}),
                       {1, 0}),
               {"n * m"})},
  };
  for (const Row& row : kRows) {
    std::vector<NodeRef> coordinates = coordinates_of(row.last);
    auto [from, map] = through_chain(row.last, coordinates);
    INFO(row.what, ": ", to_text(map.coordinates[0]));
    CHECK(map.coordinates == coordinates);
  }
}

TEST_CASE("symbolic: what movement ops read") {
  struct Row {
    NodeRef last;
    std::vector<std::string_view> reads;  // with a, b for i0, i1
    std::string_view valid;
  };
  NodeRef s = source({"3", "4"}), one = source({"1", "4"});
  const Row kRows[] = {
      {s, {"a", "b"}, "true"},
      {reshape(s, {"12"}), {"a // 4", "a % 4"}, "true"},
      {reshape(s, {"6", "2"}), {"a // 2", "a % 2 * 2 + b"}, "true"},
      {permute(s, {1, 0}), {"b", "a"}, "true"},
      {expand_to(one, {"5", "4"}), {"0", "b"}, "true"},
      {flip(s, {1}), {"a", "3 - b"}, "true"},
      {shrink(s, {"1", "3", "2", "4"}), {"a + 1", "b + 2"}, "true"},
      {pad(s, {"1", "1", "0", "2"}), {"a - 1", "b"}, "and(and(0 < a, a < 4), b < 4)"},
      {pad(pad(s, {"1", "0", "0", "0"}), {"1", "0", "0", "0"}), {"a - 2", "b"}, "1 < a"},
      {flip(pad(s, {"2", "0", "0", "0"}), {0}), {"2 - a", "b"}, "a < 3"},
      {reshape(pad(s, {"0", "0", "0", "2"}), {"18"}), {"a // 6", "a % 6"}, "a % 6 < 4"},
      {reshape(pad(reshape(s, {"12"}), {"1", "0"}), {"13", "1"}),
       {"(a - 1) // 4", "(a - 1) % 4"},
       "0 < a"},
      {reshape(source({"0", "4"}), {"4", "0"}), {}, "true"},
  };
  for (const Row& row : kRows) {
    bool empty = row.reads.empty();
    std::vector<NodeRef> coordinates;
    for (size_t axis = 0; axis < row.last->rank(); ++axis)
      coordinates.push_back(
          make_variable(axis == 0 ? "a" : "b", 0, empty ? 0 : bounds(row.last->dim(axis)).max - 1));
    auto [from, map] = through_chain(row.last, coordinates);
    // The expectations are written with the table's own a and b: exchange them for these.
    auto expected = [&](std::string_view text) {
      NodeRef node = read(text);
      return simplify(clone({&node, 1}, current_graph(), [&](NodeRef v) -> NodeRef {
        if (v == variable("a")) return coordinates[0];
        if (v == variable("b")) return coordinates.size() > 1 ? coordinates[1] : nullptr;
        return nullptr;
      })[0]);
    };
    INFO(print(row.last));
    CHECK(from->op == Op::Buffer);
    for (size_t axis = 0; axis < row.reads.size(); ++axis) {
      INFO(to_text(map.coordinates[axis]));
      CHECK(map.coordinates[axis] == expected(row.reads[axis]));
    }
    INFO(to_text(map.valid));
    CHECK(map.valid == expected(row.valid));
  }
}
