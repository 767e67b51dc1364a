#include "schedule/fragments/canonical.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "body/substitute.h"
#include "ir/build.h"
#include "ir/index.h"
#include "ir/node_map.h"

namespace anneal {
namespace {

// The look of the index 1: two numbers without a pattern.
constexpr Key kOne{0x9e3779b97f4a7c15u, 0xd1b54a32d192ed03u};

class Canonical {
 public:
  Canonical(const Fragment& fragment, std::span<const ScheduleBuffer> buffers,
            std::span<const int> memory)
      : fragment_(fragment), axes_(fragment.axes), buffers_(buffers), memory_(memory) {}

  KernelPart run(std::span<const NodeRef> given) {
    name_store_axes(given);
    const std::vector<NodeRef> stores = with_ordered_operands(given);
    const std::vector<NodeRef> order = topological_order(stores);
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

  // What a node is but for the numbers of buffers, and in the first place but for which axis is
  // which: x[i] + 1 and the x[k] + 1 of a sum must have one order to be found to be the same.
  struct Look {
    Key of_sizes, of_axes;
    auto operator<=>(const Look&) const = default;
  };

  // The graph orders operands by what they are, down to which buffer is read; kernels that differ
  // in nothing else must not differ in that order.
  std::vector<NodeRef> with_ordered_operands(std::span<const NodeRef> stores) {
    NodeMap<Look> looks;
    NodeMap<NodeRef> ordered;
    std::vector<NodeRef> sources;
    std::vector<Look> parts;
    for (NodeRef node : topological_order(stores)) {
      sources.clear();
      for (NodeRef source : node->sources()) sources.push_back(*ordered.find(source));
      parts.clear();
      for (NodeRef source : node->sources()) parts.push_back(*looks.find(source));
      if (commutes(node) && parts[1] < parts[0] && !sources[1]->is_const()) {
        std::swap(parts[0], parts[1]);
        std::swap(sources[0], sources[1]);
      }
      looks[node] = {look_of(node, parts, &Look::of_sizes), look_of(node, parts, &Look::of_axes)};
      ordered[node] = with_sources(node, sources);
    }
    std::vector<NodeRef> result;
    for (NodeRef store : stores) result.push_back(*ordered.find(store));
    return result;
  }

  // Maximum and minimum do not: of two equal zeros they answer the first.
  // Index arithmetic has an order of its own.
  static bool commutes(NodeRef node) {
    if (node->dtype == DType::Index) return false;
    switch (node->op) {
      case Op::Add:
      case Op::Mul:
      case Op::And:
      case Op::Or:
      case Op::Xor:
      case Op::Eq: return true;
      default: return false;
    }
  }

  Key look_of(NodeRef node, std::span<const Look> parts, Key Look::* part) const {
    if (node->op == Op::Variable) {
      auto axis = std::ranges::find(axes_, node, &Axis::variable);
      if (axis == axes_.end()) return node->key;
      const NodeRef* name = part == &Look::of_axes ? images_.find(node) : nullptr;
      return name ? (*name)->key : axis->size->key;
    }
    // A sum looks the same however its terms are ordered and grouped: (a + b) * 3 as b * 3 + a * 3.
    if (node->dtype == DType::Index) {
      if (node->is_const()) return times(kOne, node);
      if (node->op == Op::Mul && node->source(1)->is_const())
        return times(parts[0].*part, node->source(1));
      if (node->op == Op::Add) {
        const Key &a = parts[0].*part, &b = parts[1].*part;
        return {a.high + b.high, a.low + b.low};
      }
    }
    if (node->source_count == 0 && node->op != Op::Buffer) return node->key;
    KeyBuilder look(number(node->op));
    look.add(static_cast<uint64_t>(node->dtype));
    look.add(node->shape->key);
    for (const Look& each : parts) look.add(each.*part);
    return look.finish();
  }

  static Key times(const Key& look, NodeRef constant) {
    const auto factor = static_cast<uint64_t>(constant->scalar().as_int());
    return {look.high * factor, look.low * factor};
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
