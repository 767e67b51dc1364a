// f16, bf16 and fp8 are for storing: arithmetic on them is done in f32 and rounded back. Must keep
// one rounding an op, as the IR has it.
//
// The interpreter computes in f64 and rounds once; here f32 rounds first. For + - * / and sqrt that
// is the same number, since f32 has more than twice the digits of each of them plus two (24 >= 2 *
// 11 + 2), but for products and quotients of bf16 that are denormal in f32 too (below 2^-126).
// There and for the other functions the result may be the narrow float beside it.
#include <cmath>

#include "ir/build.h"
#include "ir/infer.h"
#include "kernel/body/math_rules.h"

namespace anneal {
namespace {

using namespace captures;

constexpr OpSet kComparisons{Op::Lt, Op::Le, Op::Eq};

bool is_narrow_value(NodeRef node) { return is_narrow_float(node->dtype); }
bool has_narrow_source(NodeRef node) { return is_narrow_float(node->source(0)->dtype); }

// Every elementwise op that computes floats of its sources' dtype.
OpSet arithmetic() {
  OpSet ops;
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (is_elementwise(op) && info(op).type == TypeRule::Same && accepts(info(op), DType::F32))
      ops.add(op);
  }
  return ops;
}

// Every narrow float is an f32.
NodeRef widened(NodeRef node) {
  if (!is_narrow_value(node)) return node;
  if (node->is_const())
    return make_const(Scalar::of(DType::F32, node->scalar().as_double()), node->shape->dims());
  return make_cast(node, DType::F32);
}

// The op on f32, as if its sources had been.
NodeRef in_f32(NodeRef node) {
  std::vector<NodeRef> sources;
  for (NodeRef source : node->sources()) sources.push_back(widened(source));
  return make(node->op, sources, node->arg);
}

NodeRef rounded_back(const Match& m) { return make_cast(in_f32(m.root()), m.root()->dtype); }

// Of nothing, an extreme is its unit; a format without infinities has another one than f32.
NodeRef reduced_in_f32(const Match& m) {
  NodeRef wide = in_f32(m.root());
  const DType dtype = m.root()->dtype;
  if (std::isinf(highest(dtype).as_double())) return make_cast(wide, dtype);
  if (wide->op == Op::MaxOver)
    wide = make(Op::Max, {wide, make_const(DType::F32, lowest(dtype).as_double())});
  else if (wide->op == Op::MinOver)
    wide = make(Op::Min, {wide, make_const(DType::F32, highest(dtype).as_double())});
  return make_cast(wide, dtype);
}

// A choice rounds nothing: it moves bits.
NodeRef choose_bits(const Match& m) {
  const DType dtype = m.root()->dtype, bits = byte_size(dtype) == 1 ? DType::U8 : DType::U16;
  return make_bitcast(make(Op::Where, {m[x], make_bitcast(m[y], bits), make_bitcast(m[z], bits)}),
                      dtype);
}

}  // namespace

const RuleSet kNarrowFloatRules{
    "narrow-floats",
    {
        {"arithmetic", any_of(arithmetic()).when(is_narrow_value), rounded_back},
        {"compare", any_of(kComparisons).when(has_narrow_source),
         [](const Match& m) { return in_f32(m.root()); }},
        {"choose", op(Op::Where, x, y, z).when(is_narrow_value), choose_bits},
        {"reduce",
         any_of({Op::SumOver, Op::ProdOver, Op::MaxOver, Op::MinOver}).when(is_narrow_value),
         reduced_in_f32},
    }};

}  // namespace anneal
