// Other ways to run a body on workgroups than the planner's own, and what all of them are expected
// to take: arithmetic or memory, whichever is slower, on as much of the device as they keep busy.
// What a candidate is made of is given, and the rest chosen as ever.
#include <algorithm>
#include <cmath>
#include <set>

#include "kernel/plan/cost.h"
#include "kernel/plan/gpu/gpu_planner.h"
#include "kernel/plan/plan_check.h"
#include "kernel/plan/plan_text.h"
#include "kernel/plan/workgroup_memory.h"
#include "target/workgroup_tiles.h"

namespace anneal {
namespace {

using Form = WorkgroupPins::Form;

Form form_of(const KernelPlan& plan) {
  if (std::holds_alternative<WorkgroupProduct>(plan.kind)) return Form::Product;
  if (std::holds_alternative<TransposeTile>(plan.kind)) return Form::Transpose;
  return std::holds_alternative<WorkgroupElements>(plan.kind) ? Form::Elements : Form::Rows;
}

// The planner's tiles of a product's kind, then the others.
std::vector<const WorkgroupTile*> tiles_of(const WorkgroupProduct& plan) {
  std::span<const WorkgroupTile> known = kDirectTiles, more = kMoreDirectTiles;
  if (!plan.staged.empty()) known = kStagedTiles, more = kMoreStagedTiles;
  if (!plan.matrices.empty()) known = kMatrixTiles, more = kMoreMatrixTiles;
  std::vector<const WorkgroupTile*> tiles;
  for (const std::span<const WorkgroupTile>& each : {known, more})
    for (const WorkgroupTile& tile : each) tiles.push_back(&tile);
  return tiles;
}

bool has_tile(const WorkgroupProduct& plan, const WorkgroupTile& tile) {
  return plan.rows.threads == tile.row_threads && plan.rows.copies == tile.row_copies &&
         plan.columns.threads == tile.column_threads && plan.columns.copies == tile.column_copies;
}

// With every tile: the k tile that is chosen, and given ones.
void pin_products(const WorkgroupProduct& own, std::vector<WorkgroupPins>& all) {
  for (const WorkgroupTile* tile : tiles_of(own)) {
    all.push_back({.form = Form::Product, .tile = tile});
    if (!own.matrices.empty()) {
      for (const int64_t depth : kMatrixKTiles)
        for (const int at_once : {2, 1})
          all.push_back(
              {.form = Form::Product, .tile = tile, .depth = depth, .matrices_at_once = at_once});
    } else if (!own.staged.empty()) {
      for (const int64_t depth : kTriedKTiles)
        for (const int64_t blocks : kTriedKTilesOfRound)
          if (blocks == 1 || depth == kShortKTile)
            all.push_back({.form = Form::Product, .tile = tile, .depth = depth, .blocks = blocks});
    }
  }
}

// What was given to a plan, as far as it can be seen in it.
bool may_have_made(const WorkgroupPins& pins, const KernelPlan& plan) {
  if (form_of(plan) != pins.form) return false;
  if (const auto* product = std::get_if<WorkgroupProduct>(&plan.kind))
    return (!pins.tile || has_tile(*product, *pins.tile)) &&
           (pins.depth == 0 || pins.depth == product->depth) &&
           (pins.blocks == 0 || pins.blocks == product->blocks);
  if (const auto* elements = std::get_if<WorkgroupElements>(&plan.kind))
    return (pins.neighbours == 0 || pins.neighbours == elements->neighbours) &&
           (pins.copies == 0 || pins.copies == elements->copies);
  return true;
}

// The tile of a product's sides, with its speed.
const WorkgroupTile* tile_of(const WorkgroupProduct& plan) {
  for (const WorkgroupTile* tile : tiles_of(plan))
    if (has_tile(plan, *tile)) return tile;
  return nullptr;
}

}  // namespace

// ---- what plans take

double GpuPlanner::bytes_per_nanosecond() const {
  const double known = capabilities_.memory_gb_per_second;
  return known > 0 ? known : kTypicalGbPerSecond;
}
double GpuPlanner::flop_per_nanosecond() const {
  const double known = capabilities_.f32_gflop_per_second;
  return known > 0 ? known : kTypicalGflopPerSecond;
}

// Each element that is read or written, once.
double GpuPlanner::bytes_of_memory() {
  double bytes = 0;
  for (const Region& region : regions_)
    for (NodeRef node : region.nodes)
      if (is_access(node))
        bytes += iterations(analysis_, analysis_.free(node)) *
                 static_cast<double>(byte_size(node->dtype));
  return bytes;
}

namespace {

// Of so many threads, those that keep a device busy.
double busy_part(double threads, const Capabilities& capabilities) {
  return std::clamp(threads / static_cast<double>(capabilities.parallel_threads), 1e-9, 1.0);
}
double starting(double groups, const Capabilities& capabilities) {
  const double cores =
      std::max(1.0, static_cast<double>(capabilities.parallel_threads) / kThreadsOfCore);
  return groups * kStartOfWorkgroup / cores;
}

}  // namespace

double GpuPlanner::nanoseconds_of(const WorkgroupProduct& plan) {
  const WorkgroupTile* tile = tile_of(plan);
  if (!tile) return 0;
  const double terms = extent(plan.summed), heads = static_cast<double>(plan.sums.size());
  const double down = std::ceil(extent(plan.rows.axes) / tile->rows());
  const double across = std::ceil(extent(plan.columns.axes) / tile->columns());
  const double others = extent(plan.others), groups = down * across * others;
  double steps = steps_of_tile(plan, *tile) * terms * heads;
  if (!plan.matrices.empty()) steps *= static_cast<double>(plan.matrices.size()) / kSpeedOfMatrices;
  double again = 0;  // bytes of operands, for every tile that needs them
  if (!plan.staged.empty()) {
    const auto depth = static_cast<double>(plan.depth);
    steps *=
        1 + kTermsOfBarrier / depth + kTermsOfJump / (depth * static_cast<double>(plan.blocks));
    const double shared = static_cast<double>(cell_memory_bytes({.kind = plan}, analysis_));
    steps *= std::max(1.0, shared * tile->at_once / kSharedBytesOfCore);
    for (const WorkgroupOperand& operand : plan.staged)
      again += iterations(analysis_, analysis_.free(operand.node)) *
               static_cast<double>(byte_size(operand.node->dtype)) *
               (operand.of_rows ? across : down);
  }
  const double arithmetic = steps * 2 / flop_per_nanosecond();
  const double memory = bytes_of_memory() / bytes_per_nanosecond() /
                        busy_part(groups * tile->threads() * kMostInFlight, capabilities_);
  const double caches = again / bytes_per_nanosecond() / kSpeedOfCache;
  return std::max({arithmetic, memory, caches}) + starting(groups, capabilities_);
}

double GpuPlanner::nanoseconds_of(const WorkgroupElements& plan) {
  const double elements = extent(plan.axes), of_thread = plan.neighbours * plan.copies;
  const double groups = std::ceil(elements / (of_thread * plan.threads));
  const double threads = groups * plan.threads;
  const size_t along = plan.axes.empty() ? kNoAxis : plan.axes.back();
  double instructions = 0;
  for (const Region& region : regions_) {
    // Every thread makes all it needs by itself.
    const double again =
        region.is_reduction
            ? std::max(1.0, elements / iterations(analysis_, region.domain.without(region.own)))
            : 1;
    const size_t axis = along != kNoAxis && region.domain.contains(along) ? along : kNoAxis;
    instructions += again * cost(region, axis) * speed(axis);
  }
  const double in_flight = std::min<double>(of_thread, kMostInFlight);
  const double arithmetic =
      instructions * 2 / flop_per_nanosecond() / busy_part(threads, capabilities_);
  const double memory =
      bytes_of_memory() / bytes_per_nanosecond() / busy_part(threads * in_flight, capabilities_);
  return std::max(arithmetic, memory) + starting(groups, capabilities_);
}

double GpuPlanner::nanoseconds_of(const TransposeTile& plan) {
  constexpr double kSide = TransposeTile::kSide;
  const double groups = extent(plan.others) * std::ceil(extent({{plan.along}}) / kSide) *
                        std::ceil(extent({{plan.across}}) / kSide);
  const double threads = groups * TransposeTile::kThreads * kMostInFlight;
  return bytes_of_memory() / bytes_per_nanosecond() / kSpeedOfTranspose /
             busy_part(threads, capabilities_) +
         starting(groups, capabilities_);
}

double GpuPlanner::nanoseconds_of(const CellPlan& plan) {
  double groups = 1;
  size_t along = kNoAxis;
  int in_flight = 1;
  for (const GridAxis& axis : plan.grid) {
    groups *= std::ceil(static_cast<double>(analysis_.expected_size(axis.axis)) /
                        static_cast<double>(axis.block));
    if (axis.tile.lanes > 1) along = axis.axis;
    in_flight = std::max(in_flight, axis.tile.neighbours);
  }
  const double threads = groups * lanes_;
  const double busy = busy_part(threads, capabilities_);
  const double at_once =
      std::min(groups, static_cast<double>(capabilities_.parallel_threads) / lanes_);
  double instructions = 0, waiting = 0;
  for (const Region& region : regions_) {
    const bool around = along != kNoAxis && region.domain.contains(along);
    const size_t axis = around ? along : best_own_axis(region);
    instructions += cost(region, axis) * lanes_;
    if (region.is_reduction && !around && axis != kNoAxis)
      waiting += iterations(analysis_, region.domain.without(region.own)) * std::log2(lanes_) / 5;
  }
  const double arithmetic = instructions * 2 / flop_per_nanosecond() / busy;
  const double memory =
      bytes_of_memory() / bytes_per_nanosecond() /
      busy_part(threads * std::min<double>(in_flight, kMostInFlight), capabilities_);
  return std::max(arithmetic, memory) + waiting * kCombineNanoseconds / std::max(1.0, at_once) +
         starting(groups, capabilities_);
}

// Of the plan that was made last.
double GpuPlanner::nanoseconds(const KernelPlan& plan) {
  double nanoseconds = kLaunchNanoseconds;
  if (const auto* product = std::get_if<WorkgroupProduct>(&plan.kind))
    nanoseconds += nanoseconds_of(*product);
  else if (const auto* elements = std::get_if<WorkgroupElements>(&plan.kind))
    nanoseconds += nanoseconds_of(*elements);
  else if (const auto* transpose = std::get_if<TransposeTile>(&plan.kind))
    nanoseconds += nanoseconds_of(*transpose);
  else if (const auto* cell = std::get_if<CellPlan>(&plan.kind))
    nanoseconds += nanoseconds_of(*cell);
  return nanoseconds;
}

// ---- others than the one that was chosen

std::vector<WorkgroupPins> GpuPlanner::variants(const KernelPlan& own) const {
  std::vector<WorkgroupPins> all;
  std::vector<int> counts;
  for (int i = 0, count = capabilities_.most_workgroup_threads;
       i <= kHalvesOfWorkgroup && count > 1; ++i, count /= 2)
    counts.push_back(count);
  if (!analysis_.body().tiles.empty()) {
    for (const int threads : counts) all.push_back({.form = Form::Rows, .threads = threads});
    return all;
  }
  const Form form = form_of(own);
  if (const auto* product = std::get_if<WorkgroupProduct>(&own.kind)) pin_products(*product, all);
  if (form != Form::Transpose) all.push_back({.form = Form::Transpose});
  for (const int threads : counts) {
    for (const int neighbours : {1, 4})
      for (const int copies : {1, 2, 4})
        if (form == Form::Elements || (neighbours == 1 && copies == 1))
          all.push_back({.form = Form::Elements,
                         .threads = threads,
                         .neighbours = neighbours,
                         .copies = copies});
    for (const int accesses : {1, 4, 8})
      if (form == Form::Rows || accesses == 8)
        all.push_back({.form = Form::Rows, .threads = threads, .most_accesses = accesses});
  }
  return all;
}

std::vector<PlanCandidate> GpuPlanner::candidates(bool row_lanes) {
  const KernelPlan own = plan(row_lanes);
  std::vector<PlanCandidate> all{{own, nanoseconds(own)}};
  if (!enabled("vectorise") || most_lanes_ == 1) return all;
  std::set<std::string> known{to_text(own, analysis_)};
  for (const WorkgroupPins& pins : variants(own)) {
    PlanCandidate candidate{make(row_lanes, pins)};
    if (form_of(candidate.plan) != pins.form || !has_room(candidate.plan)) continue;
    if (!verify(candidate.plan, analysis_).empty()) continue;
    candidate.nanoseconds = nanoseconds(candidate.plan);
    if (candidate.nanoseconds > kHopelessCandidate * all[0].nanoseconds) continue;
    if (known.insert(to_text(candidate.plan, analysis_)).second)
      all.push_back(std::move(candidate));
  }
  std::stable_sort(all.begin() + 1, all.end(), [](const PlanCandidate& a, const PlanCandidate& b) {
    return a.nanoseconds < b.nanoseconds;
  });
  return all;
}

// Nothing of it is believed: what it must be is made again.
std::string GpuPlanner::why_not(const KernelPlan& plan, bool row_lanes) {
  if (std::string problem = verify(plan, analysis_); !problem.empty()) return problem;
  const std::string text = to_text(plan, analysis_);
  const KernelPlan own = this->plan(row_lanes);
  if (to_text(own, analysis_) == text) return "";
  const bool known =
      enabled("vectorise") && most_lanes_ > 1 &&
      std::ranges::any_of(variants(own), [&](const WorkgroupPins& pins) {
        if (!may_have_made(pins, plan)) return false;
        const KernelPlan made = make(row_lanes, pins);
        return form_of(made) == pins.form && has_room(made) && to_text(made, analysis_) == text;
      });
  return known ? "" : "parts of it do not follow from the others";
}

}  // namespace anneal
