// Reading and writing at places that are data. Shapes are fitted here to what Gather and Scatter
// need: equal sizes beside the axis.
#include <array>

#include <fmt/format.h>

#include <anneal/tensor.h>

#include "symbolic/bounds.h"
#include "symbolic/prove.h"
#include "tensor/movement.h"

namespace anneal {
namespace {

NodeRef checked_index(const Operand& index) {
  NodeRef node = node_of(index);
  if (!is_int(node->dtype))
    fail(fmt::format("the index is {}, not an integer", name(node->dtype)),
         is_bool(node->dtype) ? "use where() to choose by a mask" : "cast it to i32");
  return node;
}

void check_same_rank(NodeRef x, NodeRef index) {
  if (x->rank() != index->rank())
    fail(fmt::format("x is {} and the index {}, which differ in rank", shape_text(x),
                     shape_text(index)),
         "reshape the index, or use index_select() for an index of any shape");
}

NodeRef gather_node(NodeRef x, NodeRef index, size_t axis) {
  return make(Op::Gather, {x, index}, Arg(static_cast<int64_t>(axis)));
}

// x and index expanded to the same sizes beside the axis.
std::array<NodeRef, 2> meet_beside(NodeRef x, NodeRef index, size_t axis) {
  std::vector<NodeRef> of_x = dims_of(x), of_index = dims_of(index);
  for (size_t i = 0; i < of_x.size(); ++i) {
    if (i == axis) continue;
    if (!is_number(of_x[i], 1) && !is_number(of_index[i], 1) && !prove_equal(of_x[i], of_index[i]))
      fail(fmt::format("x is {} and the index {}: sizes {} and {} of axis {} differ", shape_text(x),
                       shape_text(index), to_text(of_x[i]), to_text(of_index[i]), i),
           fmt::format("beside axis {} sizes must be equal or 1", axis));
    of_index[i] = of_x[i] = is_number(of_x[i], 1) ? of_index[i] : of_x[i];
  }
  check_sizes(of_x);
  check_sizes(of_index);
  return {broadcast_to(x, of_x), broadcast_to(index, of_index)};
}

// An error unless the index is nowhere larger than x beside the axis.
void check_within(NodeRef x, NodeRef index, size_t axis) {
  check_same_rank(x, index);
  for (size_t i = 0; i < x->rank(); ++i)
    if (i != axis && !prove_less_equal(index->dim(i), x->dim(i)))
      fail(
          fmt::format("axis {} of the index {} is {}, that of x {} is only {}", i,
                      shape_text(index), to_text(index->dim(i)), shape_text(x), to_text(x->dim(i))),
          fmt::format("beside axis {} the index must not be larger than x", axis));
}

// The values in the dtype of x and the shape of the index.
NodeRef checked_values(const Operand& x, const Operand& values, NodeRef index) {
  DType dtype = node_of(x)->dtype;
  std::array<const Operand*, 2> operands{&x, &values};
  if (meeting_dtype(operands) != dtype)
    fail(fmt::format("the values are {}, x is {}", name(node_of(values)->dtype), name(dtype)),
         fmt::format("cast the values to {}, or x to {}", name(dtype),
                     name(meeting_dtype(operands))));
  NodeRef node = lift(values, dtype);
  std::vector<NodeRef> both{node, index};
  std::vector<NodeRef> dims = broadcast_dims(both);
  bool fits = dims.size() == index->rank();
  for (size_t i = 0; i < dims.size() && fits; ++i) fits = prove_equal(dims[i], index->dim(i));
  if (!fits)
    fail(fmt::format("the values are {}, the index only {}", shape_text(node), shape_text(index)),
         "there is one value for each index; sizes of 1 are repeated");
  return broadcast_to(node, index->shape->dims());
}

// Where the index is smaller than x beside the axis, it is continued by places that do not exist,
// at which nothing is written.
Tensor scatter_node(Op op, const Operand& x, int64_t axis, const Operand& index,
                    const Operand& values) {
  NodeRef target = node_of(x), places = checked_index(index);
  size_t along = checked_axis(axis, target->rank());
  check_within(target, places, along);
  NodeRef updates = checked_values(x, values, places);
  std::vector<NodeRef> dims = dims_of(target);
  dims[along] = places->dim(along);
  std::vector<Padding> padding(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) padding[i].after = Dim(dims[i]) - Dim(places->dim(i));
  Number nowhere = is_unsigned(places->dtype) ? Number(max_value(places->dtype)) : Number(-1);
  places = reshape_node(node_of(pad(wrap(places), padding, PadMode::Constant, nowhere)), dims);
  updates = reshape_node(node_of(pad(wrap(updates), padding)), dims);
  return wrap(make(op, {target, places, updates}, Arg(static_cast<int64_t>(along))));
}

}  // namespace

Tensor take_along_axis(const Operand& x, const Operand& index, int64_t axis) {
  CallScope call("take_along_axis", x.where());
  NodeRef node = node_of(x), places = checked_index(index);
  size_t along = checked_axis(axis, node->rank());
  check_same_rank(node, places);
  auto [table, fitted] = meet_beside(node, places, along);
  return wrap(gather_node(table, fitted, along));
}

Tensor gather(const Operand& x, int64_t axis, const Operand& index) {
  CallScope call("gather", x.where());
  NodeRef node = node_of(x), places = checked_index(index);
  size_t along = checked_axis(axis, node->rank());
  check_within(node, places, along);
  for (size_t i = 0; i < node->rank(); ++i)
    if (i != along) node = cut(node, i, index_const(0), places->dim(i));
  return wrap(gather_node(node, places, along));
}

Tensor index_select(const Operand& x, const Operand& index, int64_t axis) {
  CallScope call("index_select", x.where());
  NodeRef node = node_of(x), places = checked_index(index);
  size_t along = checked_axis(axis, node->rank());
  std::vector<NodeRef> dims = dims_of(node), line(dims.size(), index_const(1)), result = dims;
  auto place = result.erase(result.begin() + static_cast<std::ptrdiff_t>(along));
  result.insert(place, places->shape->dims().begin(), places->shape->dims().end());
  check_sizes(result);
  line[along] = dims[along] = node_of(flatten(wrap(places)))->dim(0);
  NodeRef spread_places = expand_node(reshape_node(places, line), dims);
  return wrap(reshape_node(gather_node(node, spread_places, along), result));
}

Tensor scatter(const Operand& x, int64_t axis, const Operand& index, const Operand& values) {
  CallScope call("scatter", x.where());
  return scatter_node(Op::Scatter, x, axis, index, values);
}

Tensor scatter_add(const Operand& x, int64_t axis, const Operand& index, const Operand& values) {
  CallScope call("scatter_add", x.where());
  if (is_bool(node_of(x)->dtype)) fail("bools cannot be added", "cast x to an integer first");
  return scatter_node(Op::ScatterAdd, x, axis, index, values);
}

// All zeros for an index that is no class.
Tensor one_hot(const Operand& index, const Dim& classes, DType dtype) {
  CallScope call("one_hot", index.where());
  if (dtype == DType::Index) fail("a tensor cannot hold symbolic sizes", "use i64");
  NodeRef node = checked_index(index), count = node_of(classes);
  if (bounds(count).min < 0)
    fail(fmt::format("there are {} classes", to_text(count)), "give 0 classes or more");
  std::vector<NodeRef> dims = dims_of(node);
  dims.push_back(count);
  check_sizes(dims);
  Tensor column = wrap(positions(dims, node->rank()));
  return cast(unsqueeze(wrap(node), -1) == column, dtype);
}

Tensor masked_fill(const Operand& x, const Operand& mask, const Operand& value) {
  CallScope call("masked_fill", x.where());
  if (!is_bool(node_of(mask)->dtype))
    fail(fmt::format("the mask is {}, not bool", name(node_of(mask)->dtype)),
         "compare it, or cast it to bool");
  return anneal::where(mask, value, x);
}

}  // namespace anneal
