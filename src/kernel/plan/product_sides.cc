// Products of matrices in any fused form: which axes are rows and columns, and what their operands
// are. The same on every target.
#include <algorithm>
#include <cmath>

#include "kernel/plan/body_planner.h"
#include "kernel/plan/cost.h"

namespace anneal {

BodyPlanner::Operands BodyPlanner::operands_of(const Region& region, size_t rows, size_t columns) {
  std::vector<NodeRef> terms;
  for (NodeRef head : region.heads) terms.push_back(head->source(0));
  return product_operands(terms, region.own, rows, columns, analysis_.free_axes());
}

double BodyPlanner::extent(std::span<const size_t> axes) const {
  double product = 1;
  for (size_t axis : axes) product *= static_cast<double>(analysis_.expected_size(axis));
  return product;
}

// The axis among these along which most loads of an operand move in such steps; of equals the
// longest, but `preferred` before all.
size_t BodyPlanner::axis_of_stride(NodeRef operand, const AxisSet& axes, Stride stride,
                                   size_t preferred) {
  size_t best = kNoAxis, most = 0;
  for (size_t axis : (axes & analysis_.free(operand)).list()) {
    size_t count = 0;
    for (NodeRef node : topological_order(std::span(&operand, 1)))
      if (node->op == Op::Load && stride_of(analysis_, node, axis) == stride) ++count;
    const bool better =
        axis == preferred || (best != kNoAxis && best != preferred &&
                              analysis_.expected_size(axis) > analysis_.expected_size(best));
    if (count < most || count == 0 || (count == most && !better)) continue;
    best = axis;
    most = count;
  }
  return best;
}

// The axes of the grid that only one side's operands have, in the order of the result. The sizes of
// all but the outermost must be known.
std::vector<size_t> BodyPlanner::side_axes(const std::vector<NodeRef>& here,
                                           const std::vector<NodeRef>& there) {
  AxisSet mine, theirs;
  for (NodeRef node : here) mine = mine | analysis_.free(node);
  for (NodeRef node : there) theirs = theirs | analysis_.free(node);
  const AxisSet only = (mine & common_axes()).without(theirs);
  std::vector<size_t> axes = by_stride(only.list(), groups_[0][0], kNoAxis);
  for (size_t i = axes.size(); i-- > 1;)
    if (!is_static(analysis_.size(axes[i]))) {
      axes.erase(axes.begin(), axes.begin() + static_cast<long>(i));
      break;
    }
  return axes;
}

// Whether everything that is loaded and stored for these nodes, up to other reductions, lies as if
// the axes were one: each moves as far as all of the next one together.
bool BodyPlanner::can_flatten(std::span<const NodeRef> roots, std::span<const size_t> axes,
                              std::span<const NodeRef> known) {
  if (axes.size() < 2) return true;
  AxisSet set;
  for (size_t axis : axes) set.add(axis);
  std::vector<NodeRef> stack(roots.begin(), roots.end());
  NodeMap<char> seen;
  for (NodeRef node : known) seen[node] = 1;
  while (!stack.empty()) {
    NodeRef node = stack.back();
    stack.pop_back();
    if (!seen.insert(node, 1).second || (analysis_.free(node) & set).empty()) continue;
    if (node->op == Op::Buffer || node->op == Op::Const) continue;
    if (node->dtype == DType::Index) {
      const AxisForm& form = analysis_.form(node);
      if (form.overflow || !(form.in_rest & set).empty()) return false;
      for (size_t i = 0; i + 1 < axes.size(); ++i) {
        if (!is_static(analysis_.size(axes[i + 1]))) return false;
        LinearForm difference = form.slope(axes[i]);
        difference.add(form.slope(axes[i + 1]), -static_value(analysis_.size(axes[i + 1])));
        if (!is_zero(difference)) return false;
      }
      continue;
    }
    const size_t sources =
        node->op == Op::Store || node->op == Op::StoreAdd || is_reduce_over(node->op)
            ? info(node->op).sources
            : node->source_count;
    for (NodeRef source : node->sources().first(sources)) stack.push_back(source);
  }
  return true;
}

bool BodyPlanner::is_plain(NodeRef operand) {
  return operand->op == Op::Load && operand->source(2)->is_const();
}

// Whether the elements that are summed are neighbours in memory, in order.
bool BodyPlanner::lies_as_summed(NodeRef operand, std::span<const size_t> summed) {
  return is_plain(operand) && can_flatten(std::span(&operand, 1), summed) &&
         stride_of(analysis_, operand, summed.back()) == Stride::Unit;
}

// How many of the summed axes, the last ones, are neighbours in memory, in order; 0 where only one
// of several is.
size_t BodyPlanner::flat_axes(NodeRef operand, std::span<const size_t> summed) {
  for (size_t count = summed.size(); count > 1 || count == summed.size(); --count)
    if (lies_as_summed(operand, summed.last(count))) return count;
  return 0;
}

// Steps it takes to bring all of an operand into memory of the cell once.
double BodyPlanner::pack_cost(NodeRef operand, size_t last, bool of_rows,
                              std::span<const size_t> summed) {
  AxisSet within;
  within.add(last);
  for (size_t axis : summed) within.add(axis);
  // What lanes run along is best read as neighbours.
  const size_t preferred = of_rows ? kNoAxis : last;
  const size_t unit = axis_of_stride(operand, within, Stride::Unit, preferred);
  const size_t flat_count = unit == summed.back() ? flat_axes(operand, summed) : 0;
  const bool flat = flat_count > 0 && extent(summed.last(flat_count)) >= lanes_;
  const double full = lanes_;
  double each = kPackScattered;
  if (unit != kNoAxis && (of_rows || unit == last))
    each = kPackContiguous * full /
           (flat_count > 0 ? speed_over(extent(summed.last(flat_count))) : speed(unit));
  else if (unit != kNoAxis && (flat || analysis_.expected_size(unit) >= lanes_))
    each = kPackTurned * full / speed(last);
  const size_t second = axis_of_stride(operand, within, Stride::Two, preferred);
  if (second != kNoAxis && (second == last || (of_rows && unit == kNoAxis)))
    each = std::min(each, kPackSecond * full / speed(second));
  if (!is_plain(operand)) each *= kPackComputed;
  return std::min(each, kPackScattered) * iterations(analysis_, analysis_.free(operand));
}

// Steps of the whole product with these rows and columns, tiles rounded up.
double BodyPlanner::product_cost(const Region& region, size_t rows, size_t columns) {
  const Operands operands = operands_of(region, rows, columns);
  if (!operands.is_product()) return -1;
  const std::vector<size_t> down = side_axes(operands.of_rows, operands.of_columns);
  const std::vector<size_t> across = side_axes(operands.of_columns, operands.of_rows);
  if (down.back() != rows || across.back() != columns) return -1;  // the same with other names
  AxisSet others = region.domain;
  for (size_t axis : down) others.remove(axis);
  for (size_t axis : across) others.remove(axis);
  if (extent(down) < kFewestRows) return -1;
  const double vectors = std::ceil(extent(across) / lanes_);
  double cost = iterations(analysis_, others) * vectors * (extent(down) + 1);
  const std::vector<size_t> summed = summed_order(region, operands);
  // Threads share the side whose operands cost more to pack; those of the other are packed again
  // for each.
  double pack_rows = 0, pack_columns = 0;
  for (NodeRef operand : operands.of_rows)
    if (!lies_as_summed(operand, summed)) pack_rows += pack_cost(operand, rows, true, summed);
  for (NodeRef operand : operands.of_columns)
    pack_columns += pack_cost(operand, columns, false, summed);
  cost += pack_rows + pack_columns + (kRepeats - 1) * std::min(pack_rows, pack_columns);
  for (NodeRef store : groups_[0])
    if (stride_of(analysis_, store, columns) != Stride::Unit)
      cost += kStoreScattered * iterations(analysis_, analysis_.listed_set(store));
  return cost;
}

// The reduced axes as an operand has them in memory, so that they may run as one; but where the
// inner ones are too many for a block, the largest first.
std::vector<size_t> BodyPlanner::summed_order(const Region& region, const Operands& operands) {
  std::vector<size_t> order = region.own.list();
  for (const std::vector<NodeRef>& side : {operands.of_columns, operands.of_rows})
    for (NodeRef operand : side)
      for (NodeRef node : topological_order(std::span(&operand, 1)))
        if (node->op == Op::Load && analysis_.free(node->source(1)).contains(region.own))
          order = by_stride(region.own.list(), node, kNoAxis);
  if (extent(std::span(order).subspan(1)) <= kDeepest) return order;
  auto deepest = std::max_element(order.begin(), order.end(), [&](size_t a, size_t b) {
    return analysis_.expected_size(a) < analysis_.expected_size(b);
  });
  std::rotate(order.begin(), deepest, deepest + 1);
  return order;
}

// The reduction that most of the work goes into, if all else is one group of stores that follows
// it.
const Region* BodyPlanner::heaviest_sum() const {
  if (groups_.size() != 1 || !analysis_.body().tiles.empty()) return nullptr;
  const AxisSet common = common_axes();
  if (!(analysis_.listed_set(groups_[0][0]) == common)) return nullptr;
  const Region* heaviest = nullptr;
  double total = 0, most = 0;
  for (const Region& each : regions_) {
    const double work = iterations(analysis_, each.domain) * static_cast<double>(each.nodes.size());
    total += work;
    if (!each.is_reduction || work <= most) continue;
    heaviest = &each;
    most = work;
  }
  if (!heaviest || most < total / 2) return nullptr;
  return common.contains(heaviest->domain.without(heaviest->own)) ? heaviest : nullptr;
}

BodyPlanner::Sides BodyPlanner::choose_sides(const Region& region) {
  const std::vector<size_t> axes = (common_axes() & region.domain).list();
  Sides sides;
  double least = -1;
  for (size_t across : axes)
    for (size_t down : axes) {
      if (down == across) continue;
      const double cost = product_cost(region, down, across);
      if (cost < 0 || (least >= 0 && cost >= least)) continue;
      least = cost;
      sides = {down, across};
    }
  return sides;
}

}  // namespace anneal
