#include "kernel/product.h"

#include <algorithm>

#include "ir/index.h"

namespace anneal {
namespace {

int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

class ProductEmitter {
 public:
  ProductEmitter(Emitter& emitter, Analysis& analysis, const ProductPlan& plan,
                 std::span<const Emitter::Range> ranges)
      : emitter_(emitter), code_(emitter.code()), analysis_(analysis), plan_(plan) {
    for (size_t i = 0; i < plan.grid.size(); ++i) ranges_[plan.grid[i].axis] = ranges[i];
    own_ = analysis.listed_set(plan.sums[0]);
    own_order_.push_back(plan.blocked);
    for (size_t axis : own_.list())
      if (axis != plan.blocked) own_order_.push_back(axis);
    for (const GridAxis& axis : plan.grid)
      if (axis.tile.lanes > 1) lanes_ = axis.tile.lanes;
  }

  void run() {
    // Axes of which a cell has one element are there for all that follows.
    std::vector<Emitter::Loop> single;
    for (const GridAxis& axis : plan_.grid) {
      if (axis.block == 1)
        single.push_back({axis.axis, ranges_[axis.axis], {}});
      else
        blocked_.push_back(axis);
    }
    emitter_.over(single, [&] { block(); });
  }

 private:
  bool is_blocked(size_t axis) const {
    return std::any_of(blocked_.begin(), blocked_.end(),
                       [&](const GridAxis& each) { return each.axis == axis; });
  }
  const GridAxis& grid_axis(size_t axis) const {
    return *std::find_if(plan_.grid.begin(), plan_.grid.end(),
                         [&](const GridAxis& each) { return each.axis == axis; });
  }

  void block() {
    for (const StagedOperand& operand : plan_.staged) reserve(operand);
    if (plan_.through_memory) reserve_sums();
    const int64_t deep = plan_.depth;
    NodeRef size = analysis_.size(plan_.blocked);
    if (plan_.staged.empty() || (is_static(size) && static_value(size) <= deep)) {
      ranges_[plan_.blocked] = emitter_.whole(plan_.blocked);
      sum_block(true);
    } else {
      // The first block starts the sums, later ones go on with them.
      for_all_tiles([&] { start_sums(); });
      ValueId begin = code_.open_loop(code_.index(0), emitter_.value(size, 0), code_.index(deep),
                                      analysis_.may_be_empty(plan_.blocked));
      ranges_[plan_.blocked] = emitter_.block(plan_.blocked, begin, deep, 1);
      sum_block(false);
      code_.close_loop({});
    }
    if (plan_.through_memory) store_results();
  }

  // ---- memory of the cell

  int64_t elements_of(size_t axis) const {
    if (axis == plan_.blocked) return plan_.depth;
    if (is_blocked(axis)) return round_up(grid_axis(axis).block, grid_axis(axis).tile.elements());
    return static_value(analysis_.size(axis));
  }

  // Neighbours along `inner`, then the axes in order, the last one in the shortest steps.
  Emitter::Layout layout(DType dtype, std::span<const size_t> axes, size_t inner) {
    Emitter::Layout result;
    int64_t stride = 1;
    auto add = [&](size_t axis, int64_t elements) {
      result.dimensions.push_back({axis, kNoValue, stride});
      stride *= elements;
    };
    int64_t row = round_up(elements_of(inner), lanes_);
    // Rows whose distance is a power of two would meet in the same places of a cache.
    constexpr int64_t kConflict = 1024;
    const auto bytes = static_cast<int64_t>(byte_size(dtype));
    if (axes.size() > 1 && row * bytes % kConflict == 0) row += 64 / bytes;
    add(inner, row);
    for (size_t i = axes.size(); i-- > 0;)
      if (axes[i] != inner) add(axes[i], elements_of(axes[i]));
    result.buffer = code_.add_local(dtype, stride);
    return result;
  }

  // Where an axis begins in what is kept of it.
  Emitter::Layout placed(Emitter::Layout layout) {
    for (Emitter::Layout::Dimension& dimension : layout.dimensions)
      dimension.begin =
          ranges_.contains(dimension.axis) ? ranges_[dimension.axis].begin : code_.index(0);
    return layout;
  }

