#include "schedule/canonical.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "ir/build.h"
#include "ir/index.h"
#include "ir/node_map.h"
#include "schedule/substitute.h"

namespace anneal {
namespace {

class Canonical {
 public:
  Canonical(const Fragment& fragment, std::span<const ScheduleBuffer> buffers,
            std::span<const int> memory)
      : fragment_(fragment), axes_(fragment.axes), buffers_(buffers), memory_(memory) {}

  KernelPart run(std::span<const NodeRef> stores) {
    const std::vector<NodeRef> order = topological_order(stores);
    name_store_axes(stores);
    name_reduction_axes(order);
    for (NodeRef node : order)
      if (node->op == Op::Buffer) number_buffer(node);
    part_.body.stores = substitute(stores, images_);
    for (NodeRef axis : fragment_.tile_axes) part_.body.tile_axes.push_back(*images_.find(axis));
    for (int tile : fragment_.tiles) {
      auto argument = std::ranges::find(part_.arguments, tile);
      part_.body.tiles.push_back(
          part_.body.buffers[static_cast<size_t>(argument - part_.arguments.begin())]);
    }
    for (NodeRef node : topological_order(part_.body.stores))
      if (node->op == Op::Variable && !is_axis(node)) note_size(node);
    for (const Axis& axis : part_.body.axes)
      for (NodeRef node : topological_order({&axis.size, 1}))
        if (node->op == Op::Variable) note_size(node);
    std::ranges::sort(part_.body.variables, [](NodeRef a, NodeRef b) { return a->key < b->key; });
    return std::move(part_);
  }

 private:
  bool is_axis(NodeRef variable) const {
    return std::ranges::count(part_.body.axes, variable, &Axis::variable) > 0;
  }
  void note_size(NodeRef variable) {
    if (std::ranges::count(part_.body.variables, variable) == 0)
      part_.body.variables.push_back(variable);
  }

  NodeRef size_of(NodeRef axis) const {
    return std::ranges::find(axes_, axis, &Axis::variable)->size;
  }

  NodeRef add_axis(char letter, size_t number, NodeRef old) {
    const Symbol* bounds = old->arg.symbol;
    NodeRef variable = make_variable(fmt::format("{}{}", letter, number), 0, bounds->second);
    part_.body.axes.push_back({variable, size_of(old)});
    return variable;
  }

  void name_store_axes(std::span<const NodeRef> stores) {
    size_t count = 0;
    for (NodeRef store : stores)
      for (NodeRef axis : store->sources().subspan(4))
        if (!images_.contains(axis)) images_[axis] = add_axis('i', count++, axis);
  }

  // A name belongs to its reduction alone, so reductions that are not inside each other share
  // them: what they compute in common is then the same node.
  void name_reduction_axes(std::span<const NodeRef> order) {
    NodeMap<int> height;
    std::map<std::tuple<int, size_t, Key>, NodeRef> names;
    for (NodeRef node : order) {
      int most = 0;
      for (NodeRef source : node->sources()) most = std::max(most, height[source]);
      height[node] = most + (is_reduce_over(node->op) ? 1 : 0);
      if (!is_reduce_over(node->op)) continue;
      for (size_t i = 1; i < node->source_count; ++i) {
        NodeRef axis = node->source(i);
        if (images_.contains(axis)) continue;
        NodeRef& name = names[{most, i, size_of(axis)->key}];
        if (!name) name = add_axis('k', names.size() - 1, axis);
        images_[axis] = name;
      }
    }
  }

  void number_buffer(NodeRef node) {
    const int number = memory_[static_cast<size_t>(schedule_buffer_of(node))];
    auto known = std::ranges::find(part_.arguments, number);
    const auto slot = static_cast<size_t>(known - part_.arguments.begin());
    if (known == part_.arguments.end()) {
      const ScheduleBuffer& buffer = buffers_[static_cast<size_t>(number)];
      part_.arguments.push_back(number);
      part_.body.buffers.push_back(
          make_buffer("", static_cast<int64_t>(slot), buffer.dtype, {&buffer.elements, 1}));
    }
    images_[node] = part_.body.buffers[slot];
  }

  const Fragment& fragment_;
  std::span<const Axis> axes_;
  std::span<const ScheduleBuffer> buffers_;
  std::span<const int> memory_;
  NodeMap<NodeRef> images_;
  KernelPart part_;
};

}  // namespace

KernelPart canonical_part(const Fragment& fragment, std::span<const NodeRef> stores,
                          std::span<const ScheduleBuffer> buffers, std::span<const int> memory) {
  return Canonical(fragment, buffers, memory).run(stores);
}

}  // namespace anneal
