#include "kernel/plan/body_planner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <anneal/error.h>

#include "kernel/plan/cost.h"
#include "symbolic/bounds.h"
#include "symbolic/polynomial.h"

namespace anneal {
BodyPlanner::BodyPlanner(Analysis& analysis, const Capabilities& capabilities,
                         const std::vector<std::string>& disabled)
    : analysis_(analysis), capabilities_(capabilities), disabled_(disabled) {
  groups_ = groups_of_stores();
  regions_ = regions_of(analysis_, groups_, common_axes());
}

// Bytes of what is computed most: floats, if there are any.
size_t BodyPlanner::widest_element() const {
  size_t widest_float = 0, widest = 1;
  for (const Region& region : regions_)
    for (NodeRef node : region.nodes) {
      if (is_float(node->dtype)) widest_float = std::max(widest_float, byte_size(node->dtype));
      if (is_int(node->dtype)) widest = std::max(widest, byte_size(node->dtype));
    }
  return widest_float > 0 ? std::max<size_t>(4, widest_float) : widest;  // narrow ones become f32
}

bool BodyPlanner::enabled(std::string_view name) const {
  return std::find(disabled_.begin(), disabled_.end(), name) == disabled_.end();
}

// ---- stores

// Axes that every store may run in parallel; with tiles, those of the tiles.
AxisSet BodyPlanner::common_axes() const {
  const KernelBody& body = analysis_.body();
  AxisSet common;
  if (!body.tiles.empty()) {
    for (NodeRef axis : body.tile_axes) common.add(analysis_.number(axis));
    return common;
  }
  for (size_t i = 0; i < body.stores.size(); ++i) {
    AxisSet parallel;
    NodeRef store = body.stores[i];
    for (NodeRef axis : Analysis::listed(store).first(static_cast<size_t>(store->arg.axis)))
      parallel.add(analysis_.number(axis));
    common = i == 0 ? parallel : common & parallel;
  }
  return common;
}

// Stores over the same axes are made together. A group that loads what another one stores (in
// place) comes before it, for loads see what was there before.
std::vector<std::vector<NodeRef>> BodyPlanner::groups_of_stores() const {
  std::vector<std::vector<NodeRef>> groups;
  if (!analysis_.body().tiles.empty()) {  // one after the other, as they stand
    for (NodeRef store : analysis_.body().stores) groups.push_back({store});
    return groups;
  }
  auto ordered = [](NodeRef store) {
    return Analysis::listed(store).subspan(static_cast<size_t>(store->arg.axis));
  };
  for (NodeRef store : analysis_.body().stores) {
    auto alike = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return analysis_.listed_set(group[0]) == analysis_.listed_set(store) &&
             std::ranges::equal(ordered(group[0]), ordered(store));
    });
    if (alike == groups.end()) alike = groups.insert(groups.end(), std::vector<NodeRef>());
    alike->push_back(store);
  }
  std::vector<std::vector<NodeRef>> sorted;
  auto waits = [&](const std::vector<NodeRef>& group, const std::vector<NodeRef>& reader) {
    for (NodeRef node : topological_order(reader))
      for (NodeRef store : group)
        if (node->op == Op::Load && node->source(0) == store->source(0)) return true;
    return false;
  };
  while (!groups.empty()) {
    auto next = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return std::none_of(groups.begin(), groups.end(), [&](const auto& other) {
        return &other != &group && waits(group, other);
      });
    });
    if (next == groups.end()) throw InternalError("stores in place wait for each other");
    sorted.push_back(std::move(*next));
    groups.erase(next);
  }
  return sorted;
}

// Axes a group of stores must run over in order.
AxisSet BodyPlanner::ordered_axes(const Region& region) const {
  AxisSet axes;
  if (region.is_reduction) return axes;
  NodeRef store = region.heads[0];
  for (NodeRef axis : Analysis::listed(store).subspan(static_cast<size_t>(store->arg.axis)))
    axes.add(analysis_.number(axis));
  return axes;
}

// ---- vectors

double BodyPlanner::speed(size_t axis) const {
  return axis == kNoAxis ? 1 : speed_over(static_cast<double>(analysis_.expected_size(axis)));
}

