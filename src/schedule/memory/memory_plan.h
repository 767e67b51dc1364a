// Where the temporaries of a schedule live: liveness over the phases in order, and places in one
// arena. A function of structure and sizes alone. Allocates nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "schedule/schedule.h"
#include "symbolic/index_program.h"

namespace anneal {

// What every device can bind from.
inline constexpr int64_t kArenaAlignment = 256;

// When a buffer is needed, in phases counted over all kernels; both ends included.
struct Lifetime {
  int first = -1, last = -1;  // -1: never touched
  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

// What does not depend on sizes. Throws InternalError for a temporary that is read before any phase
// has stored to it.
std::vector<Lifetime> lifetimes(const Schedule& schedule);

struct MemoryPlan {
  std::vector<int64_t> bytes;    // of every buffer of the schedule
  std::vector<int64_t> offsets;  // of temporaries in the arena, aligned; -1 for the others
  int largest = -1;              // of those that are stored; others live within kernels
  int64_t arena_bytes = 0;       // what the temporaries take together: the peak, exactly
  // No arrangement takes less: the most that is alive in one phase.
  int64_t lower_bound = 0;

  int64_t largest_bytes() const { return largest < 0 ? 0 : bytes[static_cast<size_t>(largest)]; }
};

// Plans for one binding after another; the work that does not depend on sizes is done once.
class MemoryPlanner {
 public:
  // `variables`: the symbolic sizes, in the order in which plan() gets their values.
  MemoryPlanner(const Schedule& schedule, std::span<const NodeRef> variables);

  bool is_static() const { return elements_.is_static(); }
  std::span<const Lifetime> buffer_lifetimes() const { return lifetimes_; }
  MemoryPlan plan(std::span<const int64_t> sizes) const;

 private:
  struct Buffer {
    int64_t element_bytes;
    bool temporary, stored;
  };
  std::vector<Buffer> buffers_;
  std::vector<Lifetime> lifetimes_;
  int steps_ = 0;
  IndexProgram elements_;
};

MemoryPlan plan_memory(const Schedule& schedule,
                       const std::function<int64_t(NodeRef variable)>& size = nullptr);

}  // namespace anneal
