// Arithmetic of f16, bf16 and fp8 as kernels do it, in f32, against what the interpreter says of
// the ops themselves.
#include <cmath>
#include <random>

#include <doctest/doctest.h>

#include "ir/build.h"
#include "ir/float_formats.h"
#include "ir/interpreter.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "kernel/body/math_rules.h"

using namespace anneal;

namespace {

constexpr DType kNarrow[] = {DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2};

// Operands: all pairs of codes of fp8, draws of those of 16 bits.
struct Operands {
  explicit Operands(DType dtype) {
    std::mt19937_64 random(5);
    const bool all = byte_size(dtype) == 1;
    const uint64_t codes = all ? 256 : 65536;
    for (uint64_t i = 0; i < 65536; ++i) {
      const uint64_t a = i % codes, b = all ? i / 256 : random() % codes;
      left.payload.push_back(Scalar::of(dtype, decode(dtype, a)).bits());
      right.payload.push_back(Scalar::of(dtype, decode(dtype, b)).bits());
    }
    left.dtype = right.dtype = dtype;
    left.shape = right.shape = {int64_t(left.payload.size())};
  }
  Value left, right;
};

struct Program {
  explicit Program(DType dtype)
      : dims(static_dims(std::vector<int64_t>{65536})),
        a(make_buffer("a", 0, dtype, dims)),
        b(make_buffer("b", 1, dtype, dims)) {}
  std::vector<NodeRef> dims;
  NodeRef a, b;
};

// Values of the op itself and of what the rules make of it.
std::vector<Value> both(NodeRef node, const Program& program, const Operands& operands) {
  Environment environment;
  environment.buffer = [&](NodeRef buffer) {
    return buffer == program.a ? &operands.left : &operands.right;
  };
  NodeRef lowered = lower_math(std::span(&node, 1))[0];
  const std::array roots{node, lowered};
  CHECK(lowered != node);
  CHECK(lowered->dtype == node->dtype);
  return interpret(roots, environment);
}

// Nodes that compute must not be narrow.
bool only_moves_narrow(NodeRef root) {
  for (NodeRef node : topological_order(std::span(&root, 1))) {
    const bool narrow = is_float(node->dtype) && byte_size(node->dtype) < 4;
    const bool moves = node->op == Op::Buffer || node->op == Op::Const || node->op == Op::Load ||
                       node->op == Op::Cast || node->op == Op::Bitcast || node->op == Op::Store;
    if (narrow && !moves) return false;
  }
  return true;
}

// How many narrow floats apart, of one sign.
int64_t distance(Scalar a, Scalar b) {
  if (a == b) return 0;
  if (std::isnan(a.as_double()) || std::isnan(b.as_double())) return INT64_MAX;
  return std::abs(int64_t(encode(a.dtype(), a.as_double())) -
                  int64_t(encode(b.dtype(), b.as_double())));
}

struct Found {
  int64_t furthest = 0, different = 0;
  std::string first;
};
Found compare(const std::vector<Value>& values, const Operands& operands) {
  Found found;
  for (int64_t i = 0; i < values[0].size(); ++i) {
    const int64_t apart = distance(values[0].at(i), values[1].at(i));
    found.furthest = std::max(found.furthest, apart);
    if (apart == 0 || found.different++ != 0) continue;
    found.first = to_text(operands.left.at(i)) + ", " + to_text(operands.right.at(i)) + " gave " +
                  to_text(values[1].at(i)) + ", wanted " + to_text(values[0].at(i));
  }
  return found;
}

}  // namespace

