// Order statistics, norms and differences along axes. Must not choose between NaN and a number
// silently: a NaN among the elements is the answer.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <anneal/functional.h>

#include "symbolic/bounds.h"
#include "symbolic/simplify.h"
#include "tensor/movement.h"
#include "tensor/wide.h"

namespace anneal {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// x with the axes that are reduced as one, the last, and the sizes of the result.
struct Columns {
  NodeRef x;
  std::vector<NodeRef> result;

  Columns(NodeRef node, const Axes& axes, bool keep_axes) {
    const std::vector<int64_t> reduced = checked_axes(axes, node->rank());
    std::vector<int64_t> order;
    std::vector<NodeRef> dims, column;
    for (size_t axis = 0; axis < node->rank(); ++axis) {
      const bool kept = !std::ranges::binary_search(reduced, static_cast<int64_t>(axis));
      if (kept) order.push_back(static_cast<int64_t>(axis));
      (kept ? dims : column).push_back(node->dim(axis));
      if (kept || keep_axes) result.push_back(kept ? node->dim(axis) : index_const(1));
    }
    order.insert(order.end(), reduced.begin(), reduced.end());
    dims.push_back(simplify(element_count_expr(column)));
    x = reshape_node(permute_node(node, order), dims);
    if (is_number(count(), 0))
      fail(fmt::format("the axes to look along are empty in {}", shape_text(node)),
           "nothing has no quantiles; give it an element first");
  }

  NodeRef count() const { return x->shape->dims().back(); }
};

// Between the elements `lower` and `lower` + 1 of a sorted column, so far from the first of them.
struct Place {
  Tensor lower, weight;  // of one axis
};

// q (n - 1), as NumPy's and PyTorch's "linear" has it.
Place place_of(const Operand& q, NodeRef count, DType dtype) {
  const bool is_number = q.kind() != Operand::Kind::Tensor;
  const double part =
      q.kind() == Operand::Kind::Float ? q.real() : static_cast<double>(q.integer());
  if (is_number && !(part >= 0 && part <= 1))
    fail(fmt::format("q is {}", part), "a quantile is a part of 1: give 0 to 1");
  if (is_number && is_static(count)) {  // exact for columns of any length
    const double place = part * static_cast<double>(static_value(count) - 1);
    const std::vector<NodeRef> one{index_const(1)};
    return {wrap(make_const(DType::I32, std::floor(place), one)),
            wrap(make_const(dtype, place - std::floor(place), one))};
  }
  NodeRef last = simplify(index_sub(count, index_const(1)));
  Tensor place = flatten(wrap(lift(q, dtype))) * wrap(spread(last, dtype, {}));
  Tensor lower = floor(place);
  return {cast(lower, DType::I32), place - lower};
}

// Elements of the sorted columns at places of one axis: [.., n] gives [.., places].
Tensor elements_at(const Tensor& columns, const Tensor& places) {
  Sizes sizes(columns.rank(), 1);
  sizes.back() = places.dim(0);
  return take_along_axis(columns, reshape(places, sizes), -1);
}

// [.., places]
Tensor quantiles(const Columns& columns, const Operand& q) {
  const Tensor sorted = sort(wrap(columns.x)).values;
  const DType dtype = wide_dtype(columns.x->dtype);
  NodeRef count = columns.count();
  const Place place = place_of(q, count, dtype);
  const Tensor last = wrap(spread(simplify(index_sub(count, index_const(1))), DType::I32, {}));
  Tensor low = cast(elements_at(sorted, place.lower), dtype);
  Tensor high = cast(elements_at(sorted, minimum(place.lower + 1, last)), dtype);
  // A place that is an element's own does not look at the next, which may be infinite.
  Tensor result = where(place.weight == 0, low, low + (high - low) * place.weight);
  Tensor valid = wrap(make_const(DType::Bool, 1));
  if (is_float(sorted.dtype())) valid = !is_nan(elements_at(sorted, reshape(last, {1})));
  if (bounds(count).min < 1) valid = valid & (last >= 0);
  if (q.kind() == Operand::Kind::Tensor) {
    const Tensor parts = flatten(wrap(lift(q, dtype)));
    valid = valid & (parts >= 0) & (parts <= 1);
  }
  return where(valid, result, kNan);
}

// The root of a sum of powers, whose slope is taken to be 0 at 0.
Tensor root(const Tensor& total, double p) {
  const Tensor is_zero = total == 0, safe = where(is_zero, 1, total);
  return where(is_zero, 0, p == 2 ? sqrt(safe) : pow(safe, 1 / p));
}

}  // namespace

Tensor quantile(const Operand& x, const Operand& q, const Axes& axes, bool keep_axes) {
  CallScope call("quantile", x.where());
  const size_t q_rank = q.kind() == Operand::Kind::Tensor ? node_of(q.tensor())->rank() : 0;
  if (q_rank > 1)
    fail(fmt::format("q is {}", shape_text(node_of(q))), "give a scalar or one axis of them");
  if (!is_float(node_of(q)->dtype) && q.kind() == Operand::Kind::Tensor)
    fail(fmt::format("q is {}", name(node_of(q)->dtype)), "parts of 1 are floats");
  const Columns columns(node_of(x), axes, keep_axes);
  NodeRef found = node_of(cast(quantiles(columns, q), real_dtype(x)));
  std::vector<NodeRef> sizes = columns.result;
  if (q_rank == 0) return wrap(reshape_node(found, sizes));
  // Several quantiles are the first axis, as in NumPy and PyTorch.
  std::vector<int64_t> order{static_cast<int64_t>(found->rank()) - 1};
  for (int64_t axis = 0; axis < order[0]; ++axis) order.push_back(axis);
  sizes.insert(sizes.begin(), found->shape->dims().back());
  return wrap(reshape_node(permute_node(found, order), sizes));
}

Tensor median(const Operand& x, const Axes& axes, bool keep_axes) {
  CallScope call("median", x.where());
  return quantile(x, 0.5, axes, keep_axes);
}

Tensor norm(const Operand& x, double p, const Axes& axes, bool keep_axes) {
  CallScope call("norm", x.where());
  if (std::isnan(p)) fail("p is NaN", "give 2, 1, infinity or another number");
  const Tensor size = abs(widen(x));
  const DType dtype = real_dtype(x);
  if (p == kInfinity) return cast(max(size, axes, keep_axes), dtype);
  if (p == -kInfinity) return cast(min(size, axes, keep_axes), dtype);
  if (p == 0) return cast(sum(cast(size != 0, size.dtype()), axes, keep_axes), dtype);
  if (p == 1) return cast(sum(size, axes, keep_axes), dtype);
  return cast(root(sum(p == 2 ? square(size) : pow(size, p), axes, keep_axes), p), dtype);
}

Tensor diff(const Operand& x, int64_t order, int64_t axis) {
  CallScope call("diff", x.where());
  if (order < 0) fail(fmt::format("the order is {}", order), "give 0 or more");
  NodeRef node = as_number(node_of(x));
  const size_t along = checked_axis(axis, node->rank());
  for (; order > 0 && !is_number(node->dim(along), 0); --order) {
    NodeRef size = node->dim(along), zero = index_const(0);
    NodeRef count = greatest(simplify(index_sub(size, index_const(1))), zero);
    NodeRef begin = simplify(index_sub(size, count));
    node = node_of(wrap(cut(node, along, begin, count)) - wrap(cut(node, along, zero, count)));
  }
  return wrap(node);
}

}  // namespace anneal
