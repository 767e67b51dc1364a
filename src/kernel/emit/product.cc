#include "kernel/emit/product.h"

#include <algorithm>
#include <optional>

#include "body/match_axes.h"
#include "ir/index.h"
#include "kernel/plan/cost.h"
#include "kernel/plan/product_layout.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

constexpr int64_t kLongestRunOfProduct = 1024;  // terms of one block at most, for accuracy

int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

class ProductEmitter {
 public:
  ProductEmitter(Emitter& emitter, Analysis& analysis, const ProductPlan& plan,
                 std::span<const Emitter::Range> ranges)
      : emitter_(emitter),
        code_(emitter.code()),
        analysis_(analysis),
        plan_(plan),
        lanes_(plan.columns.tile.lanes),
        stages_(sum_stages(plan, analysis)) {
    for (size_t i = 0; i < plan.grid.size(); ++i) ranges_[plan.grid[i].axis] = ranges[i];
    for (size_t axis : plan.summed) summed_.add(axis);
  }

  void run() {
    // Axes of which a cell has one element are there for all that follows.
    std::vector<Emitter::Loop> single;
    for (const GridAxis& axis : plan_.grid)
      if (axis.block == 1) single.push_back({axis.axis, ranges_[axis.axis], {}});
    emitter_.over(single, [&] { block(); });
  }

 private:
  bool is_blocked(size_t axis) const { return plan_.grid_axis(axis).block > 1; }
  std::vector<size_t> blocked_axes(const ProductSide& side) const {
    return anneal::blocked_axes(plan_, side);
  }

  void block() {
    for (const StagedOperand& operand : plan_.staged) layouts_[operand.node] = layout_of(operand);
    if (plan_.through_memory) sums_.push_back(layouts_of_sums());
    const size_t deep = plan_.summed[0];
    NodeRef size = analysis_.size(deep);
    if (is_one_block(plan_, analysis_)) {
      ranges_[deep] = emitter_.whole(deep);
      sum_block(true);
    } else {
      while (static_cast<int64_t>(sums_.size()) <= stages_.after_first)
        sums_.push_back(layouts_of_sums());
      const ValueId end = emitter_.value(size, 0);
      sum_blocks(sums_.size() - 1, code_.index(0), end, analysis_.may_be_empty(deep));
    }
    if (plan_.through_memory) store_results();
  }

  // ---- stages of long sums

  // The steps of the deep axis in one round of a stage.
  int64_t steps_of(size_t stage) const {
    int64_t steps = plan_.depth;
    if (stage > 0) steps *= stages_.blocks_of_stage;
    for (size_t i = 1; i < stage; ++i) steps *= kLongestRun;
    return steps;
  }

  // Sums of a stage, over some of the deep axis.
  void sum_blocks(size_t stage, ValueId from, ValueId to, bool may_be_empty) {
    for_all_tiles([&] { start_sums(stage); });
    const int64_t steps = steps_of(stage);
    ValueId begin = code_.open_loop(from, to, code_.index(steps), may_be_empty);
    if (stage == 0) {
      const size_t deep = plan_.summed[0];
      ranges_[deep] = emitter_.block(deep, begin, steps, plan_.step.elements());
      sum_block(false);
    } else {
      sum_blocks(stage - 1, begin, code_.min(code_.add(begin, code_.index(steps)), to), false);
      for_all_tiles([&] { add_sums(stage - 1, stage); });
    }
    code_.close_loop({});
  }

  // ---- memory of the cell

  int64_t elements_of(size_t axis) const {
    if (axis == plan_.summed[0]) return plan_.depth;
    if (!summed_.contains(axis)) return plan_.grid_axis(axis).block;
    return static_value(analysis_.size(axis));
  }

  Emitter::Layout in_memory(const PackedLayout& packed, DType dtype) {
    Emitter::Layout layout;
    for (const PackedLayout::Dimension& each : packed.dimensions)
      layout.dimensions.push_back(
          {each.axis, kNoValue, each.stride, each.panel, each.panel_stride});
    layout.buffer = code_.add_local(dtype, packed.elements);
    return layout;
  }
  Emitter::Layout layout_of(const StagedOperand& operand) {
    return in_memory(packed_layout(plan_, operand, analysis_), operand.node->dtype);
  }

  using SumLayouts = std::unordered_map<NodeRef, Emitter::Layout>;
  SumLayouts layouts_of_sums() {
    SumLayouts layouts;
    for (NodeRef sum : plan_.sums)
      layouts[sum] = in_memory(layout_of_sum(plan_, sum, analysis_), sum->dtype);
    return layouts;
  }

