// Reductions and running reductions. Each is a reduce op, or a formula over such that keeps its
// precision and its meaning for NaN, infinities and empty axes.
#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include <anneal/grad.h>
#include <anneal/tensor.h>

#include "symbolic/simplify.h"
#include "tensor/movement.h"
#include "tensor/wide.h"

namespace anneal {
namespace {

// A reduction the user asked for: axes checked, reduced to size 1 until done() drops them.
struct Request {
  NodeRef x;
  std::vector<int64_t> axes;
  bool keep_axes;

  Request(const Operand& operand, const Axes& the_axes, bool keep)
      : x(node_of(operand)), axes(checked_axes(the_axes, x->rank())), keep_axes(keep) {}

  bool reduces(size_t axis) const {
    return std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(axis));
  }

  NodeRef reduce(Op op, NodeRef node) const { return reduce_node(op, node, axes); }

  // How many elements meet in one.
  NodeRef count() const {
    std::vector<NodeRef> sizes;
    for (int64_t axis : axes) sizes.push_back(x->dim(static_cast<size_t>(axis)));
    return simplify(element_count_expr(sizes));
  }

  Tensor done(NodeRef node) const {
    if (keep_axes) return wrap(node);
    std::vector<NodeRef> dims;
    for (size_t axis = 0; axis < node->rank(); ++axis)
      if (!reduces(axis)) dims.push_back(node->dim(axis));
    return wrap(reshape_node(node, dims));
  }
  Tensor done(const Tensor& tensor) const { return done(node_of(tensor)); }

  void check_not_empty(const char* what) const {
    for (int64_t axis : axes)
      if (is_number(x->dim(static_cast<size_t>(axis)), 0))
        fail(fmt::format("axis {} of {} is empty and has no {}", axis, shape_text(x), what),
             "an empty axis has a sum and a product only; give it an element first");
  }
};

// Sums and products of narrow integers have 32 bits: bool, i8 and i16 become i32, u8 and u16 u32.
NodeRef as_summand(NodeRef node) {
  if (is_float(node->dtype) || byte_size(node->dtype) >= 4) return node;
  return make_cast(node, is_unsigned(node->dtype) ? DType::U32 : DType::I32);
}

NodeRef as_wide_float(NodeRef node) { return make_cast(node, wide_dtype(node->dtype)); }

NodeRef divide(NodeRef node, NodeRef count) {
  return make(Op::Div, {node, spread(count, node->dtype, node->shape->dims())});
}

// Bools as numbers whose largest is `any` and whose smallest is `all`, of no elements too.
NodeRef as_truth(NodeRef node) { return make_cast(make_cast(node, DType::Bool), DType::U32); }

Tensor extreme(const Request& request, Op op) {
  request.check_not_empty(op == Op::ReduceMax ? "largest element" : "smallest element");
  if (!is_bool(request.x->dtype)) return request.done(request.reduce(op, request.x));
  NodeRef truth = request.reduce(op, as_truth(request.x));
  return request.done(make_cast(truth, DType::Bool));
}

Tensor variance(const Request& request, int64_t correction) {
  Tensor x = wrap(as_wide_float(request.x));
  NodeRef count = request.count();
  Tensor center = wrap(divide(request.reduce(Op::ReduceSum, node_of(x)), count));
  Tensor squares = square(x - center);
  NodeRef freedom = simplify(index_sub(count, index_const(correction)));
  return wrap(
      divide(request.reduce(Op::ReduceSum, node_of(squares)), greatest(freedom, index_const(0))));
}

// The first place of the extreme. NaN is the extreme of both kinds, as in NumPy.
Tensor place_of(const Request& request, Op op) {
  request.check_not_empty(op == Op::ReduceMax ? "largest element" : "smallest element");
  NodeRef x = is_bool(request.x->dtype) ? as_truth(request.x) : request.x;
  Tensor value = wrap(x), best = wrap(request.reduce(op, x));
  Tensor is_best = value == best;
  if (is_float(x->dtype)) is_best = is_best | is_nan(value);
  Tensor place = wrap(make_iota(DType::I32, x->shape->dims(), request.axes[0]));
  Tensor candidate = anneal::where(is_best, place, std::numeric_limits<int32_t>::max());
  return request.done(request.reduce(Op::ReduceMin, node_of(candidate)));
}

// ---- running sums and products

// An axis up to this long is one triangle of n * n; a longer one is cut into blocks.
constexpr int64_t kLongestTriangle = 256, kBlock = 128;

struct Scan {
  Op op;
  Scalar unit;  // what changes nothing

