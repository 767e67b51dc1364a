// The functions of kernel/body/math_rules.h against the C library in double: error in ulp over all
// f32, special values, and how many instructions each takes.
#include "kernel/body/math_rules.h"

#include <bit>
#include <functional>
#include <map>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/build.h"
#include "ir/interpreter.h"
#include "ir/semantics.h"
#include "ir/verify.h"
#include "math_functions.h"

using namespace anneal;
using namespace anneal::testing;
using namespace anneal::testing::math_functions;

namespace {

struct Function {
  Op op;
  double (*exact)(double);
  double ulp;        // at most
  int instructions;  // at most
};

// clang-format off
const Function kFunctions[] = {
    {Op::Exp,   std::exp,   1.0, 20},
    {Op::Exp2,  std::exp2,  1.0, 19},
    {Op::Log,   std::log,   1.2, 26},
    {Op::Log2,  std::log2,  1.4, 28},
    {Op::Log10, std::log10, 1.3, 28},
    {Op::Log1p, std::log1p, 1.8, 27},
    {Op::Expm1, std::expm1, 1.5, 22},
    {Op::Sin,   std::sin,   1.7, 42},
    {Op::Cos,   std::cos,   1.7, 42},
    {Op::Sinh,  std::sinh,  1.7, 31},
    {Op::Cosh,  std::cosh,  1.4, 21},
    {Op::Tanh,  std::tanh,  1.6, 26},
    {Op::Asinh, std::asinh, 1.7, 41},
    {Op::Erf,   std::erf,   1.5, 24},
    {Op::Erfc,  std::erfc,  2.0, 62},
};
// clang-format on

}  // namespace

TEST_CASE("math rules: error over all f32") {
  std::string report;
  for (const Function& function : kFunctions) {
    Lowered lowered(function.op);
    const Worst worst = sweep(lowered.machine, function.exact);
    report += fmt::format("\n  {}: at most {:.3f} ulp (at {}), {} instructions", name(function.op),
                          worst.ulp, worst.a, instructions(lowered.root));
    CAPTURE(std::string(name(function.op)));
    INFO("worst at " << worst.a << ": " << worst.got << " instead of " << worst.exact);
    CHECK(worst.ulp <= function.ulp);
    CHECK(worst.ulp > 0.49);  // a sweep that sees rounding sees half an ulp
  }
  MESSAGE(report);
}

TEST_CASE("math rules: every function has a bound") {
  for (int i = 0; i < kTensorOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (!is_libm_function(op) || op == Op::Pow || op == Op::Atan2) continue;  // below
    CAPTURE(std::string(name(op)));
    CHECK(std::ranges::count(kFunctions, op, &Function::op) == 1);
  }
}

TEST_CASE("math rules: few instructions, no function left") {
  for (const Function& function : kFunctions) {
    Lowered lowered(function.op);
    CAPTURE(std::string(name(function.op)));
    CHECK(instructions(lowered.root) <= function.instructions);
    CHECK(verify(std::span(&lowered.root, 1), kKernelStage) == "");
    for (NodeRef node : topological_order(std::span(&lowered.root, 1)))
      for (const Function& other : kFunctions) CHECK(node->op != other.op);
  }
}

