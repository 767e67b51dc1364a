#include "symbolic/index_map.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/build.h"
#include "symbolic/bounds.h"
#include "symbolic/limits.h"
#include "symbolic/polynomial.h"
#include "symbolic/prove.h"
#include "symbolic/rules.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace {

bool is_number(NodeRef node, int64_t value) {
  return is_static(node) && static_value(node) == value;
}

// ---- coordinates within their shape

// Reading a pad, a coordinate may leave its axis where `valid` fails; it does not matter there. So
// while an op is applied such a coordinate is a variable that stays within the axis.
class Coordinates {
 public:
  Coordinates(std::span<const NodeRef> coordinates, std::span<const NodeRef> dims)
      : inside_(coordinates.begin(), coordinates.end()) {
    for (size_t axis = 0; axis < dims.size(); ++axis) keep_inside(axis, dims[axis]);
  }

  std::span<const NodeRef> inside() const { return inside_; }
  std::span<const Limit> limits() const { return limits_; }

  // An answer in terms of the coordinates that were given.
  std::vector<NodeRef> restore(std::vector<NodeRef> answers) const {
    if (replaced_.empty()) return answers;
    return clone(answers, current_graph(), [&](NodeRef node) -> NodeRef {
      for (const auto& [variable, coordinate] : replaced_)
        if (node == variable) return coordinate;
      return nullptr;
    });
  }

 private:
  void keep_inside(size_t axis, NodeRef dim) {
    NodeRef coordinate = inside_[axis];
    Interval here = bounds(coordinate), size = bounds(dim);
    if (here.min >= 0 && here.max < size.min) return;
    if (size.max <= 0 || lies_below(linear_form(coordinate), linear_form(dim))) return;
    if (coordinate->op == Op::Variable && here.min >= 0 && here.max < size.max) {
      limits_.push_back({coordinate, dim});
      return;
    }
    inside_[axis] = make_variable(fmt::format("axis {}", axis), 0, size.max - 1);
    if (!is_static(dim)) limits_.push_back({inside_[axis], dim});
    replaced_.push_back({inside_[axis], coordinate});
  }

  std::vector<NodeRef> inside_;
  std::vector<Limit> limits_;
  std::vector<std::pair<NodeRef, NodeRef>> replaced_;
};

// ---- reshape

// Axes of size 1 have coordinate 0 and take no part.
std::vector<size_t> axes_that_count(std::span<const NodeRef> dims) {
  std::vector<size_t> axes;
  for (size_t axis = 0; axis < dims.size(); ++axis)
    if (!is_number(dims[axis], 1)) axes.push_back(axis);
  return axes;
}

template <typename Item>
std::vector<NodeRef> pick(Item items, std::span<const size_t> axes) {
  std::vector<NodeRef> picked;
  for (size_t axis : axes) picked.push_back(items[axis]);
  return picked;
}

// The number of elements of the axes from each one on.
std::vector<NodeRef> tail_counts(std::span<const NodeRef> dims, std::span<const size_t> axes) {
  std::vector<NodeRef> counts(axes.size() + 1, index_const(1));
  for (size_t i = axes.size(); i-- > 0;) counts[i] = index_mul(dims[axes[i]], counts[i + 1]);
  return counts;
}

// [2, 3, n, 4] to [6, n, 2, 2] is [2, 3] to [6], [n] to [n] and [4] to [2, 2]: each group of axes
// is reshaped by itself, from the last to the first, so an axis that stays costs no arithmetic.
std::vector<NodeRef> reshape(std::span<const NodeRef> coordinates, std::span<const NodeRef> dims,
                             std::span<const NodeRef> source_dims) {
  std::vector<NodeRef> result(source_dims.size(), index_const(0));
  std::vector<size_t> to = axes_that_count(dims), from = axes_that_count(source_dims);
  std::vector<NodeRef> to_counts = tail_counts(dims, to),
                       from_counts = tail_counts(source_dims, from);
  size_t to_end = to.size(), from_end = from.size();
  while (to_end > 0 || from_end > 0) {
    // The nearest pair of axes before which the same number of elements has passed.
    size_t to_begin = 0, from_begin = 0;
    for (size_t i = to_end; i-- > 0 && to_begin == 0;)
      for (size_t j = from_end; j-- > 0;)
        if (to_counts[i] == from_counts[j] && to_begin == 0 && from_begin == 0 && i > 0 && j > 0)
          to_begin = i, from_begin = j;
    std::span<const size_t> to_axes(to.data() + to_begin, to_end - to_begin);
    std::span<const size_t> from_axes(from.data() + from_begin, from_end - from_begin);
    NodeRef position = flatten_index(pick(coordinates, to_axes), pick(dims, to_axes));
    std::vector<NodeRef> parts = unflatten_index(simplify(position), pick(source_dims, from_axes));
    for (size_t i = 0; i < from_axes.size(); ++i) result[from_axes[i]] = parts[i];
    to_end = to_begin;
    from_end = from_begin;
  }
  return result;
}

// ---- the other movement ops

std::vector<NodeRef> permute(std::span<const NodeRef> coordinates, std::span<const int64_t> axes) {
  std::vector<NodeRef> result(coordinates.size());
  for (size_t i = 0; i < axes.size(); ++i) result[static_cast<size_t>(axes[i])] = coordinates[i];
  return result;
}

