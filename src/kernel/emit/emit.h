// Turns scalars of a body into instructions. Each axis is bound to a piece of itself: a base, and a
// tile of lanes and copies from there on. A node that depends on an axis with lanes has lanes; one
// that depends on an axis with copies exists once for each copy; everything is made once. Vector
// code, unrolling and register tiles all come from what axes are bound to.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kernel/emit/code_builder.h"
#include "kernel/plan/analysis.h"
#include "kernel/plan/kernel_plan.h"
#include "kernel/plan/regions.h"

namespace anneal {

// Which copy of each unrolled axis: eight bits a slot.
using Coordinate = uint64_t;
inline constexpr int kSlotBits = 8, kSlots = 8;
inline Coordinate slot_mask(int slot) { return Coordinate{0xFF} << slot * kSlotBits; }

class Emitter {
 public:
  Emitter(Analysis& analysis, const KernelPlan& plan, CodeBuilder& code);

  // A part of an axis: from begin below end, values of the code.
  struct Range {
    ValueId begin, end;
    int64_t extent = -1;  // how many elements, or -1 where only the code knows
    int64_t multiple;     // the number of elements is a multiple of this
    bool may_be_empty;
    // Of a known axis in blocks: its last block has this much beyond full tiles of so many
    // elements.
    int64_t rest = -1, rest_of = 0;
    int64_t longest = extent >= 0 ? extent : INT64_MAX;  // there are no more elements than this
  };
  Range whole(size_t axis);  // of a row, what its tile reaches
  // A block of an axis that begins at `begin`. `tile_elements` is the tile it will be run in.
  Range block(size_t axis, ValueId begin, int64_t elements, int64_t tile_elements);

  // While it lives, axes that are whole run as one with `last`, the innermost of them, which counts
  // their elements; they themselves are bound to where they begin. What is loaded must lie as if
  // they were one; what else is made of their values, as conditions are, sees the true ones.
  class RunAsOne {
   public:
    RunAsOne(Emitter& emitter, std::span<const size_t> outer, size_t last) : emitter_(emitter) {
      emitter.leading_ = {outer.begin(), outer.end()};
      emitter.last_ = last;
    }
    ~RunAsOne() { emitter_.leading_.clear(); }
    RunAsOne(const RunAsOne&) = delete;
    RunAsOne& operator=(const RunAsOne&) = delete;

   private:
    Emitter& emitter_;
  };

  // Axes bound value by value, where lanes are threads that have an element each. All of them have
  // the same copies, which go together. `exists`: whether the element of a copy does; none: it
  // does.
  struct Assigned {
    size_t axis;
    std::vector<ValueId> values;  // by copy
    // The same as sums with constants, by which places of copies then differ.
    std::vector<ValueId> bases;
    std::vector<int64_t> offsets;
  };
  class Assignment {
   public:
    Assignment(Emitter& emitter, std::span<const Assigned> axes,
               const std::vector<ValueId>& exists = {});
    ~Assignment();
    Assignment(const Assignment&) = delete;
    Assignment& operator=(const Assignment&) = delete;

   private:
    Emitter& emitter_;
    std::vector<size_t> axes_;
    int slot_ = -1;
  };

  // What follows the full tiles where it is not known how much is left: smaller tiles, masked if
  // they have lanes, or one full tile with a mask.
  enum class Tail : uint8_t { Smaller, Masked };

  // Emits `body` for all tiles of the range: full ones in a loop, then what is left in smaller or
  // masked ones. Values of `state` are carried from each to the next; body replaces them.
  using State = std::vector<ValueId>;
  using StatefulBody = std::function<void(State&)>;
  void over(size_t axis, const Range& range, Tile tile, State& state, const StatefulBody& body,
            Tail tail = Tail::Smaller);
  void over(size_t axis, const Range& range, Tile tile, const std::function<void()>& body,
            Tail tail = Tail::Smaller);
  // Nested loops, the outermost first.
  struct Loop {
    size_t axis;
    Range range;
    Tile tile;
    Tail tail = Tail::Smaller;
  };
  void over(std::span<const Loop> loops, State& state, const StatefulBody& body);
  void over(std::span<const Loop> loops, const std::function<void()>& body);

  // ---- values that were computed before, and lie in memory of the cell

