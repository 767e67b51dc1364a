#include "ir/verify.h"

#include <fmt/format.h>

#include "ir/infer.h"
#include "ir/print.h"

namespace anneal {
namespace {

std::string problem_of(NodeRef node, const Stage& stage) {
  if (!stage.legal.contains(node->op))
    return fmt::format("{} is not legal in stage {}", name(node->op), stage.name);
  const DType dtype = infer_dtype(node->op, node->dtype, node->sources());
  if (dtype != node->dtype)
    return fmt::format("its dtype is {}, not {}", name(dtype), name(node->dtype));
  const Shape* shape = nullptr;
  std::string problem =
      infer_shape(current_graph(), node->op, node->dtype, node->sources(), node->arg, &shape);
  if (problem.empty() && shape != node->shape)
    problem = fmt::format("its shape is {}, not {}", to_text(*shape), to_text(*node->shape));
  return problem;
}

}  // namespace

std::string verify(std::span<const NodeRef> roots, const Stage& stage) {
  for (NodeRef node : topological_order(roots)) {
    const std::string problem = problem_of(node, stage);
    if (!problem.empty()) return fmt::format("{}: {}", print_line(roots, node), problem);
  }
  return "";
}

}  // namespace anneal
