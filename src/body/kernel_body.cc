#include "body/kernel_body.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/node_map.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace anneal {

const Axis& KernelBody::axis_of(NodeRef variable) const {
  auto axis = std::ranges::find(axes, variable, &Axis::variable);
  if (axis == axes.end())
    throw InternalError(fmt::format("{} is no axis of the kernel", anneal::to_text(variable)));
  return *axis;
}

namespace {

bool is_store(NodeRef node) { return node->op == Op::Store || node->op == Op::StoreAdd; }

std::string problem_of_store(const KernelBody& body, NodeRef store, Stores stores) {
  if (!is_store(store)) return fmt::format("{} is no store", name(store->op));
  for (NodeRef other : body.stores)
    if (stores == Stores::OneForABuffer && other != store && other->source(0) == store->source(0))
      return "two stores write the same buffer";
  if (!std::ranges::equal(body.tile_axes,
                          store->sources().subspan(4).first(
                              std::min(body.tile_axes.size(), store->source_count - size_t{4}))))
    return "a store does not begin with the axes of the tiles";
  return "";
}

std::string problem_of_node(const KernelBody& body, NodeRef node) {
  if (node->op == Op::Buffer) {
    const auto slot = static_cast<size_t>(node->arg.symbol->first);
    if (slot >= body.buffers.size() || body.buffers[slot] != node)
      return "a buffer is not in the list";
  }
  if (node->op == Op::Variable) {
    bool known = std::ranges::count(body.variables, node) > 0 ||
                 std::ranges::count(body.axes, node, &Axis::variable) > 0;
    if (!known) return fmt::format("{} is neither a size nor an axis", to_text(node));
  }
  if (node->op == Op::Load && std::ranges::count(body.tiles, node->source(0)) == 0)
    for (NodeRef store : body.stores)
      if (store->source(0) == node->source(0) && store->source(1) != node->source(1))
        return "loads from where another element is stored";
  return "";
}

}  // namespace

std::string verify(const KernelBody& body, Stores stores) {
  std::string problem = verify(body.stores, kKernelStage);
  if (!problem.empty()) return problem;
  for (NodeRef store : body.stores)
    if (problem = problem_of_store(body, store, stores); !problem.empty()) return problem;
  for (NodeRef node : topological_order(body.stores))
    if (problem = problem_of_node(body, node); !problem.empty())
      return fmt::format("{}: {}", print_line(body.stores, node), problem);
  return "";
}

std::string to_text(const KernelBody& body) {
  std::string text;
  for (const Axis& axis : body.axes)
    text += fmt::format("# {} < {}\n", axis.variable->arg.symbol->text(), to_text(axis.size));
  if (!body.tiles.empty()) {
    text += "# tiles";
    for (NodeRef tile : body.tiles) text += fmt::format(" #{}", tile->arg.symbol->first);
    text += " of";
    for (NodeRef axis : body.tile_axes) text += fmt::format(" {}", axis->arg.symbol->text());
    text += "\n";
    for (NodeRef axis : body.block_axes)
      text += fmt::format("# one {} after the other\n", axis->arg.symbol->text());
  }
  return text + print(body.stores);
}

}  // namespace anneal
