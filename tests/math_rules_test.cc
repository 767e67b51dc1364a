// The functions of kernel/math_rules.h against the C library in double: error in ulp over all f32,
// special values, and how many instructions each takes.
// ANNEAL_MATH_STRIDE=1 tries every f32 (minutes); the default is a stride through all of them.
#include "kernel/math_rules.h"

#include <bit>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/build.h"
#include "ir/interpreter.h"
#include "ir/semantics.h"
#include "ir/verify.h"
#include "vector_machine.h"

using namespace anneal;
using anneal::testing::kLanes, anneal::testing::VectorMachine;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();
constexpr float kHuge = std::numeric_limits<float>::max();

// A function with its rule applied.
struct Lowered {
  explicit Lowered(Op the_op)
      : op(the_op),
        scope(graph),
        inputs(make_inputs()),
        original(make(op, inputs)),
        root(lower_math(std::span(&original, 1))[0]),
        machine(root, inputs) {}

  std::vector<NodeRef> make_inputs() {
    std::vector<NodeRef> made{make_buffer("a", 0, DType::F32, {})};
    if (info(op).sources == 2) made.push_back(make_buffer("b", 1, DType::F32, {}));
    return made;
  }

  float operator()(float a, float b = 0) {
    machine.input(0)[0] = a;
    if (inputs.size() > 1) machine.input(1)[0] = b;
    return machine.run()[0];
  }

  Op op;
  Graph graph;
  GraphScope scope;
  std::vector<NodeRef> inputs;
  NodeRef original, root;
  VectorMachine machine;
};

// ---- how far off a result is

// In units of the last place of the f32 nearest to what is exact. Infinite where the result is of
// another kind: a NaN, an infinity that is no overflow by a hair, a zero of the other sign.
double error_in_ulp(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : kInfinity;
  if (got == exact) return got == 0 && std::signbit(got) != std::signbit(exact) ? kInfinity : 0.0;
  if (std::isnan(got) || std::isinf(exact)) return kInfinity;
  if (got == 0 && std::signbit(got) != std::signbit(exact)) return kInfinity;
  int exponent;
  std::frexp(exact, &exponent);
  const double ulp = std::ldexp(1, std::clamp(exponent - 24, -149, 104));
  if (std::isinf(got) && std::fabs(exact) >= 0x1p128) return 0;
  const double reached = std::isinf(got) ? std::copysign(0x1p128, got) : got;
  return std::fabs(reached - exact) / ulp;
}

struct Worst {
  double ulp = 0;
  float a = 0, b = 0, got = 0;
  double exact = 0;

  void add(float at_a, float at_b, float result, double expected) {
    const double error = error_in_ulp(result, expected);
    if (error > ulp) *this = {error, at_a, at_b, result, expected};
  }
};

uint32_t stride() {
  const char* text = std::getenv("ANNEAL_MATH_STRIDE");
  return text ? static_cast<uint32_t>(std::strtoul(text, nullptr, 10)) : 1021;  // a prime
}

Worst sweep(Lowered& f, double (*exact)(double)) {
  Worst worst;
  const uint64_t step = std::max(1u, stride());
  for (uint64_t begin = 0; begin < uint64_t{1} << 32; begin += kLanes * step) {
    float* in = f.machine.input(0);
    for (size_t i = 0; i < kLanes; ++i)
      in[i] = std::bit_cast<float>(static_cast<uint32_t>(begin + i * step));
    const float* out = f.machine.run();
    for (size_t i = 0; i < kLanes; ++i) worst.add(in[i], 0, out[i], exact(in[i]));
  }
  return worst;
}

// Draws of bases and exponents, each kind with its own dangers.
using Draw = std::pair<float, float> (*)(std::mt19937_64&);

// The exponent that makes base^exponent about 2^target.
float exponent_for(float base, double target) {
  return static_cast<float>(target / std::log2(std::fabs(static_cast<double>(base))));
}
double uniform(std::mt19937_64& random, double from, double to) {
  return from + (to - from) * 0x1p-53 * static_cast<double>(random() >> 11);
}
float any_float(std::mt19937_64& random) {
  return std::bit_cast<float>(static_cast<uint32_t>(random()));
}

