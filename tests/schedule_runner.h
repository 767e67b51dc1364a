// Runs a schedule kernel by kernel on host values with whatever runs one part, and compares what
// comes out with the interpreter: outputs, assigned buffers, and that nothing else was written.
// Must not know how a part is run.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "graph_check.h"
#include "schedule/schedule.h"

namespace anneal {

// Runs one part: values[i] is the memory of part.body.buffers[i].
using PartRunner = std::function<void(const KernelPart& part, std::span<Value* const> values,
                                      const std::function<int64_t(NodeRef variable)>& size)>;

// What goes wrong when the roots run as the schedule says, for the contents; empty when nothing
// does. Memory that nothing has written yet holds poison. The phases of a kernel run in order, the
// parts of a phase backwards, for they may run in any order.
std::string run_and_compare(std::span<const NodeRef> roots, const Schedule& schedule,
                            GraphContents& contents, const Expectation& expected,
                            const PartRunner& run_part);

// The comparison alone: `memory` is what every buffer of the schedule holds in the end; temporaries
// may be empty.
std::string compare_memory(std::span<const NodeRef> roots, const Schedule& schedule,
                           GraphContents& contents, const Expectation& expected,
                           std::span<const Value> memory);

// What every buffer of the schedule holds at first: the contents, or poison.
std::vector<Value> initial_memory(std::span<const NodeRef> roots, const Schedule& schedule,
                                  GraphContents& contents);

// Numbers of the Variables, for nodes of any graph.
std::function<int64_t(NodeRef)> variables_by_name(std::span<const NodeRef> roots,
                                                  const GraphContents& contents);

}  // namespace anneal