  // The axes a staged operand is kept for: those of blocks outside, reduced ones inside.
  std::vector<size_t> staged_axes(NodeRef node) {
    std::vector<size_t> axes;
    const AxisSet& free = analysis_.free(node);
    for (const GridAxis& axis : blocked_)
      if (free.contains(axis.axis)) axes.push_back(axis.axis);
    axes.insert(axes.end(), own_order_.begin(), own_order_.end());
    return axes;
  }

  void reserve(const StagedOperand& operand) {
    const std::vector<size_t> axes = staged_axes(operand.node);
    // Reduced axes are neighbours of each other, so that they can run as one.
    layouts_[operand.node] = layout_of(operand, axes);
  }

  Emitter::Layout layout_of(const StagedOperand& operand, std::span<const size_t> axes) {
    if (!own_.contains(operand.inner)) return layout(operand.node->dtype, axes, operand.inner);
    // The reduced axes together are what is contiguous.
    Emitter::Layout result;
    int64_t stride = 1;
    auto add = [&](size_t axis, int64_t elements) {
      result.dimensions.push_back({axis, kNoValue, stride});
      stride *= elements;
    };
    for (size_t i = axes.size(); i-- > 0;)
      if (own_.contains(axes[i])) add(axes[i], elements_of(axes[i]));
    const auto bytes = static_cast<int64_t>(byte_size(operand.node->dtype));
    stride = round_up(stride + lanes_, lanes_);  // the last vector may go beyond
    if (stride * bytes % 1024 == 0) stride += 64 / bytes;
    for (size_t i = axes.size(); i-- > 0;)
      if (!own_.contains(axes[i])) add(axes[i], elements_of(axes[i]));
    result.buffer = code_.add_local(operand.node->dtype, stride);
    return result;
  }

  void reserve_sums() {
    std::vector<size_t> axes;
    for (const GridAxis& axis : blocked_) axes.push_back(axis.axis);
    for (NodeRef sum : plan_.sums)
      sums_[sum] = layout(sum->dtype, axes, is_blocked(plan_.columns) ? plan_.columns : axes[0]);
  }

  // ---- packing

  void pack(const StagedOperand& operand) {
    const Emitter::Layout place = placed(layouts_[operand.node]);
    const AxisSet& free = analysis_.free(operand.node);
    std::vector<Emitter::Loop> loops;
    std::vector<size_t> axes = staged_axes(operand.node);
    std::stable_partition(axes.begin(), axes.end(),
                          [&](size_t axis) { return axis != operand.inner; });
    for (size_t axis : axes) {
      if (!free.contains(axis)) continue;
      Emitter::Range range = ranges_.contains(axis) ? ranges_[axis] : emitter_.whole(axis);
      Tile tile;
      if (axis == operand.inner) {
        // In the tiles of the product, so that what is read of it was written.
        tile.lanes = lanes_;
        if (is_blocked(axis))
          tile = {lanes_, std::max(1, grid_axis(axis).tile.elements() / lanes_)};
      }
      loops.push_back({axis, range, tile});
    }
    emitter_.over(loops, [&] {
      for (Coordinate at : emitter_.coordinates(free))
        emitter_.store_staged(emitter_.value(operand.node, at), place, at);
    });
  }

  // ---- sums

  // The tiles of the block: columns, then rows, in the order in which packed operands stay near.
  void for_all_tiles(const std::function<void()>& body) {
    std::vector<Emitter::Loop> loops;
    for (const GridAxis& axis : blocked_)
      if (axis.axis != plan_.rows && axis.axis != plan_.columns)
        loops.push_back({axis.axis, ranges_[axis.axis], {}});
    for (size_t axis : {plan_.columns, plan_.rows})
      if (is_blocked(axis))
        loops.push_back({axis, ranges_[axis], grid_axis(axis).tile,
                         axis == plan_.rows ? Emitter::Tail::Masked : Emitter::Tail::Smaller});
    emitter_.over(loops, body);
  }

  std::vector<Emitter::Accumulator> accumulators() {
    std::vector<Emitter::Accumulator> result;
    for (NodeRef sum : plan_.sums)
      for (Coordinate at : emitter_.coordinates(analysis_.free(sum))) result.push_back({sum, at});
    return result;
  }

  void start_sums() {
    for (const Emitter::Accumulator& each : accumulators()) {
      const int lanes = emitter_.lanes_of(analysis_.free(each.reduction));
      emitter_.store_staged(emitter_.start_value(each.reduction, lanes),
                            placed(sums_[each.reduction]), each.at);
    }
  }