TEST_CASE("math rules: special values") {
  struct Row {
    Op op;
    float in, out;
  };
  const Row rows[] = {
      {Op::Exp, 0, 1},
      {Op::Exp, -0.0f, 1},
      {Op::Exp, kInfinity, kInfinity},
      {Op::Exp, -kInfinity, 0},
      {Op::Exp, kNan, kNan},
      {Op::Exp, kTiny, 1},
      {Op::Exp, 1000, kInfinity},
      {Op::Exp, -1000, 0},
      {Op::Exp, -100, 0x1.a8c2p-145f},
      {Op::Exp2, 0, 1},
      {Op::Exp2, -0.0f, 1},
      {Op::Exp2, 1, 2},
      {Op::Exp2, 127, 0x1p127f},
      {Op::Exp2, 128, kInfinity},
      {Op::Exp2, -126, 0x1p-126f},
      {Op::Exp2, -149, kTiny},
      {Op::Exp2, -150, 0},
      {Op::Exp2, kInfinity, kInfinity},
      {Op::Exp2, -kInfinity, 0},
      {Op::Exp2, kNan, kNan},
      {Op::Log, 1, 0},
      {Op::Log, 0, -kInfinity},
      {Op::Log, -0.0f, -kInfinity},
      {Op::Log, -1, kNan},
      {Op::Log, -kTiny, kNan},
      {Op::Log, -kInfinity, kNan},
      {Op::Log, kInfinity, kInfinity},
      {Op::Log, kNan, kNan},
      {Op::Log, kTiny, -0x1.9d1dap+6f},
      {Op::Log2, 1, 0},
      {Op::Log2, 8, 3},
      {Op::Log2, 0, -kInfinity},
      {Op::Log2, -0.0f, -kInfinity},
      {Op::Log2, -1, kNan},
      {Op::Log2, -kInfinity, kNan},
      {Op::Log2, kInfinity, kInfinity},
      {Op::Log2, kNan, kNan},
      {Op::Log2, kTiny, -149},
      {Op::Log2, 0x1p-126f, -126},
      {Op::Sin, 0, 0},
      {Op::Sin, -0.0f, -0.0f},
      {Op::Sin, kTiny, kTiny},
      {Op::Sin, -kTiny, -kTiny},
      {Op::Sin, kInfinity, kNan},
      {Op::Sin, -kInfinity, kNan},
      {Op::Sin, kNan, kNan},
      {Op::Sin, kHuge, -0x1.0b3366p-1f},
      {Op::Sin, -kHuge, 0x1.0b3366p-1f},
      {Op::Cos, 0, 1},
      {Op::Cos, -0.0f, 1},
      {Op::Cos, kTiny, 1},
      {Op::Cos, kInfinity, kNan},
      {Op::Cos, -kInfinity, kNan},
      {Op::Cos, kNan, kNan},
      {Op::Cos, kHuge, 0x1.b4bf2cp-1f},
      {Op::Tanh, 0, 0},
      {Op::Tanh, -0.0f, -0.0f},
      {Op::Tanh, kInfinity, 1},
      {Op::Tanh, -kInfinity, -1},
      {Op::Tanh, 10, 1},
      {Op::Tanh, kNan, kNan},
      {Op::Tanh, kTiny, kTiny},
      {Op::Tanh, -kTiny, -kTiny},
      {Op::Log10, 1, 0},
      {Op::Log10, 1000, 3},
      {Op::Log10, 0, -kInfinity},
      {Op::Log10, -1, kNan},
      {Op::Log10, kInfinity, kInfinity},
      {Op::Log10, kNan, kNan},
      {Op::Log1p, 0, 0},
      {Op::Log1p, -0.0f, -0.0f},
      {Op::Log1p, kTiny, kTiny},
      {Op::Log1p, -kTiny, -kTiny},
      {Op::Log1p, 1e-20f, 1e-20f},
      {Op::Log1p, -1, -kInfinity},
      {Op::Log1p, -2, kNan},
      {Op::Log1p, -kInfinity, kNan},
      {Op::Log1p, kInfinity, kInfinity},
      {Op::Log1p, kNan, kNan},
      {Op::Log1p, kHuge, 0x1.62e43p+6f},
      {Op::Expm1, 0, 0},
      {Op::Expm1, -0.0f, -0.0f},
      {Op::Expm1, kTiny, kTiny},
      {Op::Expm1, -kTiny, -kTiny},
      {Op::Expm1, 1e-20f, 1e-20f},
      {Op::Expm1, -30, -1},
      {Op::Expm1, -kInfinity, -1},
      {Op::Expm1, 1000, kInfinity},
      {Op::Expm1, kInfinity, kInfinity},
      {Op::Expm1, kNan, kNan},
      {Op::Sinh, 0, 0},
      {Op::Sinh, -0.0f, -0.0f},
      {Op::Sinh, kTiny, kTiny},
      {Op::Sinh, -kTiny, -kTiny},
      {Op::Sinh, kInfinity, kInfinity},
      {Op::Sinh, -kInfinity, -kInfinity},
      {Op::Sinh, -100, -kInfinity},
      {Op::Sinh, kNan, kNan},
      {Op::Cosh, 0, 1},
      {Op::Cosh, -0.0f, 1},
      {Op::Cosh, kTiny, 1},
      {Op::Cosh, kInfinity, kInfinity},
      {Op::Cosh, -kInfinity, kInfinity},
      {Op::Cosh, -100, kInfinity},
      {Op::Cosh, kNan, kNan},
      {Op::Asinh, 0, 0},
      {Op::Asinh, -0.0f, -0.0f},
      {Op::Asinh, kTiny, kTiny},
      {Op::Asinh, -kTiny, -kTiny},
      {Op::Asinh, kInfinity, kInfinity},
      {Op::Asinh, -kInfinity, -kInfinity},
      {Op::Asinh, kHuge, 0x1.65a9f8p+6f},
      {Op::Asinh, kNan, kNan},
      {Op::Erfc, 0, 1},
      {Op::Erfc, -0.0f, 1},
      {Op::Erfc, kTiny, 1},
      {Op::Erfc, kInfinity, 0},
      {Op::Erfc, -kInfinity, 2},
      {Op::Erfc, kHuge, 0},
      {Op::Erfc, -kHuge, 2},
      {Op::Erfc, kNan, kNan},
      {Op::Erf, 0, 0},
      {Op::Erf, -0.0f, -0.0f},
      {Op::Erf, kInfinity, 1},
      {Op::Erf, -kInfinity, -1},
      {Op::Erf, 4, 1},
      {Op::Erf, kHuge, 1},
      {Op::Erf, kNan, kNan},
      {Op::Erf, kTiny, kTiny},
      {Op::Erf, -kTiny, -kTiny},
  };
  std::map<Op, std::unique_ptr<Lowered>> functions;
  for (const Row& row : rows) {
    std::unique_ptr<Lowered>& f = functions[row.op];
    if (!f) f = std::make_unique<Lowered>(row.op);
    const float got = (*f)(row.in);
    CAPTURE(std::string(name(row.op)));
    CAPTURE(row.in);
    CAPTURE(got);
    CHECK(same(got, row.out));
  }
}

