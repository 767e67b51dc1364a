#include "symbolic/index_program.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ir/node_map.h"
#include "ir/semantics.h"

namespace anneal {

bool same_variable(NodeRef a, NodeRef b) {
  return a == b || (a->key == b->key && a->arg.symbol->text() == b->arg.symbol->text() &&
                    a->arg.symbol->first == b->arg.symbol->first &&
                    a->arg.symbol->second == b->arg.symbol->second);
}

std::vector<NodeRef> variables_of(std::span<const NodeRef> nodes) {
  std::vector<NodeRef> found;
  for (NodeRef node : topological_order(nodes))
    if (node->op == Op::Variable) found.push_back(node);
  std::ranges::sort(found, {}, [](NodeRef node) { return node->key; });
  return found;
}

IndexProgram::IndexProgram(std::span<const NodeRef> expressions,
                           std::span<const NodeRef> variables) {
  NodeMap<uint32_t> number;
  for (NodeRef node : topological_order(expressions)) {
    Step step{node->op, node->dtype};
    if (node->op == Op::Const) {
      step.constant = node->arg.bits;
    } else if (node->op == Op::Variable) {
      auto entry = std::ranges::find_if(variables,
                                        [&](NodeRef other) { return same_variable(node, other); });
      if (entry == variables.end())
        throw InternalError(
            fmt::format("a size reads {}, which has no number", node->arg.symbol->text()));
      step.constant = static_cast<uint64_t>(entry - variables.begin());
      reads_variables_ = true;
    } else if (is_elementwise(node->op) && node->source_count <= std::size(step.operands)) {
      for (NodeRef source : node->sources())
        step.operands[step.operand_count++] = *number.find(source);
    } else {
      throw InternalError(fmt::format("a size contains {}", name(node->op)));
    }
    number[node] = static_cast<uint32_t>(steps_.size());
    steps_.push_back(step);
  }
  results_.reserve(expressions.size());
  for (NodeRef expression : expressions) results_.push_back(*number.find(expression));
}

std::vector<int64_t> IndexProgram::evaluate(std::span<const int64_t> values) const {
  std::vector<Scalar> made(steps_.size());
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (step.op == Op::Const) {
      made[i] = Scalar::from_bits(step.dtype, step.constant);
    } else if (step.op == Op::Variable) {
      made[i] = Scalar::of_int(DType::Index, values[step.constant]);
    } else {
      std::array<Scalar, std::size(Step{}.operands)> operands;
      for (uint32_t k = 0; k < step.operand_count; ++k) operands[k] = made[step.operands[k]];
      made[i] =
          anneal::evaluate(step.op, step.dtype, std::span(operands).first(step.operand_count));
    }
  }
  std::vector<int64_t> results;
  results.reserve(results_.size());
  for (uint32_t result : results_) results.push_back(made[result].as_int());
  return results;
}

}  // namespace anneal