std::vector<NodeRef> expand_axes(std::span<const NodeRef> coordinates, NodeRef movement) {
  std::vector<NodeRef> result(coordinates.begin(), coordinates.end());
  NodeRef source = movement->source(0);
  for (size_t axis = 0; axis < result.size(); ++axis)
    if (is_number(source->dim(axis), 1)) result[axis] = index_const(0);
  return result;
}

std::vector<NodeRef> flip(std::span<const NodeRef> coordinates, NodeRef movement) {
  std::vector<NodeRef> result(coordinates.begin(), coordinates.end());
  for (int64_t axis : movement->axes()) {
    NodeRef last = index_sub(movement->dim(static_cast<size_t>(axis)), index_const(1));
    NodeRef& coordinate = result[static_cast<size_t>(axis)];
    coordinate = index_sub(last, coordinate);
  }
  return result;
}

// The tail of pad and shrink: two expressions an axis.
NodeRef low_of(NodeRef movement, size_t axis) { return movement->tail()[2 * axis]; }

std::vector<NodeRef> shift(std::span<const NodeRef> coordinates, NodeRef movement, int64_t sign) {
  std::vector<NodeRef> result;
  for (size_t axis = 0; axis < coordinates.size(); ++axis)
    result.push_back(
        index_add(coordinates[axis], index_mul(low_of(movement, axis), index_const(sign))));
  return result;
}

// 0 <= coordinate < size on every axis that was padded.
NodeRef inside_source(std::span<const NodeRef> coordinates, NodeRef movement) {
  NodeRef inside = rules::bool_const(true), zero = index_const(0);
  for (size_t axis = 0; axis < coordinates.size(); ++axis) {
    if (!is_number(low_of(movement, axis), 0))
      inside = make(Op::And, {inside, make(Op::Le, {zero, coordinates[axis]})});
    if (!is_number(movement->tail()[2 * axis + 1], 0)) {
      NodeRef size = movement->source(0)->dim(axis);
      inside = make(Op::And, {inside, make(Op::Lt, {coordinates[axis], size})});
    }
  }
  return inside;
}

std::vector<NodeRef> moved(NodeRef movement, std::span<const NodeRef> coordinates) {
  NodeRef source = movement->source(0);
  switch (movement->op) {
    case Op::Reshape: return reshape(coordinates, movement->shape->dims(), source->shape->dims());
    case Op::Permute: return permute(coordinates, movement->axes());
    case Op::Expand: return expand_axes(coordinates, movement);
    case Op::Flip: return flip(coordinates, movement);
    case Op::Pad: return shift(coordinates, movement, -1);
    case Op::Shrink: return shift(coordinates, movement, 1);
    default: throw InternalError(fmt::format("{} is no movement op", name(movement->op)));
  }
}

}  // namespace

NodeRef flatten_index(std::span<const NodeRef> coordinates, std::span<const NodeRef> dims) {
  NodeRef position = index_const(0);
  for (size_t axis = 0; axis < dims.size(); ++axis)
    position = index_add(index_mul(position, dims[axis]), coordinates[axis]);
  return position;
}

std::vector<NodeRef> unflatten_index(NodeRef position, std::span<const NodeRef> dims) {
  std::vector<NodeRef> coordinates(dims.size(), index_const(0));
  for (NodeRef dim : dims)
    if (is_number(dim, 0)) return coordinates;  // nothing can be read
  NodeRef stride = index_const(1);
  for (size_t axis = dims.size(); axis-- > 0;) {
    NodeRef quotient = index_floor_div(position, stride);
    coordinates[axis] = axis == 0 ? quotient : index_mod(quotient, dims[axis]);
    stride = index_mul(stride, dims[axis]);
  }
  return coordinates;
}

IndexMap through(NodeRef movement, const IndexMap& output) {
  IndexMap result{{}, output.valid};
  {
    // That the coordinates lie within the shape is true where output.valid holds, and only there:
    // what becomes of output.valid itself must not use it.
    Coordinates inner(output.coordinates, movement->shape->dims());
    LimitScope scope(inner.limits());
    result.coordinates = inner.restore(simplify(moved(movement, inner.inside())));
    result.coordinates = simplify(result.coordinates);
    if (movement->op == Op::Pad)
      result.valid =
          make(Op::And, {output.valid, simplify(inside_source(result.coordinates, movement))});
  }
  result.valid = simplify(result.valid);
  return result;
}

ChainMap through_chain(NodeRef last, std::span<const NodeRef> output_coordinates) {
  std::vector<Limit> limits;
  for (size_t axis = 0; axis < output_coordinates.size(); ++axis)
    if (!is_static(last->dim(axis)) && output_coordinates[axis]->op == Op::Variable)
      limits.push_back({output_coordinates[axis], last->dim(axis)});
  LimitScope scope(limits);
  IndexMap map{{output_coordinates.begin(), output_coordinates.end()}, rules::bool_const(true)};
  map.coordinates = simplify(map.coordinates);
  NodeRef node = last;
  for (; is_movement(node->op); node = node->source(0)) map = through(node, map);
  return {node, map};
}

}  // namespace anneal