  // The layout with the beginnings of the current blocks.
  Emitter::Layout placed(Emitter::Layout layout) {
    for (Emitter::Layout::Dimension& dimension : layout.dimensions)
      dimension.begin =
          ranges_.contains(dimension.axis) ? ranges_[dimension.axis].begin : code_.index(0);
    return layout;
  }

  // ---- loops

  Emitter::Range range_of(size_t axis) {
    return ranges_.contains(axis) ? ranges_[axis] : emitter_.whole(axis);
  }

  // Several axes as one, which is counted along the last of them; the others stay where they begin.
  void add_flat_loops(std::vector<Emitter::Loop>& loops, std::span<const size_t> axes, Tile tile,
                      Emitter::Tail tail) {
    if (axes.empty()) return;
    if (axes.size() == 1) return loops.push_back({axes[0], range_of(axes[0]), tile, tail});
    const Emitter::Range outer = range_of(axes[0]);
    int64_t inside = 1;
    for (size_t axis : axes.subspan(1)) inside *= static_value(analysis_.size(axis));
    for (size_t axis : axes.first(axes.size() - 1)) {
      ValueId begin = range_of(axis).begin;
      loops.push_back({axis, {begin, begin, 1, 1, false}, {}});
    }
    const ValueId each = code_.index(inside);
    ValueId steps = code_.mul(code_.sub(outer.end, outer.begin), each);
    const int64_t extent = outer.extent < 0 ? -1 : outer.extent * inside;
    Emitter::Range range{code_.index(0), steps, extent, outer.multiple * inside,
                         outer.may_be_empty};
    range.longest = outer.longest > INT64_MAX / inside ? INT64_MAX : outer.longest * inside;
    loops.push_back({axes.back(), range, tile, tail});
  }

  // The tiles of the block: columns, then rows, the order in which packed operands stay near.
  void for_all_tiles(const std::function<void()>& body) {
    std::vector<Emitter::Loop> loops;
    AxisSet sides;
    for (const ProductSide* side : {&plan_.rows, &plan_.columns})
      for (size_t axis : side->axes) sides.add(axis);
    for (const GridAxis& axis : plan_.grid)
      if (axis.block > 1 && !sides.contains(axis.axis))
        loops.push_back({axis.axis, ranges_[axis.axis], {}});
    add_flat_loops(loops, blocked_axes(plan_.columns), plan_.columns.tile, Emitter::Tail::Smaller);
    add_flat_loops(loops, blocked_axes(plan_.rows), plan_.rows.tile, Emitter::Tail::Masked);
    emitter_.over(loops, body);
  }

  // ---- packing

  // A few vectors, as many as so many elements need.
  Tile vectors_of(int64_t elements) const {
    return {lanes_,
            static_cast<int>(std::clamp<int64_t>(round_up(elements, lanes_) / lanes_, 1, 4))};
  }

  void pack(const StagedOperand& operand) {
    const Emitter::Layout place = placed(layouts_[operand.node]);
    const ProductSide& side = operand.of_rows ? plan_.rows : plan_.columns;
    const std::vector<size_t> axes = blocked_axes(side);
    auto tile_of = [&](size_t axis) -> Tile {
      if (axis == operand.turned) return {1, lanes_};  // a block is transposed on the way
      if (axis != operand.inner) return {};
      // A transpose is long by itself, and shuffles take the compiler long.
      if (operand.turned < analysis_.axis_count()) return {lanes_, 1};
      // In the register tiles of the product, each of which is a micro-panel; or a few vectors.
      if (axes.size() == 1 && axis == axes[0] && !operand.of_rows) return side.tile;
      return vectors_of(analysis_.expected_size(axis));
    };
    std::span<const size_t> together;  // run as one
    if (operand.together > 1) together = std::span(axes).last(operand.together);
    std::vector<Emitter::Loop> loops;
    auto add = [&](size_t axis) { loops.push_back({axis, range_of(axis), tile_of(axis)}); };
    if (operand.flat > 0) {
      const std::span<const size_t> summed(plan_.summed);
      for (size_t axis : axes) add(axis);
      for (size_t axis : summed.first(summed.size() - operand.flat)) add(axis);
      const Tile tile = operand.of_rows ? Tile{lanes_, 2} : Tile{1, lanes_};
      add_flat_loops(loops, summed.last(operand.flat), tile, Emitter::Tail::Smaller);
    } else if (summed_.contains(operand.inner)) {
      for (size_t axis : axes) add(axis);
      for (size_t axis : plan_.summed)
        if (axis != operand.inner) add(axis);
      add(operand.inner);
    } else {
      // Vectors at the end of a row write beyond it, and the next row writes over that: rows of one
      // step of the sum follow each other.
      for (size_t i = 1; i <= plan_.summed.size(); ++i) {
        const size_t axis = plan_.summed[i % plan_.summed.size()];
        if (axis != operand.turned) add(axis);
      }
      const size_t apart = axes.size() - together.size();
      for (size_t axis : std::span(axes).first(apart)) add(axis);
      int64_t elements = 1;
      for (size_t axis : together) elements *= elements_of(axis);
      add_flat_loops(loops, together, vectors_of(elements), Emitter::Tail::Smaller);
      if (operand.turned < analysis_.axis_count()) add(operand.turned);
    }
    AxisSet all;
    for (const Emitter::Loop& loop : loops) all.add(loop.axis);
    std::optional<Emitter::RunAsOne> as_one;
    if (!together.empty())
      as_one.emplace(emitter_, together.first(together.size() - 1), together.back());
    const int64_t ahead = steps_ahead(operand);
    emitter_.over(loops, [&] {
      for (Coordinate at : emitter_.coordinates(all)) {
        emitter_.store_staged(emitter_.value(operand.node, at), place, at);
        if (ahead != 0) emitter_.fetch(operand.node, at, ahead);
      }
    });
  }

