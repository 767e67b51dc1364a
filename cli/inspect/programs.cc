#include "cli/inspect/programs.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/busy.h"
#include "cli/failure.h"
#include "ir/graph.h"

namespace anneal::cli {

std::vector<std::string_view> program_names() {
  std::vector<std::string_view> names;
  for (const models::ProgramRow& row : models::programs()) names.push_back(row.name);
  return names;
}

const models::ProgramRow& program_named(std::string_view name) {
  const models::ProgramRow* row = models::find_program(name);
  if (!row) fail_unknown("program", name, program_names());
  return *row;
}

models::Program build(const models::ProgramRow& row) {
  const Busy busy(fmt::format("building {}", row.name));
  return row.build();
}

std::vector<NodeRef> nodes_of(std::span<const Tensor> tensors) {
  std::vector<NodeRef> nodes;
  for (const Tensor& tensor : tensors) nodes.push_back(tensor.node());
  return nodes;
}

std::vector<NodeRef> step_roots(const models::Program& program) {
  std::vector<NodeRef> roots{program.loss.node()};
  for (const auto* part : {&program.gradients, &program.updates})
    for (const Tensor& tensor : *part) roots.push_back(tensor.node());
  return roots;
}

size_t count_nodes(std::span<const NodeRef> roots) {
  const std::vector<NodeRef> order = topological_order(roots);
  return static_cast<size_t>(std::count_if(order.begin(), order.end(), [](NodeRef node) {
    return !(node->is_const() && node->dtype == DType::Index);
  }));
}

}  // namespace anneal::cli
