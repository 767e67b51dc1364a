// Merges movement: two reshapes are one, a permutation undone is none. Shapes stay as they were.
#include <algorithm>

#include "ir/build.h"
#include "ir/index.h"
#include "transform/simplify.h"

namespace anneal {
namespace {

using namespace captures;

bool is_zero(NodeRef index) { return is_static(index) && static_value(index) == 0; }
bool is_one(NodeRef index) { return is_static(index) && static_value(index) == 1; }

NodeRef same_shape(const Match& m) { return m.root()->shape == m[x]->shape ? m[x] : unchanged; }

NodeRef identity_permute(const Match& m) {
  std::span<const int64_t> axes = m.root()->axes();
  return std::is_sorted(axes.begin(), axes.end()) ? m[x] : unchanged;
}

NodeRef merge_permutes(const Match& m) {
  std::vector<int64_t> axes;
  for (int64_t axis : m.root()->axes()) axes.push_back(m[y]->axes()[static_cast<size_t>(axis)]);
  return make_axes(Op::Permute, m[x], axes);
}

// Axes flipped twice are not flipped.
NodeRef merge_flips(const Match& m) {
  std::vector<int64_t> axes;
  std::ranges::set_symmetric_difference(m.root()->axes(), m[y]->axes(), std::back_inserter(axes));
  return axes.empty() ? m[x] : make_axes(Op::Flip, m[x], axes);
}

NodeRef flip_of_ones(const Match& m) {
  std::vector<int64_t> axes;
  for (int64_t axis : m.root()->axes())
    if (!is_one(m[x]->dim(static_cast<size_t>(axis)))) axes.push_back(axis);
  if (axes.size() == m.root()->axes().size()) return unchanged;
  return axes.empty() ? m[x] : make_axes(Op::Flip, m[x], axes);
}

NodeRef pad_nothing(const Match& m) {
  return std::ranges::all_of(m.root()->tail(), is_zero) ? m[x] : unchanged;
}

// Amounts add up.
NodeRef merge_pads(const Match& m) {
  std::vector<NodeRef> pairs;
  for (size_t i = 0; i < m.root()->tail().size(); ++i)
    pairs.push_back(index_add(m.root()->tail()[i], m[y]->tail()[i]));
  return make_tail(Op::Pad, m[x], pairs);
}

NodeRef shrink_nothing(const Match& m) {
  for (size_t axis = 0; axis < m[x]->rank(); ++axis)
    if (!is_zero(m.root()->tail()[2 * axis]) || m.root()->tail()[2 * axis + 1] != m[x]->dim(axis))
      return unchanged;
  return m[x];
}

// Positions are relative to where the inner one begins.
NodeRef merge_shrinks(const Match& m) {
  std::vector<NodeRef> pairs;
  for (size_t i = 0; i < m.root()->tail().size(); ++i)
    pairs.push_back(index_add(m.root()->tail()[i], m[y]->tail()[i / 2 * 2]));
  return make_tail(Op::Shrink, m[x], pairs);
}

// What was padded is cut off again.
NodeRef unpad(const Match& m) {
  for (size_t axis = 0; axis < m[x]->rank(); ++axis) {
    NodeRef before = m[y]->tail()[2 * axis];
    if (m.root()->tail()[2 * axis] != before ||
        m.root()->tail()[2 * axis + 1] != index_add(before, m[x]->dim(axis)))
      return unchanged;
  }
  return m[x];
}

NodeRef reduce_of_ones(const Match& m) {
  std::vector<int64_t> axes;
  for (int64_t axis : m.root()->axes())
    if (!is_one(m[x]->dim(static_cast<size_t>(axis)))) axes.push_back(axis);
  if (axes.size() == m.root()->axes().size()) return unchanged;
  return axes.empty() ? m[x] : make_axes(m.root()->op, m[x], axes);
}

// Float sums and products would round twice otherwise, so merging them is not an identity of bits;
// extremes and wrapping integers do not care.
NodeRef merge_reduces(const Match& m) {
  if (m.root()->op != m[y]->op) return unchanged;
  bool extreme = m.root()->op == Op::ReduceMax || m.root()->op == Op::ReduceMin;
  if (!extreme && is_float(m[x]->dtype)) return unchanged;
  std::vector<int64_t> axes;
  std::ranges::set_union(m.root()->axes(), m[y]->axes(), std::back_inserter(axes));
  return make_axes(m.root()->op, m[x], axes);
}

constexpr OpSet kReduces{Op::ReduceSum, Op::ReduceProd, Op::ReduceMax, Op::ReduceMin};

}  // namespace

const RuleSet kMovementRules{
    "movement",
    {
        {"reshape-to-same", op(Op::Reshape, x), same_shape},
        {"reshape-reshape", op(Op::Reshape, op(Op::Reshape, x)),
         [](const Match& m) { return make_tail(Op::Reshape, m[x], m.root()->tail()); }},
        {"expand-to-same", op(Op::Expand, x), same_shape},
        {"expand-expand", op(Op::Expand, op(Op::Expand, x)),
         [](const Match& m) { return make_tail(Op::Expand, m[x], m.root()->tail()); }},
        {"permute-nothing", op(Op::Permute, x), identity_permute},
        {"permute-permute", op(Op::Permute, op(Op::Permute, x).as(y)), merge_permutes},
        {"flip-flip", op(Op::Flip, op(Op::Flip, x).as(y)), merge_flips},
        {"flip-of-ones", op(Op::Flip, x), flip_of_ones},
        {"pad-nothing", op(Op::Pad, x), pad_nothing},
        {"pad-pad", op(Op::Pad, op(Op::Pad, x).as(y)), merge_pads},
        {"shrink-nothing", op(Op::Shrink, x), shrink_nothing},
        {"shrink-shrink", op(Op::Shrink, op(Op::Shrink, x).as(y)), merge_shrinks},
        {"shrink-pad", op(Op::Shrink, op(Op::Pad, x).as(y)), unpad},
        {"reduce-of-ones", any_of(kReduces, x), reduce_of_ones},
        {"reduce-reduce", any_of(kReduces, any_of(kReduces, x).as(y)), merge_reduces},
    }};

}  // namespace anneal