struct Sample {
  std::string what;
  Draw draw;
};
const Sample kPowers[] = {
    {"anything", [](std::mt19937_64& r) { return std::pair(any_float(r), any_float(r)); }},
    {"results from denormal to overflow",
     [](std::mt19937_64& r) {
       const float base = std::fabs(any_float(r));
       return std::pair(base, exponent_for(base, uniform(r, -152, 130)));
     }},
    {"bases around 1, where logarithms of f32 are too coarse",
     [](std::mt19937_64& r) {
       const float base = static_cast<float>(std::exp2(uniform(r, -0.52, 0.52)));
       return std::pair(base, exponent_for(base, uniform(r, -152, 130)));
     }},
    {"bases next to 1",
     [](std::mt19937_64& r) {
       const float base =
           static_cast<float>(1 + std::copysign(uniform(r, 0, 1e-3), uniform(r, -1, 1)));
       return std::pair(base, exponent_for(base, uniform(r, -152, 130)));
     }},
    {"the largest fraction of a logarithm, the largest results",
     [](std::mt19937_64& r) {
       const float base = static_cast<float>(std::exp2(uniform(r, 0.45, 0.5) * (r() % 2 ? 1 : -1)));
       return std::pair(base, exponent_for(base, uniform(r, 110, 128) * (r() % 2 ? 1 : -1)));
     }},
    {"integer powers of numbers of either sign",
     [](std::mt19937_64& r) {
       return std::pair(static_cast<float>(uniform(r, -8, 8)),
                        static_cast<float>(static_cast<int>(r() % 101) - 50));
     }},
    {"halves of integers",
     [](std::mt19937_64& r) {
       return std::pair(any_float(r), static_cast<float>(static_cast<int>(r() % 65) - 32) / 2);
     }},
};

Worst sample(Lowered& f, Draw draw, size_t count) {
  Worst worst;
  std::mt19937_64 random(7);
  for (size_t done = 0; done < count; done += kLanes) {
    float *a = f.machine.input(0), *b = f.machine.input(1);
    for (size_t i = 0; i < kLanes; ++i) std::tie(a[i], b[i]) = draw(random);
    const float* out = f.machine.run();
    for (size_t i = 0; i < kLanes; ++i) worst.add(a[i], b[i], out[i], std::pow(double(a[i]), b[i]));
  }
  return worst;
}

struct Function {
  Op op;
  double (*exact)(double);
  double ulp;        // at most
  int instructions;  // at most
};

// clang-format off
const Function kFunctions[] = {
    {Op::Exp,  std::exp,  1.0, 20},
    {Op::Exp2, std::exp2, 1.0, 19},
    {Op::Log,  std::log,  1.2, 26},
    {Op::Log2, std::log2, 1.4, 28},
    {Op::Sin,  std::sin,  1.7, 42},
    {Op::Cos,  std::cos,  1.7, 42},
    {Op::Tanh, std::tanh, 1.6, 26},
    {Op::Erf,  std::erf,  1.5, 24},
};
// clang-format on

// Nodes that cost an instruction: bits are read as another dtype for nothing, and a multiply-add
// or a sum negates for nothing.
int instructions(NodeRef root) {
  int count = 0;
  for (NodeRef node : topological_order(std::span(&root, 1)))
    count += node->source_count > 0 && node->op != Op::Bitcast && node->op != Op::Neg;
  return count;
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

}  // namespace

