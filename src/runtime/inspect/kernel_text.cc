#include "runtime/inspect/kernel_text.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/call_site.h"
#include "ir/print.h"

namespace anneal {
namespace {

template <typename Number>
std::string mega(Number amount) {
  return fmt::format("{:.3f}", static_cast<double>(amount) * 1e-6);
}

std::string micro(double seconds) { return fmt::format("{:.1f}", seconds * 1e6); }

// Where costs decided, both of them.
std::string cost_text(const UnfusedCost& cost) {
  return cost.decided() ? fmt::format("{} us again, {} us stored", micro(cost.again * 1e-9),
                                      micro(cost.stored * 1e-9))
                        : "";
}

}  // namespace

std::string totals_text(const KernelListing& listing) {
  const MemoryCount& memory = listing.memory;
  const bool phases_known = std::ranges::any_of(
      listing.kernels, [](const ListedKernel& kernel) { return !kernel.step_phases.empty(); });
  const std::string crossing =
      phases_known
          ? fmt::format(", {} of them (*) with forward and backward nodes", listing.crossing())
          : std::string();
  return fmt::format(
      "{} nodes in {} kernels{}\n"
      "work: {} MFLOP, {} MB read, {} MB written\n"
      "memory: {} MB at most: {} MB of inputs, {} MB of results, {} MB of {} MB of temporaries at "
      "a "
      "time\n",
      listing.nodes, listing.kernels.size(), crossing, mega(listing.work.flops),
      mega(listing.work.bytes_read), mega(listing.work.bytes_written), mega(memory.peak()),
      mega(memory.inputs), mega(memory.outputs), mega(memory.arena), mega(memory.temporaries));
}

std::string table_head(bool timed) {
  return fmt::format("{:>3}  {:<31} {:<23} {:>5} {:>5} {:>7} {:>9} {:>8} {:>8}{}\n", "", "kernel",
                     "phases", "nodes", "ops", "cells", "MFLOP", "MB read", "written",
                     timed ? fmt::format(" {:>9}", "us") : "");
}

std::string table_line(const KernelListing& listing, size_t number,
                       std::span<const double> seconds) {
  const ListedKernel& kernel = listing.kernels[number];
  return fmt::format("{:>3}{} {:<31} {:<23} {:>5} {:>5} {:>7} {:>9} {:>8} {:>8}{}", number,
                     kernel.crosses() ? '*' : ' ', kernel.name, phases_text(kernel), kernel.nodes,
                     kernel.work.operations, kernel.cells(), mega(kernel.work.flops),
                     mega(kernel.work.bytes_read), mega(kernel.work.bytes_written),
                     seconds.empty() ? "" : fmt::format(" {:>9}", micro(seconds[number])));
}

std::string phases_text(const ListedKernel& kernel) {
  std::vector<std::string_view> names;
  for (Phase phase : kernel.step_phases) names.push_back(name(phase));
  return fmt::format("{}", fmt::join(names, "+"));
}

std::string origin_text(NodeRef node) {
  return node && node->origin ? to_text(*node->origin) : std::string();
}

std::string_view meaning(UnfusedReason reason) {
  switch (reason) {
    case UnfusedReason::Reuse: return "to compute it again costs more than to store it";
    case UnfusedReason::Dtype: return "the same, because its dtype is narrow";
    case UnfusedReason::Uses: return "too many would compute it for themselves";
    case UnfusedReason::Reduce: return "a reduction would be made again";
    case UnfusedReason::Product: return "groups of threads would make an operand again and again";
    case UnfusedReason::Shape: return "others run over it in another order or shape";
    case UnfusedReason::Size: return "too few rows would be left to share the work";
    case UnfusedReason::Length: return "the kernel would take too long to compile";
    case UnfusedReason::Order: return "something else has to be computed in between";
    case UnfusedReason::Limit: return "the device has no room for more in one kernel";
    case UnfusedReason::Disabled: return "values are not computed where they are used";
  }
  return "";
}

std::vector<UnfusedValue> unfused_values(const Schedule& schedule) {
  std::vector<UnfusedValue> values;
  for (const UnfusedEdge& edge : schedule.unfused) {
    auto known = std::ranges::find_if(
        values, [&](const UnfusedValue& value) { return value.edge->buffer == edge.buffer; });
    if (known == values.end()) known = values.insert(values.end(), {&edge, {}});
    known->readers.push_back(edge.consumer);
  }
  std::ranges::stable_sort(values, {},
                           [](const UnfusedValue& value) { return value.edge->producer; });
  return values;
}

std::string unfused_line(const UnfusedValue& value) {
  const UnfusedEdge& edge = *value.edge;
  const std::string edges =
      fmt::format("{:>3} > {}", edge.producer, fmt::join(value.readers, ", "));
  return fmt::format("{:<20} {:<8} {:<24} {:<33}", edges, name(edge.reason),
                     edge.value ? type_text(edge.value) : std::string(), cost_text(edge.cost));
}

std::string limit_line(const BufferLimit& limit) {
  return fmt::format("{:<20} one kernel would bind {} buffers, the device allows {}\n", "",
                     limit.needed, limit.allowed);
}

std::string reasons_text(std::span<const UnfusedValue> values) {
  std::map<UnfusedReason, size_t> reasons;
  for (const UnfusedValue& value : values) ++reasons[value.edge->reason];
  std::string text;
  for (const auto& [reason, count] : reasons)
    text += fmt::format("{:>5} {}: {}\n", count, name(reason), meaning(reason));
  return text;
}

std::string to_text(const KernelListing& listing) {
  std::string text = totals_text(listing) + "\n" + table_head(false);
  for (size_t i = 0; i < listing.kernels.size(); ++i) text += table_line(listing, i, {}) + "\n";
  const std::vector<UnfusedValue> values = unfused_values(listing.schedule);
  if (values.empty()) return text;
  text += fmt::format("\n{}", kUnfusedTitle);
  for (const UnfusedValue& value : values) {
    text += fmt::format("{}  {}\n", unfused_line(value), origin_text(value.edge->value));
    if (value.edge->reason == UnfusedReason::Limit) text += limit_line(value.edge->limit);
  }
  return text + reasons_text(values);
}

}  // namespace anneal
