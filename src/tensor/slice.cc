// Parts of tensors: slices as in Python, pieces, diagonals. Must not compute with elements.
#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <anneal/tensor.h>

#include "symbolic/bounds.h"
#include "symbolic/prove.h"
#include "symbolic/simplify.h"
#include "tensor/movement.h"

namespace anneal {
namespace {

// Where a bound of a slice lies, from 0 to the size.
NodeRef clamped_bound(const Dim& bound, NodeRef size, int64_t shift, const char* which) {
  NodeRef at = node_of(bound);
  if (is_static(at)) at = index_const(std::clamp(static_value(at), -kFar, kFar));
  if (bounds(at).max < 0)
    at = index_add(at, size);
  else if (!prove_nonnegative(at))
    fail(fmt::format("the {} {} is shown neither to be negative nor to be at least 0", which,
                     to_text(at)),
         "negative numbers count from the end; give the variables bounds that settle the sign");
  at = simplify(index_add(at, index_const(shift)));
  return least(greatest(at, index_const(0)), size);
}

// One axis of a slice: from begin up to end of the source, backwards or not, every step-th of that.
struct Range {
  NodeRef begin, end, count;
  NodeRef missing = index_const(0);  // to the next multiple of the step
  int64_t step = 1;
  bool backwards = false;

  Range(const Slice& slice, NodeRef size) {
    if (slice.step == 0)
      fail("a step is 0", "use a positive step, or a negative one to read backwards");
    backwards = slice.step < 0;
    // Backwards from b down to, but without, e are the elements from e + 1 up to b + 1.
    const std::optional<Dim>& low = backwards ? slice.end : slice.begin;
    const std::optional<Dim>& high = backwards ? slice.begin : slice.end;
    int64_t shift = backwards ? 1 : 0;
    const char* names[2] = {backwards ? "end" : "begin", backwards ? "begin" : "end"};
    begin = low ? clamped_bound(*low, size, shift, names[0]) : index_const(0);
    end = high ? greatest(clamped_bound(*high, size, shift, names[1]), begin) : size;
    count = simplify(index_sub(end, begin));
    take_steps(std::clamp(slice.step, -kFar, kFar), size);
  }

