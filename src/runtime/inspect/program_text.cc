#include "runtime/inspect/program_text.h"

#include <fmt/format.h>

#include <anneal/device.h>

#include "base/call_site.h"
#include "runtime/execute/evaluator.h"
#include "runtime/inspect/kernel_text.h"
#include "runtime/inspect/pass_text.h"

namespace anneal {
namespace {

KernelListing listing_of(const CanonicalProgram& program) {
  const std::string device = device_name();
  const Capabilities* capabilities = current_evaluator().capabilities();
  if (!capabilities)
    fail(fmt::format("device \"{}\" makes no kernels", device), "choose another device");
  return list_kernels(program, *capabilities, device);
}

std::string title(const KernelListing& listing, std::string_view name) {
  return fmt::format("{}: program {} on {}\n", name, to_text(listing.key), device_name());
}

}  // namespace

std::string kernels_text(const CanonicalProgram& program, std::string_view name) {
  const KernelListing listing = listing_of(program);
  return title(listing, name) + to_text(listing);
}

std::string passes_text(const CanonicalProgram& program, std::string_view name) {
  constexpr size_t kShownRewrites = 1;  // of each pass
  const PassTrace trace(kShownRewrites);
  const KernelListing listing = listing_of(program);
  return fmt::format("{}{} nodes before, {} after the rules, {} kernels\n\n{}",
                     title(listing, name), listing.nodes_before, listing.nodes,
                     listing.kernels.size(), to_text(trace));
}

}  // namespace anneal
