// The functions of kernel/math_rules.h against the C library in double: error in ulp over all f32,
// special values, and how many instructions each takes.
// ANNEAL_MATH_STRIDE=1 tries every f32 (minutes); the default is a stride through all of them.
#include "kernel/math_rules.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>

#include <doctest/doctest.h>

#include "ir/build.h"
#include "ir/interpreter.h"
#include "ir/semantics.h"
#include "ir/verify.h"

using namespace anneal;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();
constexpr float kHuge = std::numeric_limits<float>::max();

// ---- a machine with vectors of real f32, as kernels have

constexpr size_t kLanes = 512;

// Lanes of a node's dtype; bools are i32.
struct Register {
  std::unique_ptr<std::byte[]> bytes{new std::byte[kLanes * 8]};
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(bytes.get());
  }
};

struct Step {
  Op op;
  DType dtype, from;  // of the result and of the last source
  size_t result;
  std::array<size_t, 3> sources;
};

#define INLINE inline __attribute__((always_inline))

template <typename To, typename From, typename Function>
INLINE void each(const Register& to, const std::array<const Register*, 3>& from, Function f) {
  To* out = to.as<To>();
  const From *a = from[0]->as<From>(), *b = from[1]->as<From>(), *c = from[2]->as<From>();
  for (size_t i = 0; i < kLanes; ++i) out[i] = f(a[i], b[i], c[i]);
}

[[noreturn]] void unknown(const Step& step) {
  FAIL("no code for " << std::string(name(step.op)) << " of " << std::string(name(step.dtype)));
  std::abort();
}

template <typename T>
INLINE void compute_float(const Step& step, const Register& to,
                          const std::array<const Register*, 3>& from) {
  switch (step.op) {
    case Op::Neg: return each<T, T>(to, from, [](T a, T, T) { return -a; });
    case Op::Abs: return each<T, T>(to, from, [](T a, T, T) { return std::fabs(a); });
    case Op::Sqrt: return each<T, T>(to, from, [](T a, T, T) { return std::sqrt(a); });
    case Op::Floor: return each<T, T>(to, from, [](T a, T, T) { return std::floor(a); });
    case Op::Round: return each<T, T>(to, from, [](T a, T, T) { return std::nearbyint(a); });
    case Op::Add: return each<T, T>(to, from, [](T a, T b, T) { return a + b; });
    case Op::Mul: return each<T, T>(to, from, [](T a, T b, T) { return a * b; });
    case Op::Div: return each<T, T>(to, from, [](T a, T b, T) { return a / b; });
    case Op::MulAdd: return each<T, T>(to, from, [](T a, T b, T c) { return std::fma(a, b, c); });
    case Op::Lt: return each<int32_t, T>(to, from, [](T a, T b, T) { return a < b; });
    case Op::Eq: return each<int32_t, T>(to, from, [](T a, T b, T) { return a == b; });
    default: unknown(step);
  }
}

template <typename T>
INLINE void compute_int(const Step& step, const Register& to,
                        const std::array<const Register*, 3>& from) {
  using U = uint32_t;
  switch (step.op) {
    case Op::Neg: return each<T, T>(to, from, [](U a, U, U) { return T(0 - a); });
    case Op::Add: return each<T, T>(to, from, [](U a, U b, U) { return T(a + b); });
    case Op::And: return each<T, T>(to, from, [](T a, T b, T) { return a & b; });
    case Op::Or: return each<T, T>(to, from, [](T a, T b, T) { return a | b; });
    case Op::Xor: return each<T, T>(to, from, [](T a, T b, T) { return a ^ b; });
    case Op::Shl: return each<T, T>(to, from, [](U a, U b, U) { return T(b < 32 ? a << b : 0); });
    case Op::Shr: return each<T, T>(to, from, [](T a, T b, T) { return a >> b; });
    case Op::Lt: return each<int32_t, T>(to, from, [](T a, T b, T) { return a < b; });
    case Op::Eq: return each<int32_t, T>(to, from, [](T a, T b, T) { return a == b; });
    default: unknown(step);
  }
}

template <typename T>
INLINE void choose(const Register& to, const std::array<const Register*, 3>& from) {
  const int32_t* condition = from[0]->as<int32_t>();
  T* out = to.as<T>();
  const T *a = from[1]->as<T>(), *b = from[2]->as<T>();
  for (size_t i = 0; i < kLanes; ++i) out[i] = condition[i] ? a[i] : b[i];
}

INLINE void compute_cast(const Step& step, const Register& to,
                         const std::array<const Register*, 3>& from) {
  auto is = [&](DType a, DType b) { return step.from == a && step.dtype == b; };
  if (is(DType::I32, DType::F32))
    return each<float, int32_t>(to, from, [](auto a, auto, auto) { return float(a); });
  if (is(DType::F32, DType::F64))
    return each<double, float>(to, from, [](auto a, auto, auto) { return double(a); });
  if (is(DType::F64, DType::F32))
    return each<float, double>(to, from, [](auto a, auto, auto) { return float(a); });
  if (is(DType::I64, DType::I32))
    return each<int32_t, int64_t>(to, from, [](auto a, auto, auto) { return int32_t(a); });
  unknown(step);
}

