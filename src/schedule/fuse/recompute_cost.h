// What it costs to compute a value again where it is used, from what is stored anyway.
#pragma once

#include <functional>
#include <utility>

#include "ir/dtype.h"
#include "ir/node.h"

namespace anneal {

class RecomputeCost {
 public:
  // `is_stored`: whether a value surely has memory, or will; `users`: how many nodes read it.
  RecomputeCost(std::function<bool(NodeRef)> is_stored, std::function<int(NodeRef)> users,
                double flops_per_byte)
      : is_stored_(std::move(is_stored)),
        users_(std::move(users)),
        flops_per_byte_(flops_per_byte) {}

  double of_memory(DType dtype) const;  // an element that is stored or loaded
  // What an element costs to compute from what is stored, each part counted once.
  double of_element(NodeRef root) const;
  // Whether it is few operations away from values that several need.
  bool is_few_operations(NodeRef root) const;
  // Made of one value of memory in a step or two.
  bool is_near_memory(NodeRef root) const;
  // Made of coordinates and constants alone in a few steps, as masks are: no slower than a load.
  bool needs_no_memory(NodeRef root) const;

 private:
  std::function<bool(NodeRef)> is_stored_;
  std::function<int(NodeRef)> users_;
  double flops_per_byte_;
};

}  // namespace anneal
