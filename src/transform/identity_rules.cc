// Removes arithmetic that leaves every bit unchanged. Floats keep x + 0 (-0 becomes +0) and x * 0
// (NaN stays NaN); integers wrap, so their rules hold at every value.
#include "ir/build.h"
#include "ir/float_formats.h"
#include "ir/index.h"
#include "transform/simplify.h"

namespace anneal {
namespace {

using namespace captures;

bool is_integer(NodeRef node) { return is_int(node->dtype); }
bool is_boolean(NodeRef node) { return is_bool(node->dtype); }
bool is_no_float(NodeRef node) { return !is_float(node->dtype); }
bool is_discrete(NodeRef node) { return is_int(node->dtype) || is_bool(node->dtype); }
bool is_tensor(NodeRef node) { return node->dtype != DType::Index; }

bool is_negatable(NodeRef node) { return !is_unsigned(node->dtype); }

NodeRef all_ones(NodeRef like) {
  return make_const(Scalar::of_int(like->dtype, -1), like->shape->dims());
}
bool is_all_ones(NodeRef node) {
  return node->is_const() && is_discrete(node) && node == all_ones(node);
}

// Whether every value of `from` survives a visit to `to`.
bool holds_all(DType to, DType from) {
  if (from == to || is_bool(from)) return true;
  if (is_int(from) && is_int(to))
    return min_value(to) <= min_value(from) && max_value(to) >= max_value(from);
  if (is_float(from) && is_float(to)) return promote(from, to) == to;
  // Of a signed integer the sign is no digit; the mantissa's first digit is not stored.
  size_t digits = byte_size(from) * 8 - (is_signed(from) ? 1 : 0);
  return is_int(from) && is_float(to) &&
         digits <= static_cast<size_t>(format_of(to).mantissa_bits) + 1;
}

constexpr OpSet kRoundings{Op::Floor, Op::Ceil, Op::Trunc, Op::Round};

}  // namespace

const RuleSet kIdentityRules{
    "identities",
    {
        // Sums and products
        {"mul-one", x * 1, [](const Match& m) { return m[x]; }},
        {"mul-minus-one", (x * -1).when(is_tensor),
         [](const Match& m) { return make(Op::Neg, {m[x]}); }},
        {"int-mul-zero", (x * 0).when(is_integer),
         [](const Match& m) { return make_const_like(m[x], 0); }},
        {"int-add-zero", (x + 0).when(is_integer), [](const Match& m) { return m[x]; }},
        {"add-minus-zero", x + -0.0, [](const Match& m) { return m[x]; }},
        {"int-add-constants", ((x + c) + d).when(is_integer),
         [](const Match& m) { return make(Op::Add, {m[x], make(Op::Add, {m[c], m[d]})}); }},
        {"int-mul-constants", ((x * c) * d).when(is_integer),
         [](const Match& m) { return make(Op::Mul, {m[x], make(Op::Mul, {m[c], m[d]})}); }},
        {"int-cancel", (x + op(Op::Neg, x)).when(is_integer),
         [](const Match& m) { return make_const_like(m[x], 0); }},
        {"div-one", x / 1, [](const Match& m) { return m[x]; }},
        {"floor-div-one", floor_div(x, 1).when(is_no_float), [](const Match& m) { return m[x]; }},
        {"mod-one", mod(x, 1).when(is_no_float),
         [](const Match& m) { return make_const_like(m[x], 0); }},
        {"neg-neg", op(Op::Neg, op(Op::Neg, x)), [](const Match& m) { return m[x]; }},
        {"neg-product", op(Op::Neg, x) * op(Op::Neg, y),
         [](const Match& m) { return make(Op::Mul, {m[x], m[y]}); }},
        {"pow-one", op(Op::Pow, x, 1), [](const Match& m) { return m[x]; }},
        {"pow-zero", op(Op::Pow, x, 0), [](const Match& m) { return make_const_like(m[x], 1); }},

        // Signs, roundings and extremes
        {"abs-abs", op(Op::Abs, op(Op::Abs, x).as(y)), [](const Match& m) { return m[y]; }},
        {"abs-neg", op(Op::Abs, op(Op::Neg, x)).when(is_negatable),
         [](const Match& m) { return make(Op::Abs, {m[x]}); }},
        {"round-rounded", any_of(kRoundings, any_of(kRoundings, x).as(y)),
         [](const Match& m) { return m[y]; }},
        {"extreme-of-same", any_of({Op::Max, Op::Min}, x, x), [](const Match& m) { return m[x]; }},

        // Bits and logic
        {"and-same", x& x, [](const Match& m) { return m[x]; }},
        {"or-same", x | x, [](const Match& m) { return m[x]; }},
        {"xor-same", x ^ x, [](const Match& m) { return make_const_like(m[x], 0); }},
        {"and-zero", x & 0, [](const Match& m) { return make_const_like(m[x], 0); }},
        {"or-zero", x | 0, [](const Match& m) { return m[x]; }},
        {"xor-zero", x ^ 0, [](const Match& m) { return m[x]; }},
        {"and-ones", x& Pattern(c).when(is_all_ones), [](const Match& m) { return m[x]; }},
        {"or-ones", x | Pattern(c).when(is_all_ones),
         [](const Match& m) { return all_ones(m[x]); }},
        {"xor-twice", (x ^ y) ^ y, [](const Match& m) { return m[x]; }},
        {"shift-zero", any_of({Op::Shl, Op::Shr}, x, 0), [](const Match& m) { return m[x]; }},

        // Comparisons and choices
        {"less-than-self", (Pattern(x).when(is_discrete) < x),
         [](const Match& m) { return make_const_like(m.root(), 0); }},
        {"equal-to-self", op(Op::Eq, Pattern(x).when(is_discrete), x),
         [](const Match& m) { return make_const_like(m.root(), 1); }},
        {"equal-to-true", op(Op::Eq, Pattern(x).when(is_boolean), 1),
         [](const Match& m) { return m[x]; }},
        {"where-true", op(Op::Where, 1, x, y), [](const Match& m) { return m[x]; }},
        {"where-false", op(Op::Where, 0, x, y), [](const Match& m) { return m[y]; }},
        {"where-same", op(Op::Where, z, x, x), [](const Match& m) { return m[x]; }},
        {"where-not", op(Op::Where, z ^ 1, x, y),
         [](const Match& m) { return make(Op::Where, {m[z], m[y], m[x]}); }},
        {"where-nested", op(Op::Where, z, op(Op::Where, z, x, w), y),
         [](const Match& m) { return make(Op::Where, {m[z], m[x], m[y]}); }},

        // Conversions
        {"cast-back", op(Op::Cast, op(Op::Cast, x)).as(y),
         [](const Match& m) {
           NodeRef inner = m[y]->source(0);
           bool lossless = m[x]->dtype != DType::Index && holds_all(inner->dtype, m[x]->dtype);
           // From a float integers saturate, from an integer they wrap.
           bool saturates = is_int(m[x]->dtype) && is_float(inner->dtype) && is_int(m[y]->dtype) &&
                            !holds_all(m[y]->dtype, m[x]->dtype);
           return lossless && !saturates ? make_cast(m[x], m[y]->dtype) : unchanged;
         }},
        {"bitcast-bitcast", op(Op::Bitcast, op(Op::Bitcast, x).when(is_discrete)).as(y),
         [](const Match& m) { return make_bitcast(m[x], m[y]->dtype); }},
    }};

// A fixed order of operands, so that a + b and b + a become the same node. Max and Min of floats
// keep theirs: of two equal zeros they answer the first.
const RuleSet kOrderRules{
    "order",
    {
        {"constant-last",
         any_of({Op::Add, Op::Mul, Op::And, Op::Or, Op::Xor, Op::Eq}, c, x).when(is_tensor),
         [](const Match& m) {
           return m[x]->is_const() ? unchanged : make(m.root()->op, {m[x], m[c]});
         }},
        {"by-key",
         any_of({Op::Add, Op::Mul, Op::And, Op::Or, Op::Xor, Op::Eq}, x, y).when(is_tensor),
         [](const Match& m) {
           bool swap = m[y]->key < m[x]->key && !m[x]->is_const() && !m[y]->is_const();
           return swap ? make(m.root()->op, {m[y], m[x]}) : unchanged;
         }},
    }};

}  // namespace anneal