double BodyPlanner::speed_over(double elements) const {
  return elements / std::ceil(elements / lanes_);
}

// Instructions of a region when vectors run along an axis; kNoAxis: without vectors.
double BodyPlanner::cost(const Region& region, size_t vector_axis) {
  if (vector_axis != kNoAxis && !region.domain.contains(vector_axis)) vector_axis = kNoAxis;
  const double scattered = scattered_access();
  double each = 1;
  for (NodeRef node : region.nodes) {
    const bool vector = vector_axis != kNoAxis && is_access(node);
    const Stride stride = vector ? stride_of(analysis_, node, vector_axis) : Stride::None;
    // Loads can be turned in blocks, see turn_blocks(); stores cannot.
    if (node->op == Op::Load)
      each += stride == Stride::Other ? scattered : stride == Stride::Two ? 3 : 1;
    else if (stride == Stride::Other || stride == Stride::Two)
      each += zipped_axis(node, vector_axis) == kNoAxis ? 2 * scattered : 2;
    else
      each += 1;
  }
  return iterations(analysis_, region.domain) / speed(vector_axis) * each;
}

size_t BodyPlanner::best_own_axis(const Region& region) {
  size_t best = kNoAxis;
  const AxisSet ordered = ordered_axes(region);
  const AxisSet own = region.is_reduction ? region.own : region.domain.without(common_axes());
  for (size_t axis : own.without(ordered).list())
    if (cost(region, axis) < cost(region, best)) best = axis;
  return best;
}

// An axis of the grid along which everything that depends on it is vectorised; or kNoAxis, where
// each region does better along an axis of its own.
size_t BodyPlanner::choose_vector_axis(const AxisSet& common) {
  if (lanes_ == 1 || groups_have_rows_) return kNoAxis;
  auto total = [&](size_t axis) {
    double sum = 0;
    for (const Region& region : regions_) {
      const bool around = axis != kNoAxis && region.domain.contains(axis);
      sum += cost(region, around ? axis : best_own_axis(region));
    }
    return sum;
  };
  size_t best = kNoAxis;
  double least = total(kNoAxis);
  for (size_t axis : common.list()) {
    const double sum = total(axis);
    if (sum >= least) continue;
    best = axis;
    least = sum;
  }
  return best;
}

// ---- register tiles

// Whether some load in the region serves several elements along the axis.
bool BodyPlanner::is_reused_along(const Region& region, size_t axis) {
  return std::any_of(region.nodes.begin(), region.nodes.end(), [&](NodeRef node) {
    return node->op == Op::Load && !analysis_.free(node).contains(axis);
  });
}

// Vectors of a loop without reductions: some, so that memory has more than one to wait for.
int BodyPlanner::copies_of_stream(const Region& region, size_t axis) const {
  if (!enabled("unroll")) return 1;
  const int wanted = region.nodes.size() <= kFewNodes    ? 4
                     : region.nodes.size() <= kSomeNodes ? 2
                                                         : 1;
  const int64_t vectors = analysis_.expected_size(axis) / lanes_;
  return static_cast<int>(std::clamp<int64_t>(vectors, 1, wanted));
}

size_t BodyPlanner::nodes_of_all_regions() const {
  size_t nodes = 0;
  for (const Region& region : regions_) nodes += region.nodes.size();
  return nodes;
}

