// Programs as kernels of a target: schedule, plans and text. The same for a device that runs them
// and for a target that is nowhere near; nothing here asks a device or the system.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/lower.h"
#include "rewrite/rewriter.h"
#include "schedule/schedule.h"
#include "target/target.h"

namespace anneal {

// What is scheduled of captured roots: convolutions computed as the target's costs say, all of it
// simplified.
std::vector<NodeRef> simplified_for(std::span<const NodeRef> roots,
                                    const Capabilities& capabilities, RewriteLog* log = nullptr,
                                    const DisabledRules& disabled = {});

// A function of the roots and the capabilities alone. Values that are faster to store are stored
// while all temporaries stay within capabilities.arena_bytes; tiles are left out where one does not
// fit the memory of a workgroup.
Schedule schedule_for(std::span<const NodeRef> roots, const Capabilities& capabilities);

// Within the memory of a workgroup, where the capabilities name one. In the current graph, which
// must be the body's own.
LoweredBody lower_for(const KernelBody& body, const LowerOptions& options);

// The plan of a body, and those that come next; of a workgroup, those that fit its memory. In the
// body's own graph.
std::vector<PlanChoice> plan_choices_for(const KernelBody& body, const LowerOptions& options);

// One form that kernels of a target can be shown in.
struct SourceForm {
  std::string_view name;  // "ir", "program", "wgsl", and what backends add: "llvm", "asm"
  Language language;      // None: kernels of every target have it
  std::string (*text)(const Target& target, const Capabilities& capabilities,
                      const Schedule& schedule, const KernelPart& part, const Program& program);
};
const std::vector<SourceForm>& all_source_forms();
std::vector<std::string_view> source_forms(const Target& target);  // their names

}  // namespace anneal
