// The built-in programs as the commands see them: found by name, taken as lists of nodes.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/node.h"
#include "models/program.h"

namespace anneal::cli {

std::vector<std::string_view> program_names();
// A UsageError that lists the programs when there is none of that name.
const models::ProgramRow& program_named(std::string_view name);

models::Program build(const models::ProgramRow& row);

std::vector<NodeRef> nodes_of(std::span<const Tensor> tensors);
// Loss, gradients, updates: what a training step computes.
std::vector<NodeRef> step_roots(const models::Program& program);

// How many nodes have a line in the text: all that the roots reach but index constants.
size_t count_nodes(std::span<const NodeRef> roots);

}  // namespace anneal::cli