  // Element (i, j, ..) lies at (i - begin of its axis) * stride + ..
  struct Layout {
    struct Dimension {
      size_t axis;
      ValueId begin;
      int64_t stride;
      // Of a packed operand: the axis is cut into micro-panels of so many elements, this far apart.
      // No tile reaches from one into the next. 0: it is not.
      int64_t panel = 0, panel_stride = 0;
    };
    uint64_t buffer = 0;
    std::vector<Dimension> dimensions;
    // Of threads: where the element of a copy lies, instead of the dimensions.
    std::function<ValueId(Coordinate)> place = nullptr;
    int lanes = 1;
  };
  // From here on the node is not computed but loaded, until it is said otherwise.
  void stage(NodeRef node, Layout layout) { staged_[node] = std::move(layout); }
  void unstage(NodeRef node) { staged_.erase(node); }
  // Stores a value where it will be loaded from: all copies of the axes that are bound.
  void store_staged(ValueId value, const Layout& layout, Coordinate at);
  ValueId load_staged(const Layout& layout, Coordinate at);

  // ---- parts of reductions

  struct Accumulator {
    NodeRef reduction;
    Coordinate at;
  };
  ValueId start_value(NodeRef reduction, int lanes);
  // The total after one more term, or another total.
  ValueId step(NodeRef reduction, ValueId total, ValueId term);
  // What a state holds: each of its values is of one of these, in turns.
  struct Sums {
    std::vector<NodeRef> reductions;
    int64_t additions = 1;  // of one tile to the same value, one after the other
    int64_t longest_run = kLongestRun;
    NodeRef of(size_t value) const { return reductions[value % reductions.size()]; }
  };
  // As over(), but where more terms than that would follow each other, the state begins anew for
  // every so many of them and is added to what they have come to so far; and so on, stage by stage.
  // A value then takes part in at most longest_run + kLongestRun * log(terms) roundings, the
  // logarithm to the base kLongestRun.
  void sum_over(std::span<const Loop> loops, const Sums& sums, State& state,
                const StatefulBody& body);
  // The total, or 0 where it is a sum of nothing.
  ValueId or_empty(NodeRef reduction, ValueId total);
  // The total after one more term of each accumulator, within what the axes are bound to.
  ValueId advance(const Accumulator& accumulator, Coordinate at, ValueId total);
  void remember(NodeRef node, Coordinate at, ValueId value);
  // Every coordinate of the copies of these axes.
  std::vector<Coordinate> coordinates(const AxisSet& axes) const;
  int lanes_of(const AxisSet& axes) const;

  // All elements of a store within what its axes are bound to.
  void store(NodeRef store, Coordinate at);
  // Stores over the axes of `loops`, which are bound here; of several, the values of each element
  // are all computed before any is stored.
  void stores(std::span<const NodeRef> stores, std::span<const AxisLoop> loops);
  // The same within what is bound; so many values are loaded before what is made of the first is
  // stored. A compiler may not do that itself: memory that is written could be the same.
  void stores_with_prefetched_operands(std::span<const NodeRef> stores, int ahead);

  ValueId value(NodeRef node, Coordinate at);
  // Has memory bring what a load would find so many elements further on.
  void fetch(NodeRef load, Coordinate at, int64_t further);
  // Which copy of what an axis is bound to.
  int copy_of(size_t axis, Coordinate at) const { return copy_of(bindings_[axis], at); }

  // Memory for the tiles of a body, for the rows that are lanes; of none, rows come one by one.
  void place_tiles(Tile rows);
  // From here on the current loop serves these stores, and not those that come later.
  void serve(std::span<const NodeRef> stores);

  CodeBuilder& code() { return code_; }
  const KernelPlan& plan() const { return plan_; }

 private:
  void limit(Range& range, const KernelBody::MaskedRange& reach);

  struct Binding {
    bool bound = false;
    ValueId base = kNoValue;
    Tile tile;
    ValueId remaining = kNoValue;  // elements from the base on, where the tile may hold more
    int slot = -1;                 // of the coordinate, where there are copies
    std::vector<ValueId> values = {}, bases = {}, exists = {};  // of an Assignment
    std::vector<int64_t> offsets = {};
    uint64_t stamp = 0;  // differs between any two bindings
    CodeBuilder::Scope* scope = nullptr;
  };
  struct MemoKey {
    NodeRef node;
    Coordinate at;
    uint64_t stamp;
    friend bool operator==(const MemoKey&, const MemoKey&) = default;
  };
  struct MemoHash {
    size_t operator()(const MemoKey& key) const;
  };

