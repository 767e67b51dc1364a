#include "vector_machine.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include <doctest/doctest.h>

namespace anneal::testing {
namespace {

using Register = VectorMachine::Register;
using Step = VectorMachine::Step;

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
    case Op::Scale:
      return each<T, T>(to, from, [](T a, T b, T) {
        return std::isnan(b) ? b : std::ldexp(a, static_cast<int>(std::floor(b)));
      });
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

}  // namespace

VectorMachine::VectorMachine(NodeRef root, const std::vector<NodeRef>& inputs) {
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

const float* VectorMachine::run() {
  run_steps(steps_, registers_);
  return registers_[root_].as<float>();
}

void VectorMachine::fill(NodeRef constant, size_t result) {
  const Scalar value = constant->scalar();
  for (size_t i = 0; i < kLanes; ++i) {
    if (constant->dtype == DType::F32)
      registers_[result].as<float>()[i] = static_cast<float>(value.as_double());
    else if (constant->dtype == DType::F64)
      registers_[result].as<double>()[i] = value.as_double();
    else
      registers_[result].as<int32_t>()[i] = static_cast<int32_t>(value.as_int());
  }
}

}  // namespace anneal::testing
