// Computes now what is known now. The meaning of an op is asked of ir/semantics.h, never repeated.
#include <algorithm>
#include <array>

#include "ir/build.h"
#include "ir/index.h"
#include "ir/semantics.h"
#include "transform/simplify.h"

namespace anneal {
namespace {

using namespace captures;

OpSet elementwise_ops() {
  OpSet ops;
  for (int i = 0; i < kTensorOpCount; ++i)
    if (is_elementwise(static_cast<Op>(i))) ops.add(static_cast<Op>(i));
  return ops;
}

// Index expressions are folded by src/symbolic, with its own checks for overflow.
NodeRef fold_elementwise(const Match& m) {
  NodeRef node = m.root();
  std::array<Scalar, 4> values;
  for (size_t i = 0; i < node->source_count; ++i) {
    NodeRef source = node->source(i);
    if (!source->is_const() || source->dtype == DType::Index) return unchanged;
    values[i] = source->scalar();
  }
  return make_const(evaluate(node->op, node->dtype, std::span(values.data(), node->source_count)),
                    node->shape->dims());
}

NodeRef fold_movement(const Match& m) {
  return make_const(m[c]->scalar(), m.root()->shape->dims());
}

// n times the same number. Only where the product is as exact as the sum: integers, and floats
// narrow enough that n copies add up without rounding in f64.
NodeRef fold_sum(const Match& m) {
  NodeRef sum = m.root();
  int64_t count = 1;
  for (int64_t axis : sum->axes()) {
    NodeRef dim = m[c]->dim(static_cast<size_t>(axis));
    if (!is_static(dim)) return unchanged;
    count *= static_value(dim);
  }
  Scalar value = m[c]->scalar();
  if (!is_float(value.dtype())) {
    Scalar factors[] = {value, Scalar::of_int(value.dtype(), count)};
    return make_const(evaluate(Op::Mul, value.dtype(), factors), sum->shape->dims());
  }
  constexpr int64_t kExact = int64_t{1} << 28;
  if (value.dtype() == DType::F64 || count > kExact) return unchanged;
  double product = count == 0 ? 0.0 : value.as_double() * static_cast<double>(count);
  return make_const(Scalar::of(value.dtype(), product), sum->shape->dims());
}

NodeRef fold_extreme(const Match& m) {
  for (int64_t axis : m.root()->axes()) {
    NodeRef dim = m[c]->dim(static_cast<size_t>(axis));
    if (!is_static(dim) || static_value(dim) == 0) return unchanged;
  }
  return make_const(m[c]->scalar(), m.root()->shape->dims());
}

}  // namespace

const RuleSet kFoldRules{
    "fold",
    {
        {"elementwise", any_of(elementwise_ops()), fold_elementwise},
        {"movement", any_of({Op::Reshape, Op::Permute, Op::Expand, Op::Shrink, Op::Flip}, c),
         fold_movement},
        {"pad-zero", op(Op::Pad, 0), [](const Match& m) { return make_const_like(m.root(), 0); }},
        {"sum", op(Op::ReduceSum, c), fold_sum},
        {"extreme", any_of({Op::ReduceMax, Op::ReduceMin}, c), fold_extreme},
    }};

}  // namespace anneal
