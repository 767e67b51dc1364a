#include "schedule/memory/memory_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/call_site.h"
#include "base/checked.h"

namespace anneal {
namespace {

// A temporary to place.
struct Block {
  int buffer;
  int64_t bytes;  // rounded up to the alignment
  Lifetime life;
};

struct Placement {
  std::vector<int64_t> offsets;  // by block
  int64_t end = 0;
};

// Greedy: each block in the order given goes into the tightest gap between those placed before that
// live at the same time, or above them all.
Placement place(std::span<const Block> blocks, std::span<const int> order, int64_t give_up_at) {
  struct Placed {
    int64_t begin, end;
    Lifetime life;
  };
  Placement result{std::vector<int64_t>(blocks.size(), 0), 0};
  std::vector<Placed> placed;  // ordered by begin
  placed.reserve(blocks.size());
  for (int number : order) {
    const Block& block = blocks[static_cast<size_t>(number)];
    int64_t gap_begin = 0, best = -1, best_size = std::numeric_limits<int64_t>::max();
    for (const Placed& other : placed) {
      if (!other.life.overlaps(block.life)) continue;
      const int64_t gap = other.begin - gap_begin;
      if (gap >= block.bytes && gap < best_size) {
        best = gap_begin;
        best_size = gap;
        if (gap == block.bytes) break;
      }
      gap_begin = std::max(gap_begin, other.end);
    }
    const int64_t offset = best >= 0 ? best : gap_begin;
    result.offsets[static_cast<size_t>(number)] = offset;
    result.end = std::max(result.end, offset + block.bytes);
    if (result.end >= give_up_at) return result;
    auto at = std::ranges::upper_bound(placed, offset, {}, &Placed::begin);
    placed.insert(at, {offset, offset + block.bytes, block.life});
  }
  return result;
}

template <typename Rank>
std::vector<int> ordered(size_t count, Rank rank) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, rank);
  return order;
}

int64_t most_alive(std::span<const Block> blocks, int steps) {
  std::vector<int64_t> change(static_cast<size_t>(steps) + 1, 0);
  for (const Block& block : blocks) {
    change[static_cast<size_t>(block.life.first)] += block.bytes;
    change[static_cast<size_t>(block.life.last) + 1] -= block.bytes;
  }
  int64_t alive = 0, most = 0;
  for (int64_t step : change) most = std::max(most, alive += step);
  return most;
}

// Beyond this many, what is placed is not compared with all that was placed before.
constexpr size_t kFewBlocks = 4096;

// Memory that is free at some time: gaps below an end that only grows.
class FreeGaps {
 public:
  // In the tightest gap that is large enough, or at the end.
  int64_t take(int64_t bytes) {
    auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) {
      const bool last_is_free = !gaps_.empty() && end_of(std::prev(gaps_.end())) == end_;
      const int64_t begin = last_is_free ? remove(std::prev(gaps_.end())) : end_;
      end_ = begin + bytes;
      return begin;
    }
    const auto [size, begin] = *fit;
    remove(gaps_.find(begin));
    if (size > bytes) insert(begin + bytes, size - bytes);
    return begin;
  }

  void give_back(int64_t begin, int64_t bytes) {
    auto next = gaps_.lower_bound(begin);
    if (next != gaps_.end() && next->first == begin + bytes) {
      bytes += next->second;
      remove(next++);
    }
    if (next != gaps_.begin() && end_of(std::prev(next)) == begin) {
      bytes += std::prev(next)->second;
      begin = remove(std::prev(next));
    }
    insert(begin, bytes);
  }

  int64_t end() const { return end_; }

 private:
  using Gaps = std::map<int64_t, int64_t>;  // bytes by where they begin
  static int64_t end_of(Gaps::const_iterator gap) { return gap->first + gap->second; }
  void insert(int64_t begin, int64_t bytes) {
    gaps_[begin] = bytes;
    by_size_.insert({bytes, begin});
  }
  int64_t remove(Gaps::const_iterator gap) {
    const int64_t begin = gap->first;
    by_size_.erase({gap->second, begin});
    gaps_.erase(gap);
    return begin;
  }

  Gaps gaps_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t end_ = 0;
};

// Each block in the order of time, in what is free then.
Placement place_in_time(std::span<const Block> blocks) {
  auto block = [&](int i) -> const Block& { return blocks[static_cast<size_t>(i)]; };
  Placement result{std::vector<int64_t>(blocks.size(), 0), 0};
  FreeGaps free;
  const std::vector<int> ends = ordered(blocks.size(), [&](int i) { return block(i).life.last; });
  auto ended = ends.begin();
  for (int number : ordered(
           blocks.size(), [&](int i) { return std::pair(block(i).life.first, -block(i).bytes); })) {
    for (; block(*ended).life.last < block(number).life.first; ++ended)
      free.give_back(result.offsets[static_cast<size_t>(*ended)], block(*ended).bytes);
    result.offsets[static_cast<size_t>(number)] = free.take(block(number).bytes);
  }
  result.end = free.end();
  return result;
}