  // Binds an axis while it lives.
  class Bound;
  // While it lives, what is emitted serves these nodes: only they say which reductions are needed.
  class Serving {
   public:
    Serving(Emitter& emitter, std::vector<NodeRef> nodes)
        : emitter_(emitter), before_(std::exchange(emitter.serving_, std::move(nodes))) {}
    ~Serving() { emitter_.serving_ = std::move(before_); }
    Serving(const Serving&) = delete;
    Serving& operator=(const Serving&) = delete;

   private:
    Emitter& emitter_;
    std::vector<NodeRef> before_;
  };
  // `remaining`: how many elements of the one tile exist, where that is known.
  static constexpr int64_t kAll = -1, kUnknown = -2;
  void part(size_t axis, const Range& range, Tile tile, int64_t remaining, State& state,
            const StatefulBody& body);

  MemoKey memo_key(NodeRef node, Coordinate at);
  ValueId remembered(NodeRef node, Coordinate at);
  int copy_of(const Binding& binding, Coordinate at) const;

  ValueId make(NodeRef node, Coordinate at);  // its sources are remembered
  ValueId axis_value(size_t axis, Coordinate at);
  ValueId count_of(size_t axis, Coordinate at);
  // With the axis that counts for some of them, where they run as one.
  AxisSet with_last(AxisSet axes) const;
  // Whether the elements of the tile exist; none: all do.
  ValueId mask(const AxisSet& axes, Coordinate at);
  ValueId load(NodeRef node, Coordinate at);
  struct Place {
    ValueId value;
    bool lanes;  // an index each, otherwise neighbours or a single one
  };
  Place place(NodeRef position, Coordinate at, int lanes, int64_t scale = 1);
  ValueId tile_place(NodeRef position, Coordinate at);
  // Whether a store fills whole lines of memory too large for any cache.
  bool is_streaming(NodeRef store, int lanes);
  CodeBuilder::Access access_to(const Layout& layout, Coordinate at);
  ValueId place_in(const Layout& layout, Coordinate at, int lanes);
  // The sum, made from the outside in.
  ValueId sum_of(std::vector<ValueId> terms, int64_t offset);
  // A load whose lanes are apart while its copies are neighbours: loads of neighbours, transposed.
  bool load_turned(NodeRef node, Coordinate at);
  bool store_zipped(NodeRef store, Coordinate at);

  void reduce(NodeRef node);
  Range piece(const Range& range, ValueId begin, int64_t elements, int64_t step);
  static constexpr int64_t kUnlimitedRun = INT64_MAX;
  static int64_t run_of(std::span<const Loop> loops, int64_t each);
  void in_stages(const Loop& loop, int64_t stage, int64_t first_stage, const Sums& sums,
                 State& state, const StatefulBody& body);
  // What several accumulators come to, and their lanes where these are the reduction's own: a
  // fixed tree.
  ValueId total_of(NodeRef reduction, State parts, bool own_lanes);
  std::vector<NodeRef> reductions_like(NodeRef node, CodeBuilder::Scope* scope);
  CodeBuilder::Scope* scope_of(const AxisSet& axes) const;

  // Stores a row in fast memory, and makes the reductions that read just that on the way.
  void keep_row(NodeRef store, const AxisLoop& loop);
  std::vector<NodeRef> reductions_of_row(NodeRef store);
  // Loads of rows that a reduction has read before, and how far away the next row lies.
  struct NextRow {
    NodeRef load;
    int64_t step;
  };
  std::vector<NextRow> next_rows(std::span<const NodeRef> stores);
  std::optional<int64_t> next_row(NodeRef load);
  void fetch(std::span<const NextRow> rows, Coordinate at);

  Analysis& analysis_;
  const KernelPlan& plan_;
  CodeBuilder& code_;
  std::vector<Binding> bindings_;
  std::vector<size_t> leading_;  // axes that run as one with last_, the outermost first
  size_t last_ = 0;
  AxisSet bound_;
  uint64_t stamps_ = 0;
  unsigned used_slots_ = 0;
  std::unordered_map<MemoKey, ValueId, MemoHash> memo_;
  std::vector<NodeRef> serving_;
  std::unordered_map<NodeRef, Layout> staged_;
  NodeMap<uint64_t> tiles_;  // the local buffers
  int64_t tile_rows_ = 1;
  std::unordered_map<CodeBuilder::Scope*, std::vector<NodeRef>> served_by_;
};

}  // namespace anneal
