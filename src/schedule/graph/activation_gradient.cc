#include "schedule/graph/activation_gradient.h"

#include <algorithm>

#include "ir/build.h"
#include "ir/node_map.h"
#include "ir/op.h"
#include "rewrite/local_rules.h"
#include "schedule/cost.h"
#include "schedule/graph/products.h"

namespace anneal {
namespace {

class Slopes {
 public:
  explicit Slopes(std::span<const NodeRef> roots) : order_(topological_order(roots)) {
    for (NodeRef node : order_) {
      base_[node] = base_of(node);
      users_.insert(node, {});
      for (NodeRef source : node->tensors()) {
        users_.find(source)->push_back(node);
        if (NodeRef base = base_[source]; base && base != base_[node]) wanted(base, source);
      }
    }
    for (NodeRef root : roots)
      if (NodeRef base = base_[root]) wanted(base, root);
  }

  NodeMap<char> stored() {
    NodeMap<char> stored;
    for (NodeRef value : order_)
      if (const std::vector<NodeRef>* made = made_.find(value); made && is_worth_it(value, *made))
        for (NodeRef each : *made) stored[each] = 1;
    return stored;
  }

 private:
  // The one value, and constants, that it is made of element by element; itself, where there are
  // several; none, for a constant.
  NodeRef base_of(NodeRef node) {
    if (node->dtype == DType::Index || node->op == Op::Const) return nullptr;
    if (is_movement(node->op)) return base_[node->source(0)] ? node : nullptr;
    if (!is_elementwise(node->op) || node->op == Op::Threefry) return node;
    NodeRef base = nullptr;
    for (NodeRef source : node->tensors()) {
      NodeRef of_source = base_[source];
      if (!of_source) continue;
      if (base && of_source != base) return node;
      base = of_source;
    }
    return base;
  }

  void wanted(NodeRef base, NodeRef value) {
    std::vector<NodeRef>& made = made_[base];
    if (std::ranges::count(made, value) == 0) made.push_back(value);
  }

  bool is_worth_it(NodeRef value, const std::vector<NodeRef>& made) {
    return made.size() == 2 && ends_product(value) &&
           std::ranges::all_of(made,
                               [&](NodeRef each) {
                                 return each != value && each->dtype == value->dtype &&
                                        cost(each) >= kWorthStoring;
                               }) &&
           std::ranges::any_of(made, [&](NodeRef each) { return is_operand(each); });
  }

  // A product, or what is made of one in its kernel.
  bool ends_product(NodeRef node, int steps = kStepsToProduct) {
    if (is_product(node)) return true;
    if (steps == 0 || (!is_elementwise(node->op) && !is_movement(node->op))) return false;
    const double elements = element_estimate(*node->shape);
    return std::ranges::any_of(node->tensors(), [&](NodeRef source) {
      return users_.find(source)->size() == 1 && element_estimate(*source->shape) == elements &&
             ends_product(source, steps - 1);
    });
  }

  // Whether it is multiplied in a product, moved or not.
  bool is_operand(NodeRef node, bool multiplied = false, int steps = kStepsToProduct) {
    return steps > 0 && std::ranges::any_of(*users_.find(node), [&](NodeRef user) {
             if (is_product(user)) return multiplied;
             const bool multiplies = user->op == Op::Mul && !multiplied;
             return (is_movement(user->op) || multiplies) &&
                    is_operand(user, multiplied || multiplies, steps - 1);
           });
  }

  double cost(NodeRef root) {
    NodeRef base = base_[root];
    double sum = 0;
    NodeMap<char> seen;
    std::vector<NodeRef> stack{root};
    while (!stack.empty()) {
      NodeRef node = stack.back();
      stack.pop_back();
      if (node == base || base_[node] != base || !seen.insert(node, 1).second) continue;
      sum += compute_cost(node);
      stack.insert(stack.end(), node->tensors().begin(), node->tensors().end());
    }
    return sum;
  }

  std::vector<NodeRef> order_;
  NodeMap<NodeRef> base_;
  NodeMap<std::vector<NodeRef>> users_;
  NodeMap<std::vector<NodeRef>> made_;  // by base: what others need of all that is made of it
};

// `Context`: what is to be stored.
const LocalRules<const NodeMap<char>> kRules{
    "activation-gradient",
    {{"store-slope", captures::x, [](NodeRef node, NodeRef image, const NodeMap<char>& stored) {
        return stored.contains(node) ? make(Op::Contiguous, {image}) : unchanged;
      }}}};

}  // namespace

std::vector<std::string_view> activation_gradient_rules() { return kRules.rule_names(); }

std::vector<NodeRef> save_activation_gradients(std::span<const NodeRef> roots) {
  const NodeMap<char> stored = Slopes(roots).stored();
  if (stored.size() == 0) return {roots.begin(), roots.end()};
  return rewrite_once(roots, kRules, stored);
}

}  // namespace anneal