// Tiles of the grid's axes: what a reduction loads is used for several elements at once, and enough
// sums run at the same time to hide how long each addition takes.
void BodyPlanner::choose_register_tile(size_t vector_axis, CellPlan& plan) {
  // The reduction that takes longest decides, or the stores where there is none.
  const Region* heaviest = nullptr;
  double most = 0;
  for (const Region& region : regions_) {
    const double work = cost(region, vector_axis);
    if (!region.is_reduction || work <= most) continue;
    heaviest = &region;
    most = work;
  }
  auto on_grid = [&](size_t axis) {
    return std::find_if(plan.grid.begin(), plan.grid.end(),
                        [&](const GridAxis& each) { return each.axis == axis; });
  };
  const bool vector = vector_axis != kNoAxis;
  if (vector) on_grid(vector_axis)->tile.lanes = lanes_;
  if (!heaviest || (vector && !heaviest->domain.contains(vector_axis))) {
    if (vector && heaviest == nullptr) {
      on_grid(vector_axis)->tile.copies = copies_of_stream(regions_.back(), vector_axis);
      vectorize_accesses(regions_.back(), vector_axis, on_grid(vector_axis)->tile);
      turn_blocks(vector_axis, plan);
      const size_t zipped = zipped_axis(groups_.back()[0], vector_axis);
      if (zipped != kNoAxis && enabled("unroll")) on_grid(zipped)->tile.copies = 2;
    }
    if (!heaviest) return;
    // Threads that have reduced a row go over it once more.
    if (vector) vectorize_accesses(regions_.back(), vector_axis, on_grid(vector_axis)->tile);
  }
  if (!enabled("unroll")) return;
  const Region& region = *heaviest;
  std::vector<size_t> reusable;  // axes of the grid along which it pays to be tiled
  for (const GridAxis& each : plan.grid)
    if (each.axis != vector_axis && region.domain.contains(each.axis) && enabled("tile") &&
        is_reused_along(region, each.axis))
      reusable.push_back(each.axis);
  // The largest ones: ties go to the innermost.
  std::stable_sort(reusable.begin(), reusable.end(), [&](size_t a, size_t b) {
    return analysis_.expected_size(a) > analysis_.expected_size(b);
  });
  const int heads = static_cast<int>(region.heads.size());
  const int registers = std::max(1, capabilities_.vector_registers * 3 / 4 / heads);
  const int budget = std::min(registers, most_copies(nodes_of_all_regions()));
  const bool inside = vector && region.domain.contains(vector_axis);
  if (inside) {
    const int64_t vectors = std::max<int64_t>(1, analysis_.expected_size(vector_axis) / lanes_);
    int along = static_cast<int>(std::min<int64_t>(vectors, reusable.empty() ? 4 : 2));
    if (vectors % 3 == 0 && vectors % 2 != 0 && !reusable.empty()) along = 3;
    along = std::min(along, budget);
    on_grid(vector_axis)->tile.copies = along;
    if (reusable.empty()) return;
    const int64_t size = analysis_.expected_size(reusable[0]);
    int best = 1;
    double least = 1e300;
    for (int copies = 1; copies <= std::min<int64_t>(size, budget / along); ++copies) {
      const int64_t tiles = size / copies;
      const double full = static_cast<double>(tiles) * (copies * (along + 1.0) + along);
      const double rest = static_cast<double>(size % copies) * (along + 1.0 + along);
      if (full + rest > least) continue;
      least = full + rest;
      best = copies;
    }
    on_grid(reusable[0])->tile.copies = best;
    return;
  }
  // Vectors, if any, run along the reduced axes: a square of sums.
  for (size_t i = 0; i < std::min<size_t>(2, reusable.size()); ++i) {
    const int side = std::max(1, std::min(4, static_cast<int>(std::sqrt(budget))));
    const int64_t size = analysis_.expected_size(reusable[i]);
    on_grid(reusable[i])->tile.copies = static_cast<int>(std::min<int64_t>(size, side));
  }
}

// ---- order and grid

// Axes with the longest strides of an access first; `last` at the end.
std::vector<size_t> BodyPlanner::by_stride(const std::vector<size_t>& axes, NodeRef access,
                                           size_t last) {
  auto stride = [&](size_t axis) -> int64_t {
    if (axis == last) return -1;
    const AxisForm& form = analysis_.form(access->source(1));
    if (form.overflow || form.in_rest.contains(axis)) return std::numeric_limits<int64_t>::max();
    const int64_t slope = bounds(form.slope(axis)).max;
    return slope < 0 ? -slope : slope;
  };
  std::vector<size_t> sorted = axes;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](size_t a, size_t b) { return stride(a) > stride(b); });
  return sorted;
}

