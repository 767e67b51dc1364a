// Memory for the buffers of a schedule, a loop over its parts, and the comparison.
// Must not know how a part is run.
#include "schedule_runner.h"

#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include <anneal/error.h>

namespace anneal {
namespace {

// No right result has these: NaN, and a number far from all others.
uint64_t poison(DType dtype) {
  if (is_float(dtype)) return Scalar::of(dtype, std::numeric_limits<double>::quiet_NaN()).bits();
  return Scalar::of_int(dtype, is_bool(dtype) ? 1 : 0x5a).bits();
}

int64_t slot_of(NodeRef buffer) { return buffer->arg.symbol->first; }

// Buffers by number, for a schedule has copies of them, whose sizes may be written in another way.
std::map<int64_t, NodeRef> buffers_by_slot(std::span<const NodeRef> roots) {
  std::map<int64_t, NodeRef> buffers;
  for (NodeRef node : topological_order(roots))
    if (node->op == Op::Buffer) buffers[slot_of(node)] = node;
  return buffers;
}

}  // namespace

std::function<int64_t(NodeRef)> variables_by_name(std::span<const NodeRef> roots,
                                                  const GraphContents& contents) {
  std::map<std::string, int64_t, std::less<>> named;
  for (NodeRef node : topological_order(roots))
    if (node->op == Op::Variable)
      named[std::string(node->arg.symbol->text())] = contents.size(node);
  return [named](NodeRef node) { return named.at(std::string(node->arg.symbol->text())); };
}

std::vector<Value> initial_memory(std::span<const NodeRef> roots, const Schedule& schedule,
                                  GraphContents& contents) {
  const std::map<int64_t, NodeRef> buffers = buffers_by_slot(roots);
  const auto variable = variables_by_name(roots, contents);
  std::vector<Value> memory;
  for (const ScheduleBuffer& buffer : schedule.buffers) {
    const int64_t elements = interpret_index(buffer.elements, variable);
    Value value{buffer.dtype, {elements}, {}};
    if (buffer.external) {
      value.payload = contents.value(buffers.at(slot_of(buffer.external))).payload;
      if (value.size() != elements)
        throw InternalError(
            fmt::format("a buffer of {} elements is scheduled with {}", value.size(), elements));
    } else {
      value.payload.assign(static_cast<size_t>(elements), poison(buffer.dtype));
    }
    memory.push_back(std::move(value));
  }
  return memory;
}

std::string compare_memory(std::span<const NodeRef> roots, const Schedule& schedule,
                           GraphContents& contents, const Expectation& expected,
                           std::span<const Value> memory) {
  std::set<size_t> assigned;
  for (size_t i = 0; i < roots.size(); ++i) {
    const auto number = static_cast<size_t>(schedule.outputs[i]);
    Value got = memory[number];
    if (got.size() != expected.values[i].size())
      return fmt::format("root {} has {} elements", i, got.size());
    got.shape = expected.values[i].shape;
    if (roots[i]->op == Op::Assign) {
      assigned.insert(number);
      NodeRef external = schedule.buffers[number].external;
      if (!external || slot_of(external) != slot_of(roots[i]->source(0)))
        return fmt::format("root {} is stored elsewhere", i);
    }
    const std::string text = difference(got, expected.values[i], expected.errors[i]);
    if (!text.empty()) return fmt::format("root {} {}", i, text);
  }
  const std::map<int64_t, NodeRef> buffers = buffers_by_slot(roots);
  for (size_t number = 0; number < memory.size(); ++number) {
    NodeRef external = schedule.buffers[number].external;
    if (!external || assigned.contains(number)) continue;
    if (memory[number].payload != contents.value(buffers.at(slot_of(external))).payload)
      return fmt::format("buffer {} is written, and nothing is assigned to it",
                         external->arg.symbol->text());
  }
  return "";
}

std::string run_and_compare(std::span<const NodeRef> roots, const Schedule& schedule,
                            GraphContents& contents, const Expectation& expected,
                            const PartRunner& run_part) {
  const auto variable = variables_by_name(roots, contents);
  std::vector<Value> memory = initial_memory(roots, schedule, contents);
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (size_t i = phase.size(); i-- > 0;) {
        std::vector<Value*> values;
        for (int argument : phase[i].arguments)
          values.push_back(&memory[static_cast<size_t>(argument)]);
        run_part(phase[i], values, variable);
      }
  return compare_memory(roots, schedule, contents, expected, memory);
}

}  // namespace anneal