  void sum_block(bool all) {
    for (const StagedOperand& operand : plan_.staged) pack(operand);
    for (const StagedOperand& operand : plan_.staged)
      emitter_.stage(operand.node, placed(layouts_[operand.node]));
    for_all_tiles([&] { sum_tile(all); });
    for (const StagedOperand& operand : plan_.staged) emitter_.unstage(operand.node);
  }

  void sum_tile(bool all) {
    const std::vector<Emitter::Accumulator> each = accumulators();
    Emitter::State state;
    for (const Emitter::Accumulator& one : each) {
      const int lanes = emitter_.lanes_of(analysis_.free(one.reduction));
      state.push_back(all ? emitter_.start_value(one.reduction, lanes)
                          : emitter_.load_staged(placed(sums_[one.reduction]), one.at));
    }
    emitter_.over(summed_loops(), state, [&](Emitter::State& totals) {
      for (size_t i = 0; i < each.size(); ++i)
        totals[i] = emitter_.advance(each[i], each[i].at, totals[i]);
    });
    for (size_t i = 0; i < each.size(); ++i) {
      if (plan_.through_memory)
        emitter_.store_staged(state[i], placed(sums_[each[i].reduction]), each[i].at);
      else
        emitter_.remember(each[i].reduction, each[i].at, state[i]);
    }
    if (!plan_.through_memory) emitter_.stores(plan_.stores, {});
  }

  std::vector<Emitter::Loop> summed_loops() {
    std::vector<Emitter::Loop> loops;
    const std::vector<size_t> inner(own_order_.begin() + 1, own_order_.end());
    int64_t rest = 1;
    for (size_t axis : inner)
      if (is_static(analysis_.size(axis))) rest *= static_value(analysis_.size(axis));
    const Emitter::Range& range = ranges_[plan_.blocked];
    if (!plan_.flat || inner.empty()) {
      loops.push_back({plan_.blocked, range, {}});
      for (size_t axis : inner) loops.push_back({axis, emitter_.whole(axis), {}});
      return loops;
    }
    // All steps of the reduced axes together, counted along the innermost: operands are staged, and
    // lie so that this is the same element.
    auto once = [&](ValueId at) { return Emitter::Range{at, at, 1, 1, false}; };
    loops.push_back({plan_.blocked, once(range.begin), {}});
    for (size_t i = 0; i + 1 < inner.size(); ++i)
      loops.push_back({inner[i], once(code_.index(0)), {}});
    ValueId steps = code_.mul(code_.sub(range.end, range.begin), code_.index(rest));
    loops.push_back({inner.back(),
                     {code_.index(0), steps, range.extent < 0 ? -1 : range.extent * rest, rest,
                      range.may_be_empty},
                     {}});
    return loops;
  }

  // ---- stores

  void store_results() {
    for (NodeRef sum : plan_.sums) emitter_.stage(sum, placed(sums_[sum]));
    std::vector<Emitter::Loop> loops;
    // Vectors run along what is contiguous in the result.
    size_t along = plan_.columns;
    for (const GridAxis& axis : blocked_)
      if (stride_of(analysis_, plan_.stores[0], axis.axis) == Stride::Unit) along = axis.axis;
    for (const GridAxis& axis : blocked_)
      if (axis.axis != along) loops.push_back({axis.axis, ranges_[axis.axis], {}});
    loops.push_back({along, ranges_[along], {lanes_, 1}});
    emitter_.over(loops, [&] { emitter_.stores(plan_.stores, {}); });
    for (NodeRef sum : plan_.sums) emitter_.unstage(sum);
  }

  Emitter& emitter_;
  CodeBuilder& code_;
  Analysis& analysis_;
  const ProductPlan& plan_;
  std::unordered_map<size_t, Emitter::Range> ranges_;
  std::vector<GridAxis> blocked_;  // axes of which a cell has more than one element
  AxisSet own_;                    // the reduced ones
  std::vector<size_t> own_order_;  // the one in blocks first
  int lanes_ = 1;
  std::unordered_map<NodeRef, Emitter::Layout> layouts_, sums_;
};

}  // namespace

void emit_product(Emitter& emitter, Analysis& analysis, const ProductPlan& plan,
                  std::span<const Emitter::Range> ranges) {
  ProductEmitter(emitter, analysis, plan, ranges).run();
}

}  // namespace anneal