TEST_CASE("math rules: logarithms of powers of ten are whole") {
  Lowered log10(Op::Log10);
  for (int power = -38; power <= 38; ++power) {
    CAPTURE(power);
    const auto at = static_cast<float>(std::pow(10.0, power));  // exact for 0 to 10
    CHECK(error_in_ulp(log10(at), power) <= (power >= 0 && power <= 10 ? 0 : 1));
  }
}

TEST_CASE("math rules: the interpreter agrees bit by bit") {
  std::mt19937_64 random(3);
  std::vector<float> a, b;
  for (int i = 0; i < 2000; ++i) {
    const bool wild = i % 2;
    a.push_back(wild ? any_float(random) : static_cast<float>(uniform(random, -10, 10)));
    b.push_back(wild ? any_float(random) : static_cast<float>(uniform(random, -10, 10)));
  }
  std::vector<Op> ops{Op::Pow, Op::Atan2};
  for (const Function& function : kFunctions) ops.push_back(function.op);
  for (Op op : ops) {
    // Of tensors, too.
    Graph graph;
    GraphScope scope(graph);
    std::vector<NodeRef> dims = static_dims(std::vector<int64_t>{int64_t(a.size())});
    std::vector<NodeRef> inputs{make_buffer("a", 0, DType::F32, dims)};
    if (info(op).sources == 2) inputs.push_back(make_buffer("b", 1, DType::F32, dims));
    NodeRef original = make(op, inputs), root = lower_math(std::span(&original, 1))[0];

    std::array<Value, 2> values;
    for (size_t i = 0; i < 2; ++i) {
      values[i] = {DType::F32, {int64_t(a.size())}, {}};
      for (float x : i ? b : a) values[i].payload.push_back(Scalar::of(DType::F32, x).bits());
    }
    Environment environment;
    environment.buffer = [&](NodeRef buffer) { return &values[buffer == inputs[0] ? 0 : 1]; };
    const std::array roots{original, root};
    const std::vector<Value> answers = interpret(roots, environment);

    Lowered lowered(op);
    int different = 0;
    double worst = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const float got = lowered(a[i], b[i]);
      different += !same(got, static_cast<float>(answers[1].as_double(int64_t(i))));
      // That of the op itself is rounded, by half an ulp at most.
      worst = std::max(worst, error_in_ulp(got, answers[0].as_double(int64_t(i))));
    }
    CAPTURE(std::string(name(op)));
    CHECK(different == 0);
    CHECK(worst <= 2);
  }
}

TEST_CASE("math rules: scaling by one instruction or in two steps gives the same bits") {
  std::mt19937_64 random(5);
  for (Op op : {Op::Exp, Op::Exp2, Op::Sinh, Op::Cosh, Op::Erfc, Op::Pow}) {
    Lowered in_steps(op);
    NodeRef at_once = lower_math(std::span(&in_steps.original, 1), nullptr, {}, {.scale = true})[0];
    CHECK(instructions(at_once) < instructions(in_steps.root));
    VectorMachine machine(at_once, in_steps.inputs);
    int different = 0;
    for (int i = 0; i < 20000; ++i) {
      const float a = i % 2 ? any_float(random) : static_cast<float>(uniform(random, -160, 140));
      const float b = i % 4 < 2 ? any_float(random) : exponent_for(a, uniform(random, -152, 130));
      machine.input(0)[0] = a;
      if (in_steps.inputs.size() > 1) machine.input(1)[0] = b;
      different += !same(in_steps(a, b), machine.run()[0]);
    }
    CAPTURE(std::string(name(op)));
    CHECK(different == 0);
  }
}

