// Finding places by values: in sorted columns, by counting, where something is not zero. Results
// have sizes that do not depend on data.
#include <array>
#include <bit>

#include <fmt/format.h>

#include <anneal/functional.h>

#include "symbolic/bounds.h"
#include "symbolic/simplify.h"
#include "tensor/movement.h"

namespace anneal {
namespace {

// Wide enough to count to the largest value, and one more.
DType counting_dtype(NodeRef count) {
  return bounds(count).max < int64_t{1} << 30 ? DType::I32 : DType::I64;
}

Tensor constant(DType dtype, int64_t value, std::span<const NodeRef> dims) {
  return wrap(make_const(Scalar::of_int(dtype, value), dims));
}

// In the order of sort(): NaN comes last.
Tensor is_before(const Tensor& a, const Tensor& b) {
  return is_float(a.dtype()) ? (a < b) | (is_nan(b) & !is_nan(a)) : a < b;
}

// How many elements of each column come before a value, found by halving: whether the element at
// the end of the next 2^k still does decides if they all count.
Tensor halving_search(const Tensor& columns, const Tensor& values, bool right) {
  NodeRef count = node_of(columns.dim(-1));
  const DType dtype = counting_dtype(count);
  const Tensor size = wrap(spread(count, dtype, {}));
  Tensor found = constant(dtype, 0, node_of(values)->shape->dims());
  const auto longest = static_cast<uint64_t>(bounds(count).max);
  for (auto step = static_cast<int64_t>(std::bit_floor(longest)); step > 0; step /= 2) {
    const Tensor next = found + step;
    const Tensor element = take_along_axis(columns, next - 1, -1);
    const Tensor counts = right ? !is_before(values, element) : is_before(element, values);
    found = where((next <= size) & counts, next, found);
  }
  return found;
}

NodeRef checked_count(const Dim& count, const char* what) {
  NodeRef node = node_of(count);
  if (bounds(node).min < 0)
    fail(fmt::format("the {} {} {} negative", what, to_text(node),
                     is_static(node) ? "is" : "can be"),
         "it starts at 0");
  return node;
}

}  // namespace

Tensor searchsorted(const Operand& sorted, const Operand& values, bool right) {
  CallScope call("searchsorted", sorted.where());
  DType dtype = meeting_dtype(std::array{&sorted, &values});
  if (is_bool(dtype)) dtype = DType::I32;
  const Tensor columns = wrap(lift(sorted, dtype)), wanted = wrap(lift(values, dtype));
  if (columns.rank() == 0) fail("a scalar is no sorted axis", "give it one");
  if (columns.rank() == 1)
    return reshape(halving_search(columns, flatten(wanted), right), wanted.shape());
  if (columns.rank() != wanted.rank())
    fail(fmt::format("the sorted columns are {}, the values {}", to_text(columns.shape()),
                     to_text(wanted.shape())),
         "give both the same axes, or one sorted axis for all values");
  return halving_search(columns, wanted, right);
}

Tensor bincount(const Operand& x, const Dim& length, const Tensor& weights) {
  CallScope call("bincount", x.where());
  NodeRef count = checked_count(length, "length"), places = as_number(node_of(x));
  if (!is_int(places->dtype))
    fail(fmt::format("x is {}, not an integer", name(places->dtype)), "cast it to i32");
  Tensor each = constant(DType::I32, 1, places->shape->dims());
  if (weights.defined()) {
    each = wrap(as_number(node_of(weights)));
    if (each.shape() != wrap(places).shape())
      fail(fmt::format("x is {}, the weights {}", shape_text(places), to_text(each.shape())),
           "give one weight an element");
  }
  const std::vector<NodeRef> dims{count};
  return scatter_add(constant(each.dtype(), 0, dims), 0, flatten(wrap(places)), flatten(each));
}

Tensor nonzero(const Operand& x, const Dim& size, int64_t fill) {
  CallScope call("nonzero", x.where());
  NodeRef node = node_of(x);
  const std::vector<NodeRef> rows{checked_count(size, "size")};
  const Tensor flags = flatten(wrap(make_cast(node, DType::Bool)));
  const DType dtype = counting_dtype(node_of(flags.dim(0)));
  const Tensor place = wrap(make_iota(dtype, node_of(flags)->shape->dims(), 0));
  // The n-th that is not zero is written to row n; the others, and those beyond the rows, nowhere.
  const Tensor row = where(flags, cumsum(cast(flags, dtype)) - 1, -1);
  const Tensor found = scatter(constant(dtype, -1, rows), 0, row, place);
  std::vector<Tensor> columns(node->rank());
  Tensor rest = found;
  for (size_t axis = node->rank(); axis-- > 0;) {
    const Tensor extent = wrap(spread(node->dim(axis), dtype, {}));
    columns[axis] = where(found < 0, constant(dtype, fill, {}), rest % extent);
    rest = floor_divide(rest, extent);
  }
  if (columns.empty()) return constant(dtype, 0, std::vector{rows[0], index_const(0)});
  return stack(columns, 1);
}

}  // namespace anneal