CellPlan BodyPlanner::plan_cell() {
  CellPlan plan;
  if (groups_.empty()) return plan;
  const AxisSet common = common_axes();
  // A tile holds one row, so rows come one by one.
  const bool tiles = !analysis_.body().tiles.empty();
  const size_t vector_axis = tiles ? kNoAxis : choose_vector_axis(common);
  const bool along_rows =
      !analysis_.reductions().empty() &&
      std::ranges::none_of(analysis_.reductions(), [&](NodeRef reduction) {
        return vector_axis != kNoAxis && analysis_.free(reduction).contains(vector_axis);
      });
  if (along_rows) lanes_ = lanes_along_rows(vector_axis);
  NodeRef first = groups_.back()[0];
  const std::vector<size_t> order =
      tiles ? common.list() : by_stride(common.list(), first, vector_axis);
  for (size_t axis : order) plan.grid.push_back({axis, 1, {}});
  if (!tiles) choose_register_tile(vector_axis, plan);
  choose_blocks(vector_axis, plan);
  for (const std::vector<NodeRef>& group : groups_) {
    const Region& region = *std::find_if(regions_.begin(), regions_.end(),
                                         [&](const Region& each) { return each.heads == group; });
    const AxisSet ordered = ordered_axes(region);
    const AxisSet own = region.domain.without(common);
    const bool around = vector_axis != kNoAxis && region.domain.contains(vector_axis);
    const size_t along = around || lanes_ == 1 || own.empty() ? kNoAxis : best_own_axis(region);
    StorePlan stores{group, {}};
    for (size_t axis : by_stride(own.without(ordered).list(), group[0], along)) {
      Tile tile;
      if (axis == along) {
        tile = {lanes_, copies_of_stream(region, axis)};
        vectorize_accesses(region, axis, tile);
      }
      stores.loops.push_back({axis, tile});
    }
    for (NodeRef axis : Analysis::listed(group[0]))
      if (ordered.contains(analysis_.number(axis)))
        stores.loops.push_back({analysis_.number(axis), {}});
    plan.stores.push_back(stores);
  }
  return plan;
}

// ---- reductions

std::vector<AxisLoop> BodyPlanner::reduction_loops(const Region& region, bool lanes_around,
                                                   int& most) {
  const AxisSet own = analysis_.listed_set(region.heads[0]);
  const size_t along = !lanes_around && lanes_ > 1 ? best_own_axis(region) : kNoAxis;
  // The access that moves in the smallest steps decides the order of the loops.
  NodeRef access = nullptr;
  for (NodeRef node : region.nodes)
    if (node->op == Op::Load && (analysis_.free(node) & own) == own) access = node;
  std::vector<size_t> order = own.list();
  if (access) order = by_stride(order, access, along);
  if (!access && along != kNoAxis)
    std::stable_partition(order.begin(), order.end(), [&](size_t axis) { return axis != along; });
  std::vector<AxisLoop> loops;
  for (size_t axis : order) loops.push_back({axis, {}});
  if (along != kNoAxis) loops.back().tile.lanes = lanes_;
  if (!enabled("unroll")) return loops;
  const int lanes = loops.back().tile.lanes;
  const int64_t steps = analysis_.expected_size(loops.back().axis) / lanes;
  const int pays = std::min(sums_worthwhile(region), most_copies(region.nodes.size()));
  most = static_cast<int>(std::clamp<int64_t>(steps, 1, pays));
  vectorize_accesses(region, loops.back().axis, loops.back().tile);
  return loops;
}

ReductionPlan BodyPlanner::plan_reduction(const Region& region) {
  ReductionPlan plan;
  plan.reductions = region.heads;
  plan.alone = reduction_loops(region, false, plan.most_copies_alone);
  plan.within_lanes = reduction_loops(region, true, plan.most_copies_within);
  return plan;
}

// ---- all of it

KernelPlan BodyPlanner::make(bool row_lanes, int lanes) {
  // What an earlier plan came to must not be seen.
  lanes_ = lanes;
  groups_have_rows_ = false;
  KernelPlan plan;
  plan.simd = has_vectors();
  plan.row_lanes = row_lanes;
  plan.far_bytes = capabilities_.fast_memory_bytes;
  plan.stream_bytes = capabilities_.streaming_bytes;
  plan.kind = choose(row_lanes);
  for (const Region& region : regions_)
    if (region.is_reduction) plan.reductions.push_back(plan_reduction(region));
  return plan;
}

}  // namespace anneal