TEST_CASE("math rules: circular functions without f64") {
  std::mt19937_64 random(6);
  std::vector<float> angles{0, -0.0f, kTiny, 0.75f, kHuge, -kHuge, kInfinity, -kInfinity, kNan};
  for (int i = 0; i < 30000; ++i) {
    const double multiple =
        std::floor(uniform(random, 0, i % 2 ? 100 : 1e7)) * std::numbers::pi / 2;
    angles.push_back(i % 3 == 0   ? any_float(random)
                     : i % 3 == 1 ? static_cast<float>(uniform(random, -20, 20))
                                  : static_cast<float>(multiple));
  }
  Graph graph;
  GraphScope scope(graph);
  Value input{DType::F32, {static_cast<int64_t>(angles.size())}, {}};
  for (float angle : angles) input.payload.push_back(Scalar::of(DType::F32, angle).bits());
  NodeRef buffer = make_buffer("a", 0, DType::F32, static_dims(input.shape));
  const Environment environment{
      .variable = nullptr, .buffer = [&](NodeRef) { return &input; }, .known = nullptr};
  for (Op op : {Op::Sin, Op::Cos}) {
    NodeRef original = make(op, {buffer});
    const NodeRef root = lower_math(std::span(&original, 1), nullptr, {}, {.f64 = false})[0];
    for (NodeRef node : topological_order({&root, 1})) CHECK(node->dtype != DType::F64);
    const Value got = interpret({&root, 1}, environment)[0];
    double worst = 0;
    for (size_t i = 0; i < angles.size(); ++i) {
      const double exact = op == Op::Sin ? std::sin(static_cast<double>(angles[i]))
                                         : std::cos(static_cast<double>(angles[i]));
      worst = std::max(worst, error_in_ulp(static_cast<float>(got.as_double(int64_t(i))), exact));
    }
    CAPTURE(std::string(name(op)));
    CHECK(worst <= 2);
  }
}

TEST_CASE("math rules: functions of f64 stay") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef a = make_buffer("a", 0, DType::F64, {});
  for (const Function& function : kFunctions) {
    NodeRef node = make(function.op, {a});
    CHECK(lower_math(std::span(&node, 1))[0] == node);
  }
}

TEST_CASE("math rules: a rule can be left out") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef a = make_buffer("a", 0, DType::F32, {});
  NodeRef node = make(Op::Exp, {make(Op::Log, {a})});
  RewriteLog log;
  NodeRef root = lower_math(std::span(&node, 1), &log, {"math/exp"})[0];
  CHECK(root->op == Op::Exp);
  CHECK(root->source(0)->op == Op::Where);
  CHECK(log.hits().size() == 1);
  CHECK(lower_math(std::span(&node, 1), nullptr, {"math"})[0] == node);
}

// By continued fractions of 2/pi: no f32 comes nearer to a multiple of pi/2, in units of it. A
// sweep with a stride would miss them.
TEST_CASE("math rules: circular functions next to their zeros") {
  const float nearest[] = {
      0x1.f37c8ap+95f, 0x1.47d0fep+34f,  0x1.f37c8ap+96f, 0x1.47d0fep+35f,
      0x1.f37c8ap+97f, 0x1.32ede2p+85f,  0x1.628d4cp+40f, 0x1.130930p+76f,
      0x1.47d0fep+36f, 0x1.b08c4ap+111f, 0x1.4665d2p+25f, 0x1.abb4b0p+89f,
  };
  Lowered sine(Op::Sin), cosine(Op::Cos);
  for (float angle : nearest) {
    CAPTURE(angle);
    const double exact_sine = std::sin(static_cast<double>(angle));
    const double exact_cosine = std::cos(static_cast<double>(angle));
    CHECK(std::min(std::fabs(exact_sine), std::fabs(exact_cosine)) < 2e-8);
    CHECK(error_in_ulp(sine(angle), exact_sine) <= 1.7);
    CHECK(error_in_ulp(sine(-angle), -exact_sine) <= 1.7);
    CHECK(error_in_ulp(cosine(angle), exact_cosine) <= 1.7);
  }
}
