#include "runtime/program/distinct_bodies.h"

#include <algorithm>
#include <limits>
#include <map>

#include "ir/build.h"
#include "ir/index.h"
#include "ir/node_map.h"

namespace anneal {
namespace {

using Nodes = std::vector<NodeRef>;

// Fewer are as well compiled one by one: as they stand, positions are known to the compiler.
constexpr size_t kManyBodies = 8;

// All of a body but its stores: the memory and the loops.
Nodes frame_of(const KernelBody& body) {
  Nodes nodes;
  for (const Nodes* list : {&body.buffers, &body.variables, &body.tile_axes, &body.tiles}) {
    nodes.insert(nodes.end(), list->begin(), list->end());
    nodes.push_back(nullptr);
  }
  for (const Axis& axis : body.axes) nodes.insert(nodes.end(), {axis.variable, axis.size});
  return nodes;
}

// A body whose buffers begin where it first reads them, if that is further on.
class Shift {
 public:
  explicit Shift(const KernelBody& body)
      : body_(body), offsets_(body.buffers.size(), std::numeric_limits<int64_t>::max()) {
    order_ = topological_order(body.stores);
    for (NodeRef node : order_)
      if (node->op == Op::Load) note(node);
    for (NodeRef store : body.stores) offsets_[slot_of(store)] = 0;
    for (NodeRef tile : body.tiles) offsets_[static_cast<size_t>(tile->arg.symbol->first)] = 0;
    for (int64_t& offset : offsets_)
      if (offset == std::numeric_limits<int64_t>::max() || offset < 0) offset = 0;
  }

  const std::vector<int64_t>& offsets() const { return offsets_; }

  Nodes stores() const {
    NodeMap<NodeRef> images;
    Nodes sources, result;
    for (NodeRef node : order_) {
      sources.clear();
      for (NodeRef source : node->sources()) sources.push_back(*images.find(source));
      if (node->op == Op::Load)
        sources[1] = index_add(sources[1], index_const(-offsets_[slot_of(node)]));
      images[node] = with_sources(node, sources);
    }
    for (NodeRef store : body_.stores) result.push_back(*images.find(store));
    return result;
  }

 private:
  static size_t slot_of(NodeRef access) {
    return static_cast<size_t>(access->source(0)->arg.symbol->first);
  }

  void note(NodeRef load) {
    const LinearForm form = linear_form(load->source(1));
    int64_t& offset = offsets_[slot_of(load)];
    offset = std::min(offset, form.overflow ? 0 : form.constant);
  }

  const KernelBody& body_;
  Nodes order_;
  std::vector<int64_t> offsets_;  // by buffer
};

}  // namespace

DistinctBodies distinct_bodies(const Schedule& schedule) {
  // Nodes are interned, so bodies that do the same are the same lists of nodes.
  DistinctBodies result;
  std::map<Nodes, int> numbers;
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase) {
        Nodes nodes = part.body.stores;
        nodes.push_back(nullptr);
        const Nodes frame = frame_of(part.body);
        nodes.insert(nodes.end(), frame.begin(), frame.end());
        const int next = static_cast<int>(result.bodies.size());
        auto [entry, fresh] = numbers.emplace(std::move(nodes), next);
        if (fresh) result.bodies.push_back(&part.body);
        result.of_part.push_back(entry->second);
      }
  return result;
}

ShiftedBodies shifted_bodies(const Schedule& schedule) {
  const DistinctBodies distinct = distinct_bodies(schedule);
  GraphScope scope(*schedule.graph);
  std::map<Nodes, std::vector<size_t>> by_frame;
  for (size_t i = 0; i < distinct.bodies.size(); ++i)
    by_frame[frame_of(*distinct.bodies[i])].push_back(i);
  // Of those that become the same, each is the first of them, shifted.
  std::vector<size_t> first(distinct.bodies.size());
  std::vector<std::vector<int64_t>> offsets(distinct.bodies.size());
  std::map<size_t, KernelBody> made;
  for (size_t i = 0; i < first.size(); ++i) first[i] = i;
  for (const auto& [frame, alike] : by_frame) {
    if (alike.size() < kManyBodies) continue;
    std::map<Nodes, std::vector<size_t>> by_stores;
    for (size_t i : alike) by_stores[Shift(*distinct.bodies[i]).stores()].push_back(i);
    for (const auto& [stores, same] : by_stores) {
      if (same.size() < kManyBodies) continue;
      made[same[0]] = *distinct.bodies[same[0]];
      made[same[0]].stores = stores;
      for (size_t i : same) {
        first[i] = same[0];
        offsets[i] = Shift(*distinct.bodies[i]).offsets();
      }
    }
  }
  ShiftedBodies result;
  std::vector<int> numbers(first.size(), -1);
  for (size_t i = 0; i < first.size(); ++i) {
    if (first[i] != i) continue;
    numbers[i] = static_cast<int>(result.bodies.size());
    const auto own = made.find(i);
    if (own != made.end()) result.made.push_back(std::move(own->second));
    result.bodies.push_back(own != made.end() ? &result.made.back() : distinct.bodies[i]);
  }
  for (int body : distinct.of_part) {
    const auto i = static_cast<size_t>(body);
    result.of_part.push_back(numbers[first[i]]);
    result.offsets.push_back(offsets[i]);
  }
  return result;
}

}  // namespace anneal