INLINE void compute(const Step& step, const std::vector<Register>& registers) {
  const Register& to = registers[step.result];
  std::array<const Register*, 3> from;
  for (size_t i = 0; i < 3; ++i) from[i] = &registers[step.sources[i]];
  if (step.op == Op::Cast) return compute_cast(step, to, from);
  if (step.op == Op::Bitcast) {
    std::memcpy(to.as<std::byte>(), from[0]->as<std::byte>(), kLanes * byte_size(step.dtype));
    return;
  }
  if (step.op == Op::Where)
    return byte_size(step.dtype) == 8 ? choose<double>(to, from)
           : step.dtype == DType::F32 ? choose<float>(to, from)
                                      : choose<int32_t>(to, from);
  switch (step.from) {
    case DType::F32: return compute_float<float>(step, to, from);
    case DType::F64: return compute_float<double>(step, to, from);
    case DType::U32: return compute_int<uint32_t>(step, to, from);
    default: return compute_int<int32_t>(step, to, from);
  }
}

void run_anywhere(const std::vector<Step>& steps, const std::vector<Register>& registers) {
  for (const Step& step : steps) compute(step, registers);
}

// The same with a machine's own multiply-add, where the compiler would call a function.
#ifdef __x86_64__
__attribute__((target("avx2,fma"))) void run_with_fma(const std::vector<Step>& steps,
                                                      const std::vector<Register>& registers) {
  for (const Step& step : steps) compute(step, registers);
}
const auto run_steps =
    __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? run_with_fma : run_anywhere;
#else
const auto run_steps = run_anywhere;
#endif

class Machine {
 public:
  // The inputs are f32 buffers; so is the root.
  Machine(NodeRef root, const std::vector<NodeRef>& inputs) {
    std::map<NodeRef, size_t> place;
    for (NodeRef node : topological_order(std::span(&root, 1))) {
      if (node->dtype == DType::Index) continue;
      const size_t result = registers_.size();
      registers_.emplace_back();
      place[node] = result;
      if (node->op == Op::Buffer) continue;
      if (node->is_const()) {
        fill(node, result);
        continue;
      }
      Step step{node->op, node->dtype, node->sources().back()->dtype, result, {}};
      for (size_t i = 0; i < 3; ++i)
        step.sources[i] = place.at(node->source(std::min<size_t>(i, node->source_count - 1u)));
      steps_.push_back(step);
    }
    for (NodeRef input : inputs) inputs_.push_back(place.at(input));
    root_ = place.at(root);
  }

  float* input(size_t i) { return registers_[inputs_[i]].as<float>(); }
  const float* run() {
    run_steps(steps_, registers_);
    return registers_[root_].as<float>();
  }

 private:
  void fill(NodeRef node, size_t result) {
    const Scalar value = node->scalar();
    for (size_t i = 0; i < kLanes; ++i) {
      if (node->dtype == DType::F32)
        registers_[result].as<float>()[i] = static_cast<float>(value.as_double());
      else if (node->dtype == DType::F64)
        registers_[result].as<double>()[i] = value.as_double();
      else
        registers_[result].as<int32_t>()[i] = static_cast<int32_t>(value.as_int());
    }
  }

  std::vector<Register> registers_;
  std::vector<Step> steps_;
  std::vector<size_t> inputs_;
  size_t root_ = 0;
};

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
  Machine machine;
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

struct Function {
  Op op;
  double (*exact)(double);
  double ulp;        // at most
  int instructions;  // at most
};

// clang-format off
const Function kFunctions[] = {
    {Op::Exp,  std::exp,  0.9, 20},
    {Op::Exp2, std::exp2, 0.9, 19},
    {Op::Log,  std::log,  1.2, 26},
    {Op::Log2, std::log2, 1.4, 28},
    {Op::Sin,  std::sin,  1.7, 42},
    {Op::Cos,  std::cos,  1.7, 42},
    {Op::Tanh, std::tanh, 1.6, 26},
    {Op::Erf,  std::erf,  1.4, 24},
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
  for (const Function& function : kFunctions) {
    Lowered lowered(function.op);
    const Worst worst = sweep(lowered, function.exact);
    CAPTURE(std::string(name(function.op)));
    INFO("worst at " << worst.a << ": " << worst.got << " instead of " << worst.exact);
    MESSAGE(std::string(name(function.op)) << ": at most " << worst.ulp << " ulp, "
                                           << instructions(lowered.root) << " instructions");
    CHECK(worst.ulp <= function.ulp);
    CHECK(worst.ulp > 0.49);  // a sweep that sees rounding sees half an ulp
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