TEST_CASE("math rules: error over all f32") {
  std::string report;
  for (const Function& function : kFunctions) {
    Lowered lowered(function.op);
    const Worst worst = sweep(lowered, function.exact);
    report += fmt::format("\n  {}: at most {:.3f} ulp (at {}), {} instructions", name(function.op),
                          worst.ulp, worst.a, instructions(lowered.root));
    CAPTURE(std::string(name(function.op)));
    INFO("worst at " << worst.a << ": " << worst.got << " instead of " << worst.exact);
    CHECK(worst.ulp <= function.ulp);
    CHECK(worst.ulp > 0.49);  // a sweep that sees rounding sees half an ulp
  }
  MESSAGE(report);
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

TEST_CASE("math rules: pow") {
  Lowered pow(Op::Pow);
  const size_t count = (uint64_t{1} << 32) / std::max(1u, stride()) / 16;
  std::string report;
  for (const Sample& kind : kPowers) {
    const Worst worst = sample(pow, kind.draw, count);
    INFO("worst at " << worst.a << ", " << worst.b << ": " << worst.got << " instead of "
                     << worst.exact);
    report += fmt::format("\n  pow of {}: at most {:.3f} ulp (at {}, {})", kind.what, worst.ulp,
                          worst.a, worst.b);
    CHECK(worst.ulp <= 1.7);
    CHECK(worst.ulp > 0.49);
  }
  MESSAGE(report);
  CHECK(instructions(pow.root) <= 90);
  CHECK(verify(std::span(&pow.root, 1), kKernelStage) == "");
}

TEST_CASE("math rules: pow of special values") {
  // clang-format off
  const float specials[] = {
      0, -0.0f, 1, -1, 2, -2, 3, -3, 4, -4, 0.5f, -0.5f, 1.5f, -1.5f, 2.5f, -2.5f,
      kInfinity, -kInfinity, kNan, kTiny, -kTiny, 0x1p-126f, -0x1p-126f, kHuge, -kHuge,
      0x1.fffffep-1f, -0x1.fffffep-1f, 0x1.000002p+0f, -0x1.000002p+0f,  // next to 1
      16777215, -16777215, 16777216, 4194303.5f, -4194303.5f, 8388609,   // the last odd, the last half
      1e30f, -1e30f, 1e-30f, -1e-30f, 127, 128, -126, -149, -150};
  // clang-format on
  Lowered pow(Op::Pow);
  for (float a : specials) {
    for (float b : specials) {
      const double exact = std::pow(static_cast<double>(a), static_cast<double>(b));
      CAPTURE(a);
      CAPTURE(b);
      CHECK(error_in_ulp(pow(a, b), exact) < 0.75);
    }
  }
  // Some of them by hand, since the C library might be wrong.
  const std::array<float, 3> rows[] = {
      {kNan, 0, 1},
      {1, kNan, 1},
      {-1, kNan, kNan},
      {-1, kInfinity, 1},
      {-1, -kInfinity, 1},
      {0, -1, kInfinity},
      {-0.0f, -1, -kInfinity},
      {-0.0f, -2, kInfinity},
      {-0.0f, 3, -0.0f},
      {-0.0f, 2, 0},
      {-0.0f, 0.5f, 0},
      {-8, 3, -512},
      {-8, 2, 64},
      {-8, 0.5f, kNan},
      {-kInfinity, 3, -kInfinity},
      {-kInfinity, 0.5f, kInfinity},
      {-kInfinity, -3, -0.0f},
      {0.5f, kInfinity, 0},
      {0.5f, -kInfinity, kInfinity},
      {2, -149, kTiny},
      {2, 128, kInfinity},
  };
  for (const auto& [a, b, result] : rows) {
    CAPTURE(a);
    CAPTURE(b);
    CHECK(same(pow(a, b), result));
  }
}

TEST_CASE("math rules: powers that need no logarithm") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef a = make_buffer("a", 0, DType::F32, {});
  const float inputs[] = {0,         -0.0f,      1,      -1,    2.5f,  -2.5f,
                          1e-20f,    -1e-20f,    1e-14f, 1e13f, 1e20f, kTiny,
                          kInfinity, -kInfinity, kNan,   kHuge, 3,     0.1f};
  for (double power : {2.0, 3.0, -1.0, 0.5}) {
    NodeRef node = make(Op::Pow, {a, make_const_like(a, power)});
    RewriteLog log;
    NodeRef root = lower_math(std::span(&node, 1), &log)[0];
    CHECK(instructions(root) <= 4);
    CHECK(log.hits().size() == 1);
    VectorMachine machine(root, {a});
    for (float in : inputs) {
      machine.input(0)[0] = in;
      CAPTURE(power);
      CAPTURE(in);
      CHECK(error_in_ulp(machine.run()[0], std::pow(double(in), power)) <= 1);
    }
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
  std::vector<Op> ops{Op::Pow};
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
  for (Op op : {Op::Exp, Op::Exp2, Op::Pow}) {
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
