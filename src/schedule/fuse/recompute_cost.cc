#include "schedule/fuse/recompute_cost.h"

#include <algorithm>
#include <vector>

#include "ir/node_map.h"
#include "ir/op.h"
#include "schedule/cost.h"

namespace anneal {
double RecomputeCost::of_memory(DType dtype) const { return memory_cost(dtype) * flops_per_byte_; }

bool RecomputeCost::is_few_operations(NodeRef root) const {
  // The arithmetic that only this value needs: what others use too may be stored for them.
  const double elements = element_estimate(*root->shape);
  std::vector<NodeRef> stack{root};
  double cost = 0;
  while (!stack.empty() && cost < kFewOperations * 2) {
    NodeRef node = stack.back();
    stack.pop_back();
    if (node->dtype == DType::Index || element_estimate(*node->shape) < elements) continue;
    if (node != root && (is_stored_(node) || users_(node) > 1)) continue;
    if (is_elementwise(node->op)) cost += compute_cost(node);
    if (node->op == Op::Pad) cost += kCondition;
    stack.insert(stack.end(), node->tensors().begin(), node->tensors().end());
  }
  return cost <= kFewOperations;
}

double RecomputeCost::of_element(NodeRef root) const {
  const double elements = std::max(1.0, element_estimate(*root->shape));
  std::vector<NodeRef> stack{root};
  NodeMap<char> seen;
  double cost = 0;
  while (!stack.empty()) {
    NodeRef node = stack.back();
    stack.pop_back();
    if (node->dtype == DType::Index || !seen.insert(node, 1).second) continue;
    if (seen.size() > kLargestCone) return 1e9;
    // What is broadcast costs less by element.
    const double share = std::min(1.0, element_estimate(*node->shape) / elements);
    if (node != root && is_stored_(node)) {
      cost += share * of_memory(node->dtype);
      continue;
    }
    if (is_elementwise(node->op)) cost += share * compute_cost(node);
    if (node->op == Op::Pad) cost += share * kCondition;
    stack.insert(stack.end(), node->tensors().begin(), node->tensors().end());
  }
  return cost;
}

bool RecomputeCost::is_near_memory(NodeRef root) const {
  std::vector<NodeRef> stack{root};
  NodeMap<char> seen;
  double cost = 0;
  int loads = 0;
  while (!stack.empty() && cost <= kLittleChange && loads <= 1) {
    NodeRef node = stack.back();
    stack.pop_back();
    if (node->dtype == DType::Index || !seen.insert(node, 1).second) continue;
    if (node != root && is_stored_(node)) {
      ++loads;
      continue;
    }
    if (is_elementwise(node->op)) cost += compute_cost(node);
    stack.insert(stack.end(), node->tensors().begin(), node->tensors().end());
  }
  return cost <= kLittleChange && loads <= 1;
}

bool RecomputeCost::needs_no_memory(NodeRef root) const {
  std::vector<NodeRef> stack{root};
  NodeMap<char> seen;
  while (!stack.empty()) {
    NodeRef node = stack.back();
    stack.pop_back();
    if (node->dtype == DType::Index || !seen.insert(node, 1).second) continue;
    const bool simple = is_elementwise(node->op) || is_movement(node->op) ||
                        node->op == Op::Const || node->op == Op::Iota;
    if (!simple || node->op == Op::Threefry || (node != root && is_stored_(node)) ||
        seen.size() > kNodesOfMask)
      return false;
    stack.insert(stack.end(), node->tensors().begin(), node->tensors().end());
  }
  return true;
}

}  // namespace anneal