  // Rows of a block lie on pages of their own, where the processor does not see them coming: how
  // far from what is packed lies what will be soon.
  int64_t steps_ahead(const StagedOperand& operand) {
    NodeRef load = operand.node;
    if (load->op != Op::Load || !is_always(load->source(2)) || plan_.summed.size() != 1) return 0;
    // Lanes are neighbours: what is transposed on the way has a place for each.
    const bool in_lanes = operand.inner == plan_.columns.axes.back() &&
                          stride_of(analysis_, load, operand.inner) == Stride::Unit;
    if (!in_lanes) return 0;
    NodeRef elements = load->source(0)->dim(0);
    const AxisForm& form = analysis_.form(load->source(1));
    const auto bytes = static_cast<int64_t>(byte_size(load->dtype));
    const bool far =
        is_static(elements) && static_value(elements) * bytes > emitter_.plan().far_bytes;
    if (!far || form.overflow || !is_constant(form.slope(plan_.summed[0]))) return 0;
    return form.slope(plan_.summed[0]).constant * kStepsAhead;
  }

  // ---- sums

  std::vector<Emitter::Accumulator> accumulators() {
    AxisSet sides;
    for (const ProductSide* side : {&plan_.rows, &plan_.columns})
      for (size_t axis : side->axes) sides.add(axis);
    std::vector<Emitter::Accumulator> result;
    for (NodeRef sum : plan_.sums)
      for (Coordinate at : emitter_.coordinates(sides)) result.push_back({sum, at});
    return result;
  }

  ValueId load_sum(size_t stage, const Emitter::Accumulator& sum) {
    return emitter_.load_staged(placed(sums_[stage][sum.reduction]), sum.at);
  }
  void store_sum(size_t stage, const Emitter::Accumulator& sum, ValueId value) {
    emitter_.store_staged(value, placed(sums_[stage][sum.reduction]), sum.at);
  }

  void start_sums(size_t stage) {
    for (const Emitter::Accumulator& each : accumulators())
      store_sum(stage, each,
                emitter_.or_empty(each.reduction, emitter_.start_value(each.reduction, lanes_)));
  }

  void add_sums(size_t from, size_t to) {
    for (const Emitter::Accumulator& each : accumulators()) {
      const ValueId added = load_sum(from, each);
      store_sum(to, each, emitter_.step(each.reduction, load_sum(to, each), added));
    }
  }

  void sum_block(bool all) {
    for (const StagedOperand& operand : plan_.staged) pack(operand);
    for (const StagedOperand& operand : plan_.staged)
      emitter_.stage(operand.node, placed(layouts_[operand.node]));
    for_all_tiles([&] { sum_tile(all); });
    for (const StagedOperand& operand : plan_.staged) emitter_.unstage(operand.node);
  }

