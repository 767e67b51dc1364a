// Runs elementwise scalar nodes on vectors in real f32, as kernels do and the interpreter does not:
// what a device would answer, fast enough to try millions of inputs. Knows the ops that formulas of
// kernel/body/math_rules.h are made of.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "ir/graph.h"

namespace anneal::testing {

inline constexpr size_t kLanes = 512;

class VectorMachine {
 public:
  // The inputs are scalar f32 buffers; so is the root.
  VectorMachine(NodeRef root, const std::vector<NodeRef>& inputs);

  float* input(size_t i) { return registers_[inputs_[i]].as<float>(); }
  const float* run();

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

 private:
  void fill(NodeRef constant, size_t result);

  std::vector<Register> registers_;
  std::vector<Step> steps_;
  std::vector<size_t> inputs_;
  size_t root_ = 0;
};

}  // namespace anneal::testing
