// A function of f32 with its rule applied, run as kernels run it; shared by the tests of
// kernel/body/math_rules.h.
#pragma once

#include <random>
#include <utility>

#include "ir/build.h"
#include "kernel/body/math_rules.h"
#include "ulp.h"

namespace anneal::testing::math_functions {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kTiny = std::numeric_limits<float>::denorm_min();
inline constexpr float kHuge = std::numeric_limits<float>::max();

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

// The exponent that makes base^exponent about 2^target.
inline float exponent_for(float base, double target) {
  return static_cast<float>(target / std::log2(std::fabs(static_cast<double>(base))));
}
inline double uniform(std::mt19937_64& random, double from, double to) {
  return from + (to - from) * 0x1p-53 * static_cast<double>(random() >> 11);
}
inline float any_float(std::mt19937_64& random) {
  return std::bit_cast<float>(static_cast<uint32_t>(random()));
}

// Nodes that cost an instruction: bits are read as another dtype for nothing, and a multiply-add
// or a sum negates for nothing.
inline int instructions(NodeRef root) {
  int count = 0;
  for (NodeRef node : topological_order(std::span(&root, 1)))
    count += node->source_count > 0 && node->op != Op::Bitcast && node->op != Op::Neg;
  return count;
}

inline bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

}  // namespace anneal::testing::math_functions