  Tensor combined(const Tensor& a, const Tensor& b) const {
    switch (op) {
      case Op::ReduceSum: return a + b;
      case Op::ReduceProd: return a * b;
      case Op::ReduceMax: return maximum(a, b);
      default: return minimum(a, b);
    }
  }

  // Result i is the reduction of the elements j <= i. Others are replaced by the unit, not
  // multiplied by 0, so that NaN and infinities reach only what follows them.
  NodeRef triangle(NodeRef x, size_t axis) const {
    NodeRef size = x->dim(axis);
    std::vector<NodeRef> dims = dims_of(x);
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), index_const(1));
    NodeRef row = reshape_node(x, dims);
    dims[axis] = size;
    check_sizes(dims);
    int64_t i = static_cast<int64_t>(axis), j = i + 1;
    NodeRef before = make(Op::Le, {make_iota(DType::I32, dims, j), make_iota(DType::I32, dims, i)});
    NodeRef square = make(Op::Where, {before, expand_node(row, dims), make_const(unit, dims)});
    return reshape_node(reduce_node(op, square, std::array{j}), x->shape->dims());
  }

  // Every block by itself, and the blocks before it reduced to one element each.
  NodeRef blocks(NodeRef x, size_t axis) const {
    int64_t size = static_value(x->dim(axis)), count = (size - 1) / kBlock + 1;
    std::vector<Padding> padding(x->rank());
    padding[axis].after = count * kBlock - size;
    NodeRef padded = pad_constant(x, padding, unit);
    std::vector<NodeRef> dims = dims_of(x);
    dims[axis] = index_const(count);
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, index_const(kBlock));
    check_sizes(dims);
    NodeRef inside = triangle(reshape_node(padded, dims), axis + 1);
    NodeRef last = cut(inside, axis + 1, index_const(kBlock - 1), index_const(1));

    NodeRef through = run(last, axis);
    padding.assign(x->rank() + 1, {});
    padding[axis].before = 1;
    NodeRef before =
        pad_constant(cut(through, axis, index_const(0), index_const(count - 1)), padding, unit);
    Tensor joined = combined(wrap(before), wrap(inside));
    NodeRef flat = reshape_node(node_of(joined), padded->shape->dims());
    return cut(flat, axis, index_const(0), index_const(size));
  }

  NodeRef run(NodeRef x, size_t axis) const {
    NodeRef size = x->dim(axis);
    bool is_short = !is_static(size) || static_value(size) <= kLongestTriangle;
    return is_short ? triangle(x, axis) : blocks(x, axis);
  }
};

Tensor scan(NodeRef x, int64_t axis, const Scan& how) {
  return wrap(how.run(x, checked_axis(axis, x->rank())));
}

}  // namespace

Tensor sum(const Operand& x, const Axes& axes, bool keep_axes) {
  CallScope call("sum", x.where());
  Request request(x, axes, keep_axes);
  return request.done(request.reduce(Op::ReduceSum, as_summand(request.x)));
}

Tensor prod(const Operand& x, const Axes& axes, bool keep_axes) {
  CallScope call("prod", x.where());
  Request request(x, axes, keep_axes);
  return request.done(request.reduce(Op::ReduceProd, as_summand(request.x)));
}

Tensor max(const Operand& x, const Axes& axes, bool keep_axes) {
  CallScope call("max", x.where());
  return extreme(Request(x, axes, keep_axes), Op::ReduceMax);
}

Tensor min(const Operand& x, const Axes& axes, bool keep_axes) {
  CallScope call("min", x.where());
  return extreme(Request(x, axes, keep_axes), Op::ReduceMin);
}

// Of no elements it is NaN. Integers become f32.
Tensor mean(const Operand& x, const Axes& axes, bool keep_axes) {
  CallScope call("mean", x.where());
  Request request(x, axes, keep_axes);
  NodeRef total = request.reduce(Op::ReduceSum, as_wide_float(request.x));
  return request.done(make_cast(divide(total, request.count()), real_dtype(request.x->dtype)));
}