TEST_CASE("narrow floats: what one rounding gives, two give too") {
  for (DType dtype : kNarrow) {
    Graph graph;
    GraphScope scope(graph);
    Program p(dtype);
    const Operands operands(dtype);
    NodeRef condition = make(Op::Lt, {p.a, p.b});
    NodeRef two = make_const_like(p.a, 2);
    NodeRef mixed = make(Op::Add, {make(Op::Mul, {p.a, p.b}), p.b});
    for (NodeRef node :
         {make(Op::Add, {p.a, p.b}), make(Op::Mul, {p.a, p.b}), make(Op::Div, {p.a, p.b}),
          make(Op::Sqrt, {p.a}), make(Op::Neg, {p.a}), make(Op::Abs, {p.a}),
          make(Op::Max, {p.a, p.b}), make(Op::Min, {p.a, p.b}), make(Op::Floor, {p.a}),
          make(Op::Ceil, {p.a}), make(Op::Trunc, {p.a}), make(Op::Round, {p.a}),
          make(Op::Mul, {p.a, two}), condition, make(Op::Le, {p.a, p.b}), make(Op::Eq, {p.a, p.b}),
          make(Op::Where, {condition, p.a, p.b}), mixed}) {
      const Found found = compare(both(node, p, operands), operands);
      CAPTURE(print(node));
      CAPTURE(found.first);
      CHECK(only_moves_narrow(lower_math(std::span(&node, 1))[0]));
      // Products and quotients of bf16 may be denormal in f32: rounded there, and again.
      const bool multiplies = node->op == Op::Mul || node->op == Op::Div || node == mixed;
      const bool twice = dtype == DType::BF16 && multiplies;
      CHECK(found.furthest <= (twice ? 1 : 0));
      CHECK(found.different <= (twice ? 100 : 0));
    }
  }
}

TEST_CASE("narrow floats: functions come out at most one float beside") {
  for (DType dtype : kNarrow) {
    Graph graph;
    GraphScope scope(graph);
    Program p(dtype);
    const Operands operands(dtype);
    for (NodeRef node :
         {make(Op::Exp, {p.a}), make(Op::Exp2, {p.a}), make(Op::Log, {p.a}), make(Op::Log2, {p.a}),
          make(Op::Sin, {p.a}), make(Op::Cos, {p.a}), make(Op::Tanh, {p.a}), make(Op::Erf, {p.a}),
          make(Op::Pow, {p.a, p.b}), make(Op::Log10, {p.a}), make(Op::Log1p, {p.a}),
          make(Op::Expm1, {p.a}), make(Op::Sinh, {p.a}), make(Op::Cosh, {p.a}),
          make(Op::Asinh, {p.a}), make(Op::Erfc, {p.a}), make(Op::Atan2, {p.a, p.b})}) {
      const Found found = compare(both(node, p, operands), operands);
      CAPTURE(print(node));
      CAPTURE(found.first);
      CHECK(found.furthest <= 1);
      CHECK(found.different <= 100);
      CHECK(only_moves_narrow(lower_math(std::span(&node, 1))[0]));
    }
  }
}

TEST_CASE("narrow floats: reductions accumulate in f32") {
  Graph graph;
  GraphScope scope(graph);
  const std::vector<NodeRef> dims = static_dims(std::vector<int64_t>{8});
  NodeRef buffer = make_buffer("a", 0, DType::BF16, dims), axis = make_variable("k0", 0, 7);
  NodeRef yes = make_const(Scalar::of_int(DType::Bool, 1));
  NodeRef load = make(Op::Load, {buffer, axis, yes});
  for (Op op : {Op::SumOver, Op::ProdOver, Op::MaxOver, Op::MinOver}) {
    NodeRef node = make(op, {load, axis});
    NodeRef lowered = lower_math(std::span(&node, 1))[0];
    CHECK(lowered == make_cast(make(op, {make_cast(load, DType::F32), axis}), DType::BF16));
    CHECK(verify(std::span(&lowered, 1), kKernelStage) == "");
  }
}

TEST_CASE("narrow floats: loads, stores, casts and bits stay; so does everything wider") {
  Graph graph;
  GraphScope scope(graph);
  const std::vector<NodeRef> dims = static_dims(std::vector<int64_t>{8});
  NodeRef from = make_buffer("a", 0, DType::F16, dims), to = make_buffer("b", 1, DType::F16, dims);
  NodeRef axis = make_variable("i0", 0, 7), yes = make_const(Scalar::of_int(DType::Bool, 1));
  NodeRef load = make(Op::Load, {from, axis, yes});
  NodeRef f32 = make_buffer("c", 2, DType::F32, {}), f64 = make_buffer("d", 3, DType::F64, {});
  for (NodeRef node :
       {make(Op::Store, {to, axis, yes, load, axis}, Arg(int64_t{1})), make_cast(load, DType::F64),
        make_cast(f64, DType::BF16), make_cast(load, DType::I32), make_bitcast(load, DType::U16),
        make(Op::Add, {f32, f32}), make(Op::Exp, {f64}), make(Op::Lt, {f32, f32})})
    CHECK(lower_math(std::span(&node, 1))[0] == node);
}
