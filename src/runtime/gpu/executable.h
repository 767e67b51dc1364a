// Schedules on any GPU: kernels are compiled for the memory of their arguments, launches are bound
// once for each set of places and sizes, and what runs again is replayed.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "runtime/gpu/backend.h"

namespace anneal::gpu {

// The backend of a device as it is now: another one after the GPU was lost.
using CurrentBackend = std::function<std::shared_ptr<Backend>()>;

// `plans`: what a search recorded; null: kernels run by the planner's own.
std::unique_ptr<Executable> make_executable(CurrentBackend current, const Schedule& schedule,
                                            std::span<const NodeRef> variables,
                                            const Capabilities& capabilities,
                                            TunedPlans* plans = nullptr);

}  // namespace anneal::gpu
