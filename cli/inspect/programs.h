// The built-in programs as the commands see them: found by name, taken as lists of nodes.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/node.h"
#include "models/program.h"

namespace anneal {
class CanonicalProgram;
struct Capabilities;
struct KernelListing;
}  // namespace anneal

namespace anneal::cli {

std::vector<std::string_view> program_names();
// A UsageError that lists the programs when there is none of that name.
const models::ProgramRow& program_named(std::string_view name);

models::Program build(const models::ProgramRow& row);

std::vector<NodeRef> nodes_of(std::span<const Tensor> tensors);
// Loss and updates: what a training step computes.
std::vector<NodeRef> step_roots(const models::Program& program);

// As it is compiled: the whole step, or only what the loss needs.
CanonicalProgram canonical_program(const models::Program& program, bool forward);
KernelListing list_kernels(const models::Program& program, bool forward,
                           const Capabilities& capabilities, std::string_view where);

}  // namespace anneal::cli