  // Rows that are read as they lie begin on other pages in every tile, where the processor does not
  // see them coming.
  void fetch_next_rows() {
    if (plan_.rows.axes.size() != 1 || plan_.summed.size() != 1) return;
    const size_t rows = plan_.rows.axes[0], deep = plan_.summed[0];
    if (!is_blocked(rows)) return;
    const Emitter::Range range = range_of(deep);
    for (NodeRef load : topological_order(plan_.sums)) {
      if (load->op != Op::Load || layouts_.contains(load) || !is_always(load->source(2))) continue;
      const auto bytes = static_cast<int64_t>(byte_size(load->dtype));
      const int line = static_cast<int>(kCacheLine / bytes);
      NodeRef elements = load->source(0)->dim(0);
      const AxisForm& form = analysis_.form(load->source(1));
      const bool far =
          is_static(elements) && static_value(elements) * bytes > emitter_.plan().stream_bytes;
      if (!far || form.overflow || !(range.extent > 0 && range.extent % line == 0)) continue;
      const LinearForm across = form.slope(rows), along = form.slope(deep);
      if (!is_constant(across) || across.constant == 0 || !is_constant(along) ||
          along.constant != 1)
        continue;
      AxisSet copies;
      copies.add(rows);
      emitter_.over(deep, range, {1, line}, [&] {
        for (Coordinate at : emitter_.coordinates(copies))
          emitter_.fetch(load, at, across.constant * plan_.rows.tile.elements());
      });
    }
  }

  void sum_tile(bool all) {
    fetch_next_rows();
    const std::vector<Emitter::Accumulator> each = accumulators();
    Emitter::State state;
    for (const Emitter::Accumulator& one : each)
      state.push_back(all || stages_.begin_anew ? emitter_.start_value(one.reduction, lanes_)
                                                : load_sum(0, one));
    std::vector<Emitter::Loop> loops;
    if (plan_.flat_sums)
      add_flat_loops(loops, plan_.summed, plan_.step, Emitter::Tail::Smaller);
    else
      for (size_t axis : plan_.summed)
        loops.push_back({axis, range_of(axis), axis == plan_.summed.back() ? plan_.step : Tile()});
    Emitter::Sums sums{{}, plan_.step.elements(), kLongestRunOfProduct};
    for (const Emitter::Accumulator& one : each) sums.reductions.push_back(one.reduction);
    emitter_.sum_over(loops, sums, state, [&](Emitter::State& totals) {
      for (Coordinate step : emitter_.coordinates(summed_))
        for (size_t i = 0; i < each.size(); ++i)
          totals[i] = emitter_.advance(each[i], each[i].at | step, totals[i]);
    });
    for (size_t i = 0; i < each.size(); ++i) {
      if (!all && stages_.begin_anew)
        state[i] = emitter_.step(each[i].reduction, load_sum(0, each[i]), state[i]);
      if (plan_.through_memory)
        store_sum(0, each[i], state[i]);
      else
        emitter_.remember(each[i].reduction, each[i].at,
                          emitter_.or_empty(each[i].reduction, state[i]));
    }
    if (!plan_.through_memory) emitter_.stores(plan_.stores, {});
  }

  // ---- stores

  void store_results() {
    for (NodeRef sum : plan_.sums) emitter_.stage(sum, placed(sums_.back()[sum]));
    // Vectors run along what is contiguous in the result.
    size_t along = plan_.columns.axes.back();
    for (const GridAxis& axis : plan_.grid)
      if (axis.block > 1 && stride_of(analysis_, plan_.stores[0], axis.axis) == Stride::Unit)
        along = axis.axis;
    std::vector<size_t> last{along};
    for (const ProductSide* side : {&plan_.rows, &plan_.columns})
      if (plan_.flat_stores && !side->axes.empty() && side->axes.back() == along)
        last = blocked_axes(*side);
    std::vector<Emitter::Loop> loops;
    for (const GridAxis& axis : plan_.grid)
      if (axis.block > 1 && std::find(last.begin(), last.end(), axis.axis) == last.end())
        loops.push_back({axis.axis, ranges_[axis.axis], {}});
    add_flat_loops(loops, last, {lanes_, 1}, Emitter::Tail::Smaller);
    emitter_.over(loops, [&] { emitter_.stores(plan_.stores, {}); });
    for (NodeRef sum : plan_.sums) emitter_.unstage(sum);
  }

  Emitter& emitter_;
  CodeBuilder& code_;
  Analysis& analysis_;
  const ProductPlan& plan_;
  const int lanes_;
  AxisSet summed_;
  std::unordered_map<size_t, Emitter::Range> ranges_;
  std::unordered_map<NodeRef, Emitter::Layout> layouts_;
  std::vector<SumLayouts> sums_;  // where those of each stage lie
  const SumStages stages_;
};

}  // namespace

void emit_product(Emitter& emitter, Analysis& analysis, const ProductPlan& plan,
                  std::span<const Emitter::Range> ranges) {
  ProductEmitter(emitter, analysis, plan, ranges).run();
}

}  // namespace anneal
