// What the walk from the results to the inputs finds out about every value: who wants it, at which
// coordinates, and the memory of those that have some.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/node_map.h"
#include "schedule/fuse/rangeify.h"
#include "symbolic/limits.h"

namespace anneal {

// A use of a value: where, under which condition, and for which kernel.
struct ValueUse {
  int root;
  const Shape* coordinates;
  NodeRef valid;
  std::vector<int> from = {};      // the uses it makes of the node's sources
  std::vector<NodeRef> axes = {};  // a reduction's own
  NodeRef valid_inside = nullptr;  // a pad's or gather's: where there is a source element
  NodeRef place = nullptr;         // a scatter's: where along its axis a value goes
  NodeRef scalar = nullptr;
};

// A value that gets memory, and so a kernel.
struct KernelRoot {
  NodeRef node;
  int buffer;
  std::vector<Axis> space, all;
  std::vector<NodeRef> nodes = {};
  bool is_product = false, has_rows = false;
};

// The loop of an axis, which belongs to one root alone.
struct KernelLoop {
  NodeRef size = nullptr;
  int depth = 0;  // reductions around it whose elements it is made for
};

struct ValueUseKey {
  int root;
  const Shape* coordinates;
  NodeRef valid;
  friend bool operator==(const ValueUseKey&, const ValueUseKey&) = default;
};

struct ValueUseHash {
  size_t operator()(const ValueUseKey& key) const {
    const uint64_t mixed = key.coordinates->key.low ^ key.valid->key.low * 3;
    return (mixed ^ static_cast<uint64_t>(key.root)) * 0x9e3779b97f4a7c15u >> 16;
  }
};

struct ValueState {
  std::vector<ValueUse> uses = {};
  std::unordered_map<ValueUseKey, int, ValueUseHash> use_numbers =
      {};           // of them, where they are many
  int root = -1;    // where it is stored
  int buffer = -1;  // known before the root when it is asked for early
  bool forced = false;
  bool carries = false;  // holds a reduction of its own size that nothing else uses
  bool expands = false;  // made of a product much larger than its operands: see fuse_tiles.h
  std::vector<size_t> layout =
      {};  // its axes as they lie in memory, the outermost first; empty: in order
};

// The loop axes in an expression.
struct AxisVariables {
  std::vector<NodeRef> list;
  int places = 0;  // that are computed, as a gather's
  bool contains(NodeRef variable) const { return std::ranges::count(list, variable) > 0; }
};

class ValueUses {
 public:
  explicit ValueUses(std::span<const NodeRef> roots);
  ~ValueUses();
  ValueUses(const ValueUses&) = delete;
  ValueUses& operator=(const ValueUses&) = delete;

  const std::vector<NodeRef>& order() const { return order_; }  // sources before users
  ValueState& state(NodeRef node) { return states_[static_cast<size_t>(*index_.find(node))]; }
  int users(NodeRef node) { return users_[node]; }

  std::deque<KernelRoot>& roots() { return roots_; }
  KernelRoot& root(int number) { return roots_[static_cast<size_t>(number)]; }
  Rangified& result() { return result_; }
  ScheduleBuffer& buffer(int number) { return result_.buffers[static_cast<size_t>(number)]; }
  int buffer_of(NodeRef node);  // a new one at first
  void force(NodeRef node);     // it will be stored
  NodeRef load(NodeRef node, const Shape* coordinates, NodeRef valid);
  NodeRef position_of(NodeRef node, const Shape* coordinates);

  // `depth`: reductions around it whose elements it is made for.
  Axis new_axis(NodeRef size, int depth = 0);
  const KernelLoop* loop_of(NodeRef variable) { return loops_.find(variable); }  // null: no axis

  // The number of a use among those of the node, a known one where it is equal; -1 of an index.
  int add_use(NodeRef node, int root, const Shape* coordinates, NodeRef valid);
  double evaluations(const ValueUse& use);  // how often a use computes an element
  const AxisVariables& variables_of(NodeRef expression);
  bool depends(const Shape& coordinates, NodeRef variable);

 private:
  std::vector<NodeRef> order_;
  NodeMap<int> index_, users_;
  std::deque<ValueState> states_;
  std::deque<KernelRoot> roots_;
  NodeMap<AxisVariables> variables_;
  NodeMap<KernelLoop> loops_;  // by axis
  std::vector<std::unique_ptr<LimitScope>> limits_;
  int axes_ = 0;
  Rangified result_;
};

}  // namespace anneal
