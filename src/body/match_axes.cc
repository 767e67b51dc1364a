#include "body/match_axes.h"

#include <algorithm>

#include "body/substitute.h"
#include "ir/index.h"

namespace anneal {
namespace {

// Axes of equal size could match in any order; more tries than this are not worth it.
constexpr int kMostTries = 24;

class Matcher {
 public:
  Matcher(std::span<const Axis> producer, NodeRef store, std::span<const Axis> consumer,
          NodeRef position)
      : producer_(producer), store_(store), position_(position) {
    for (NodeRef node : topological_order({&position, 1}))
      for (const Axis& axis : consumer)
        if (axis.variable == node) candidates_.push_back(axis);
  }

  std::optional<Renaming> run() {
    const size_t axes = store_axes(store_).size();
    if (candidates_.size() != axes) return {};
    if (!extend(0)) return {};
    return renaming_;
  }

 private:
  bool extend(size_t i) {
    if (i == store_axes(store_).size())
      return tries_++ < kMostTries && renamed(store_->source(1), renaming_) == position_;
    NodeRef axis = store_axes(store_)[i];
    NodeRef size = std::ranges::find(producer_, axis, &Axis::variable)->size;
    for (const Axis& candidate : candidates_) {
      if (candidate.size != size || tries_ >= kMostTries) continue;
      if (std::ranges::count(renaming_, candidate.variable, &Renaming::value_type::second))
        continue;
      renaming_.emplace_back(axis, candidate.variable);
      if (extend(i + 1)) return true;
      renaming_.pop_back();
    }
    return false;
  }

  std::span<const Axis> producer_;
  NodeRef store_, position_;
  std::vector<Axis> candidates_;
  Renaming renaming_;
  int tries_ = 0;
};

}  // namespace

NodeRef renamed(NodeRef root, const Renaming& renaming) {
  NodeMap<NodeRef> by;
  for (const auto& [from, to] : renaming) by[from] = to;
  return substitute({&root, 1}, by)[0];
}

std::optional<Renaming> match_axes(std::span<const Axis> producer, NodeRef store,
                                   std::span<const Axis> consumer, NodeRef position) {
  return Matcher(producer, store, consumer, position).run();
}

}  // namespace anneal