  void take_steps(int64_t wanted, NodeRef size) {
    // A longer step than the axis takes one element, as a step of its length does.
    step = std::min(std::abs(wanted), std::max<int64_t>(bounds(count).max, 1));
    if (step == 1) return;
    NodeRef length = count;
    count = simplify(index_floor_div(index_add(length, index_const(step - 1)), index_const(step)));
    NodeRef whole = index_mul(count, index_const(step));
    // The last step may be cut short. Elements of the source complete it, or zeros do.
    if (backwards && prove_less_equal(whole, end))
      begin = simplify(index_sub(end, whole));
    else if (!backwards && prove_less_equal(index_add(begin, whole), size))
      end = simplify(index_add(begin, whole));
    else
      missing = simplify(index_sub(whole, length));
  }
};

// Every step-th element: rows of `step` elements, of which the first column is kept.
NodeRef take_steps(NodeRef node, std::span<const Range> ranges) {
  std::vector<NodeRef> padding, rows, first_column, dims;
  bool steps = false;
  for (const Range& range : ranges) {
    NodeRef zero = index_const(0), step = index_const(range.step);
    padding.insert(padding.end(), {zero, range.missing});
    rows.push_back(range.count);
    first_column.insert(first_column.end(), {zero, range.count});
    dims.push_back(range.count);
    if (range.step == 1) continue;
    steps = true;
    rows.push_back(step);
    first_column.insert(first_column.end(), {zero, index_const(1)});
  }
  if (!steps) return reshape_node(node, dims);
  check_sizes(rows);
  return reshape_node(shrink_node(reshape_node(pad_node(node, padding), rows), first_column), dims);
}

}  // namespace

Tensor slice(const Operand& x, const std::vector<Slice>& slices) {
  CallScope call("slice", x.where());
  NodeRef node = node_of(x);
  if (slices.size() > node->rank())
    fail(fmt::format("{} slices for {}, which has {} axes", slices.size(), shape_text(node),
                     node->rank()),
         "give at most one slice an axis");
  std::vector<Range> ranges;
  std::vector<NodeRef> pairs;
  std::vector<int64_t> backwards;
  for (size_t axis = 0; axis < node->rank(); ++axis) {
    ranges.emplace_back(axis < slices.size() ? slices[axis] : Slice{}, node->dim(axis));
    pairs.insert(pairs.end(), {ranges[axis].begin, ranges[axis].end});
    if (ranges[axis].backwards) backwards.push_back(static_cast<int64_t>(axis));
  }
  return wrap(take_steps(flip_node(shrink_node(node, pairs), backwards), ranges));
}

std::vector<Tensor> split(const Operand& x, const Sizes& sizes, int64_t axis) {
  CallScope call("split", x.where());
  NodeRef node = node_of(x), total = index_const(0);
  size_t along = checked_axis(axis, node->rank());
  std::vector<NodeRef> dims = nodes_of(sizes), begins;
  for (NodeRef size : dims) {
    check_nonnegative(size, fmt::format("size {} of {}", to_text(size), text_of(dims)),
                      "sizes start at 0");
    begins.push_back(total);
    total = simplify(index_add(total, size));
  }
  if (!prove_equal(total, node->dim(along)))
    fail(fmt::format("the sizes {} sum to {}, axis {} of {} is {}", text_of(dims), to_text(total),
                     along, shape_text(node), to_text(node->dim(along))),
         "the sizes must cover the axis; use slice() to leave elements out");
  std::vector<Tensor> parts;
  for (size_t i = 0; i < dims.size(); ++i)
    parts.push_back(wrap(cut(node, along, begins[i], dims[i])));
  return parts;
}

// As PyTorch: every chunk is ceil(size / count) long but the last, so there may be fewer of them.
std::vector<Tensor> chunk(const Operand& x, int64_t count, int64_t axis) {
  CallScope call("chunk", x.where());
  NodeRef node = node_of(x);
  size_t along = checked_axis(axis, node->rank());
  if (count < 1) fail(fmt::format("{} chunks", count), "ask for 1 chunk or more");
  NodeRef size = node->dim(along);
  NodeRef length = simplify(index_floor_div(size, index_const(count)));
  if (prove_equal(index_mul(length, index_const(count)), size))
    return split(x, Sizes(static_cast<size_t>(count), Dim(length)), axis);
  if (!is_static(size))
    fail(fmt::format("axis {} of {} may not divide into {} chunks", along, shape_text(node), count),
         "make the size a multiple of the count, or use split() with the sizes you want");
  int64_t left = static_value(size), longest = (left - 1) / count + 1;
  Sizes sizes;
  for (; left > 0; left -= longest) sizes.emplace_back(std::min(left, longest));
  return split(x, sizes, axis);
}

// In a square of n rows the diagonal is every (n + 1)-th element. With n zeros at its end the
// square is n rows of n + 1, and the diagonal their first column.
Tensor diagonal(const Operand& x, int64_t offset) {
  CallScope call("diagonal", x.where());
  NodeRef node = node_of(x);
  if (node->rank() < 2)
    fail(fmt::format("{} has no diagonal", shape_text(node)), "a matrix has two axes or more");
  size_t rows = node->rank() - 2, columns = node->rank() - 1;
  offset = std::clamp(offset, -kFar, kFar);
  NodeRef top = least(index_const(std::max<int64_t>(-offset, 0)), node->dim(rows));
  NodeRef left = least(index_const(std::max<int64_t>(offset, 0)), node->dim(columns));
  NodeRef size = least(simplify(index_sub(node->dim(rows), top)),
                       simplify(index_sub(node->dim(columns), left)));
  node = cut(node, rows, top, size);
  node = cut(node, columns, left, size);

  NodeRef one = index_const(1);
  std::vector<NodeRef> dims(node->shape->dims().begin(), node->shape->dims().end() - 2);
  std::vector<NodeRef> flat = dims, longer_rows = dims;
  flat.push_back(simplify(index_mul(size, size)));
  longer_rows.insert(longer_rows.end(), {size, simplify(index_add(size, one))});
  dims.push_back(size);
  std::vector<NodeRef> padding(2 * dims.size(), index_const(0));
  padding.back() = size;
  NodeRef square = reshape_node(pad_node(reshape_node(node, flat), padding), longer_rows);
  return wrap(reshape_node(cut(square, columns, index_const(0), one), dims));
}

Tensor Tensor::operator[](const Operand& i) const {
  CallScope call("index", i.where());
  if (i.kind() != Operand::Kind::Int)
    fail("the index is not an integer", "use index_select() for an index that is a tensor");
  NodeRef node = node_of(*this);
  if (node->rank() == 0) fail("a scalar has no elements to choose from", "read it with item()");
  NodeRef size = node->dim(0);
  NodeRef at = index_const(i.integer());
  if (i.integer() < 0) at = simplify(index_add(at, size));
  if (!prove_nonnegative(at) || !prove_less(at, size))
    fail(fmt::format("index {} is out of range for axis 0 of {}", i.integer(), shape_text(node)),
         is_static(size)
             ? fmt::format("indices go from {} to {}", -static_value(size), static_value(size) - 1)
             : "give the variables bounds that leave room for it");
  NodeRef row = cut(node, 0, at, index_const(1));
  return wrap(reshape_node(row, node->shape->dims().subspan(1)));
}

}  // namespace anneal
