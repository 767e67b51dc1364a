// A listing of kernels as text for people. Must not print, nor colour: who shows it does.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/inspect/kernel_listing.h"

namespace anneal {

// "452 nodes in 10 kernels, ...", the work and the memory: three lines.
std::string totals_text(const KernelListing& listing);

// The table: its head, and the line of each kernel; `seconds`, by kernel, where they were measured.
std::string table_head(bool timed);
std::string table_line(const KernelListing& listing, size_t kernel,
                       std::span<const double> seconds);

std::string phases_text(const ListedKernel& kernel);  // "forward+backward"

// A value that one kernel stores for others, however many load it.
struct UnfusedValue {
  const UnfusedEdge* edge = nullptr;  // one of them
  std::vector<int> readers;
};
std::vector<UnfusedValue> unfused_values(const Schedule& schedule);
inline constexpr std::string_view kUnfusedTitle =
    "not fused: stored by one kernel for others, what decided it, and costs where they did\n";
std::string unfused_line(const UnfusedValue& value);  // but for the origin of the value
std::string limit_line(const BufferLimit& limit);     // that follows where a limit decided
std::string origin_text(NodeRef node);                // empty where it has none
std::string_view meaning(UnfusedReason reason);       // what each reason says of a value
std::string reasons_text(std::span<const UnfusedValue> values);  // a line each, with counts

// All of it.
std::string to_text(const KernelListing& listing);

}  // namespace anneal
