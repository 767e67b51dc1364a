#include "cli/inspect/programs.h"

#include <fmt/format.h>

#include "cli/busy.h"
#include "cli/failure.h"
#include "ir/graph.h"
#include "runtime/capture/assignments.h"
#include "runtime/inspect/kernel_listing.h"

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
  for (const Tensor& update : program.updates) roots.push_back(update.node());
  return roots;
}

CanonicalProgram canonical_program(const models::Program& program, bool forward) {
  static const Contents nothing{Bindings{}};
  const std::vector<NodeRef> roots = step_roots(program);
  return CanonicalProgram(Request{
      {program.loss.node()}, forward ? std::vector<NodeRef>() : assignments(roots), &nothing});
}

KernelListing list_kernels(const models::Program& program, bool forward,
                           const Capabilities& capabilities, std::string_view where) {
  const std::vector<NodeRef> gradients = nodes_of(program.gradients);
  return anneal::list_kernels(canonical_program(program, forward), capabilities, where,
                              forward ? std::vector{program.loss.node()} : gradients);
}

}  // namespace anneal::cli