Placement arrange(std::span<const Block> blocks, int64_t lower_bound) {
  auto block = [&](int i) -> const Block& { return blocks[static_cast<size_t>(i)]; };
  if (blocks.size() > kFewBlocks) return place_in_time(blocks);
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  Placement best =
      place(blocks, ordered(blocks.size(), [&](int i) { return -block(i).bytes; }), kNever);
  auto attempt = [&](auto rank) {
    if (best.end == lower_bound) return;
    Placement other = place(blocks, ordered(blocks.size(), rank), best.end);
    if (other.end < best.end) best = std::move(other);
  };
  // Large and long-lived first; then in the order of time.
  attempt([&](int i) {
    return -static_cast<double>(block(i).bytes) * (block(i).life.last - block(i).life.first + 1);
  });
  attempt([&](int i) { return block(i).life.first; });
  attempt(
      [&](int i) { return std::pair(block(i).life.first - block(i).life.last, -block(i).bytes); });
  return best;
}

int64_t checked_bytes(int64_t elements, int64_t element_bytes) {
  const std::optional<int64_t> bytes = checked_mul(elements, element_bytes);
  if (elements < 0) fail(fmt::format("a size is negative: {} elements", elements));
  // Leaves room to round up, and for a thousand of them to be added.
  if (!bytes || *bytes > std::numeric_limits<int64_t>::max() >> 11)
    fail(fmt::format("{} elements of {} bytes are more than memory can be", elements,
                     element_bytes));
  return *bytes;
}

}  // namespace

std::vector<Lifetime> lifetimes(const Schedule& schedule) {
  std::vector<Lifetime> lives(schedule.buffers.size());
  std::vector<int> stored_at(schedule.buffers.size(), -1);
  int step = 0;
  for (const Kernel& kernel : schedule.kernels) {
    for (const KernelPhase& phase : kernel.phases) {
      for (const KernelPart& part : phase) {
        for (int argument : part.arguments) {
          Lifetime& life = lives[static_cast<size_t>(argument)];
          if (life.first < 0) life.first = step;
          life.last = step;
        }
        for (NodeRef store : part.body.stores)
          for (size_t i = 0; i < part.arguments.size(); ++i) {
            int& first = stored_at[static_cast<size_t>(part.arguments[i])];
            if (part.body.buffers[i] == store->source(0) && first < 0) first = step;
          }
      }
      ++step;
    }
  }
  for (size_t i = 0; i < lives.size(); ++i)
    if (schedule.buffers[i].is_temporary() && lives[i].first >= 0 && stored_at[i] != lives[i].first)
      throw InternalError(fmt::format("memory plan: buffer {} is read in phase {} and stored in {}",
                                      i, lives[i].first, stored_at[i]));
  return lives;
}

MemoryPlanner::MemoryPlanner(const Schedule& schedule, std::span<const NodeRef> variables)
    : lifetimes_(anneal::lifetimes(schedule)) {
  std::vector<NodeRef> elements;
  for (size_t i = 0; i < schedule.buffers.size(); ++i) {
    const ScheduleBuffer& buffer = schedule.buffers[i];
    const bool temporary = buffer.is_temporary();
    const bool stored = !buffer.tile && (!temporary || lifetimes_[i].first >= 0);
    buffers_.push_back({static_cast<int64_t>(byte_size(buffer.dtype)), temporary, stored});
    elements.push_back(buffer.elements);
  }
  for (const Lifetime& life : lifetimes_) steps_ = std::max(steps_, life.last + 1);
  elements_ = IndexProgram(elements, variables);
}

MemoryPlan MemoryPlanner::plan(std::span<const int64_t> sizes) const {
  MemoryPlan plan;
  plan.bytes = elements_.evaluate(sizes);
  plan.offsets.assign(buffers_.size(), -1);
  std::vector<Block> blocks;
  int64_t total = 0;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    plan.bytes[i] = checked_bytes(plan.bytes[i], buffers_[i].element_bytes);
    if (buffers_[i].stored && plan.bytes[i] > plan.largest_bytes())
      plan.largest = static_cast<int>(i);
    if (!buffers_[i].temporary) continue;
    if (plan.bytes[i] == 0 || lifetimes_[i].first < 0) {
      plan.offsets[i] = 0;
      continue;
    }
    const int64_t rounded = (plan.bytes[i] + kArenaAlignment - 1) & ~(kArenaAlignment - 1);
    std::optional<int64_t> sum = checked_add(total, rounded);
    if (!sum) fail("the temporaries of a program are more than memory can be");
    total = *sum;
    blocks.push_back({static_cast<int>(i), rounded, lifetimes_[i]});
  }
  plan.lower_bound = most_alive(blocks, steps_);
  const Placement placement = arrange(blocks, plan.lower_bound);
  plan.arena_bytes = placement.end;
  for (size_t i = 0; i < blocks.size(); ++i)
    plan.offsets[static_cast<size_t>(blocks[i].buffer)] = placement.offsets[i];
  return plan;
}

MemoryPlan plan_memory(const Schedule& schedule,
                       const std::function<int64_t(NodeRef variable)>& size) {
  std::vector<NodeRef> elements;
  for (const ScheduleBuffer& buffer : schedule.buffers) elements.push_back(buffer.elements);
  const std::vector<NodeRef> variables = variables_of(elements);
  std::vector<int64_t> sizes;
  for (NodeRef variable : variables) {
    if (!size) fail(fmt::format("variable {} has no value", variable->arg.symbol->text()));
    sizes.push_back(size(variable));
  }
  return MemoryPlanner(schedule, variables).plan(sizes);
}

}  // namespace anneal