// NaN where there are not more elements than the correction, as in NumPy.
Tensor var(const Operand& x, const Axes& axes, bool keep_axes, int64_t correction) {
  CallScope call("var", x.where());
  Request request(x, axes, keep_axes);
  return request.done(cast(variance(request, correction), real_dtype(request.x->dtype)));
}

Tensor stddev(const Operand& x, const Axes& axes, bool keep_axes, int64_t correction) {
  CallScope call("stddev", x.where());
  Request request(x, axes, keep_axes);
  return request.done(cast(sqrt(variance(request, correction)), real_dtype(request.x->dtype)));
}

Tensor any(const Operand& x, const Axes& axes, bool keep_axes) {
  CallScope call("any", x.where());
  Request request(x, axes, keep_axes);
  return request.done(make_cast(request.reduce(Op::ReduceMax, as_truth(request.x)), DType::Bool));
}

Tensor all(const Operand& x, const Axes& axes, bool keep_axes) {
  CallScope call("all", x.where());
  Request request(x, axes, keep_axes);
  return request.done(make_cast(request.reduce(Op::ReduceMin, as_truth(request.x)), DType::Bool));
}

Tensor argmax(const Operand& x, int64_t axis, bool keep_axis) {
  CallScope call("argmax", x.where());
  return place_of(Request(x, axis, keep_axis), Op::ReduceMax);
}

Tensor argmin(const Operand& x, int64_t axis, bool keep_axis) {
  CallScope call("argmin", x.where());
  return place_of(Request(x, axis, keep_axis), Op::ReduceMin);
}

// log sum e^x = m + log sum e^(x - m) for any m, so m is not differentiated. The largest x keeps
// the powers finite; where it is infinite itself (or NaN) 0 does: log sum e^-inf = log 0 = -inf.
Tensor logsumexp(const Operand& x, const Axes& axes, bool keep_axes) {
  CallScope call("logsumexp", x.where());
  Request request(x, axes, keep_axes);
  Tensor value = wrap(as_wide_float(request.x));
  Tensor largest = wrap(request.reduce(Op::ReduceMax, node_of(value)));
  Tensor shift = gradient_stopped(anneal::where(is_finite(largest), largest, 0));
  Tensor powers = exp(value - shift);
  Tensor total = wrap(request.reduce(Op::ReduceSum, node_of(powers)));
  return request.done(cast(log(total) + shift, real_dtype(request.x->dtype)));
}

Tensor cumsum(const Operand& x, int64_t axis) {
  CallScope call("cumsum", x.where());
  NodeRef node = as_summand(node_of(x));
  return scan(node, axis, {Op::ReduceSum, Scalar::of_int(node->dtype, 0)});
}

Tensor cumprod(const Operand& x, int64_t axis) {
  CallScope call("cumprod", x.where());
  NodeRef node = as_summand(node_of(x));
  return scan(node, axis, {Op::ReduceProd, Scalar::of_int(node->dtype, 1)});
}

Tensor cummax(const Operand& x, int64_t axis) {
  CallScope call("cummax", x.where());
  NodeRef node = as_number(node_of(x));
  return scan(node, axis, {Op::ReduceMax, lowest(node->dtype)});
}

Tensor cummin(const Operand& x, int64_t axis) {
  CallScope call("cummin", x.where());
  NodeRef node = as_number(node_of(x));
  return scan(node, axis, {Op::ReduceMin, highest(node->dtype)});
}

Tensor Tensor::sum(const Axes& axes, bool keep_axes, Location where) const {
  return anneal::sum(Operand(*this, where), axes, keep_axes);
}
Tensor Tensor::mean(const Axes& axes, bool keep_axes, Location where) const {
  return anneal::mean(Operand(*this, where), axes, keep_axes);
}
Tensor Tensor::max(const Axes& axes, bool keep_axes, Location where) const {
  return anneal::max(Operand(*this, where), axes, keep_axes);
}
Tensor Tensor::min(const Axes& axes, bool keep_axes, Location where) const {
  return anneal::min(Operand(*this, where), axes, keep_axes);
}

}  // namespace anneal
