// Turns scalars of a body into instructions. Each axis is bound to a piece of itself: a base, and a
// tile of lanes and copies from there on. A node that depends on an axis with lanes has lanes; one
// that depends on an axis with copies exists once for each copy; everything is made once. Vector
// code, unrolling and register tiles all come from what axes are bound to.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "kernel/analysis.h"
#include "kernel/code_builder.h"
#include "kernel/plan.h"

namespace anneal {

// Which copy of each unrolled axis: eight bits a slot.
using Coordinate = uint64_t;

class Emitter {
 public:
  Emitter(Analysis& analysis, Planner& planner, CodeBuilder& code);

  // A part of an axis: from begin below end, values of the code.
  struct Range {
    ValueId begin, end;
    int64_t extent;    // how many elements, or -1 where only the code knows
    int64_t multiple;  // the number of elements is a multiple of this
    bool may_be_empty;
  };
  Range whole(size_t axis);

  // Emits `body` for all tiles of the range: full ones in a loop, then what is left in smaller or
  // masked ones. Values of `state` are carried from each to the next; body replaces them.
  using State = std::vector<ValueId>;
  void over(size_t axis, const Range& range, Tile tile, State& state,
            const std::function<void(State&)>& body);

  // All elements of a store within what its axes are bound to.
  void store(NodeRef store, Coordinate at);
  // Stores over the axes of `loops`, which are bound here; of several, the values of each element
  // are all computed before any is stored.
  void stores(std::span<const NodeRef> stores, std::span<const AxisLoop> loops);

  ValueId value(NodeRef node, Coordinate at);

  // Memory for the tiles of a body, for as many rows as a cell works on at once.
  void place_tiles(Tile rows);
  // From here on the current loop serves these stores, and not those that come later.
  void serve(std::span<const NodeRef> stores);

  CodeBuilder& code() { return code_; }

 private:
  struct Binding {
    bool bound = false;
    ValueId base = kNoValue;
    Tile tile;
    ValueId remaining = kNoValue;  // elements from the base on, where the tile may hold more
    int slot = -1;                 // of the coordinate, where there are copies
    uint64_t stamp = 0;            // differs between any two bindings
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
  class Serving;
  void part(size_t axis, const Range& range, Tile tile, bool masked, State& state,
            const std::function<void(State&)>& body);

  MemoKey memo_key(NodeRef node, Coordinate at);
  ValueId remembered(NodeRef node, Coordinate at);
  void remember(NodeRef node, Coordinate at, ValueId value);
  // Every coordinate of the copies of these axes.
  std::vector<Coordinate> coordinates(const AxisSet& axes) const;
  int copy_of(const Binding& binding, Coordinate at) const;
  int lanes_of(const AxisSet& axes) const;

  ValueId make(NodeRef node, Coordinate at);  // its sources are remembered
  ValueId axis_value(size_t axis, Coordinate at);
  // Whether the elements of the tile exist; none: all do.
  ValueId mask(const AxisSet& axes, Coordinate at);
  ValueId load(NodeRef node, Coordinate at);
  struct Place {
    ValueId value;
    bool lanes;  // an index each, otherwise neighbours or a single one
  };
  Place place(NodeRef position, Coordinate at, int lanes, int64_t scale = 1);
  ValueId tile_place(NodeRef position, Coordinate at);
  ValueId form_value(const LinearForm& form, Coordinate at);

  void reduce(NodeRef node);
  std::vector<NodeRef> reductions_like(NodeRef node, CodeBuilder::Scope* scope);
  CodeBuilder::Scope* scope_of(const AxisSet& axes) const;

  Analysis& analysis_;
  Planner& planner_;
  CodeBuilder& code_;
  std::vector<Binding> bindings_;
  AxisSet bound_;
  uint64_t stamps_ = 0;
  unsigned used_slots_ = 0;
  std::unordered_map<MemoKey, ValueId, MemoHash> memo_;
  std::vector<NodeRef> serving_;
  NodeMap<uint64_t> tiles_;  // the local buffers
  int64_t tile_rows_ = 1;
  std::unordered_map<CodeBuilder::Scope*, std::vector<NodeRef>> served_by_;
};

}  // namespace anneal
