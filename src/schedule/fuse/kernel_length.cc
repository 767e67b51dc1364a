#include "schedule/fuse/kernel_length.h"

#include <algorithm>

#include "ir/op.h"
#include "ir/post_order.h"
#include "schedule/cost.h"
#include "schedule/fuse/code_size.h"

namespace anneal {
namespace {

// A fragment as a sequence of its nodes in which operands come first, cut into pieces. What a piece
// makes and a later one needs is stored, so that no kernel reaches back beyond its piece.
class Sequence {
 public:
  explicit Sequence(const Fragment& fragment) {
    for (NodeRef node : fragment.nodes) weights_[node] += code_size(node);
    collect_operands(fragment.nodes);
    const std::vector<NodeRef> order =
        post_order(fragment.nodes, [&](NodeRef node, size_t i) -> NodeRef {
          const std::vector<NodeRef>& operands = *operands_.find(node);
          return i < operands.size() ? operands[i] : nullptr;
        });
    for (NodeRef node : order) add(node);
    for (size_t i = 0; i < steps_.size(); ++i)
      if (const size_t last = steps_[i].last_use; last > i) steps_[last].ends.push_back(i);
  }

  double total() const { return total_; }

  // Values to store so that no piece is longer than `most`, unless one node is.
  std::vector<NodeRef> cut(double most) const {
    std::vector<NodeRef> stored;
    for (size_t begin = 0; begin < steps_.size();) {
      const size_t end = end_of_piece(begin, most);
      for (size_t i = begin; i < end; ++i)
        if (steps_[i].last_use >= end && !is_stored(steps_[i].node))
          stored.push_back(value_of(steps_[i].node));
      begin = end;
    }
    return stored;
  }

 private:
  struct Step {
    NodeRef node;
    double weight, bytes;
    size_t last_use;                // the last step that needs it
    std::vector<size_t> ends = {};  // those whose last use this is
  };

  // What each node is made of inside of the fragment, movement being part of it where what it moves
  // is; what takes longest comes first, so that little waits for it meanwhile.
  void collect_operands(std::span<const NodeRef> nodes) {
    const std::vector<NodeRef> all = post_order(nodes, [&](NodeRef node, size_t i) -> NodeRef {
      const bool inside = weights_.contains(node) || is_movement(node->op);
      return inside && i < node->tensors().size() ? node->tensors()[i] : nullptr;
    });
    NodeMap<int> height(all.size());
    for (NodeRef node : all) {
      const bool moves = is_movement(node->op) && operands_.contains(node->source(0));
      if (!weights_.contains(node) && !moves) continue;
      std::vector<NodeRef> operands;
      int most = 0;
      for (NodeRef source : node->tensors()) {
        if (!operands_.contains(source) || std::ranges::count(operands, source) > 0) continue;
        operands.push_back(source);
        most = std::max(most, height[source]);
      }
      std::ranges::stable_sort(operands, std::greater(),
                               [&](NodeRef each) { return height[each]; });
      height[node] = most + 1;
      operands_[node] = std::move(operands);
    }
  }

  void add(NodeRef node) {
    const double* counted = weights_.find(node);
    const double weight = counted ? *counted : code_size(node);
    const double bytes = is_stored(node) ? 0
                                         : element_estimate(*node->shape) *
                                                   static_cast<double>(byte_size(node->dtype)) +
                                               kBytesOfValue;
    const size_t place = steps_.size();
    for (NodeRef operand : *operands_.find(node)) steps_[places_[operand]].last_use = place;
    places_[node] = place;
    steps_.push_back({node, weight, bytes, place});
    total_ += weight;
  }

  // An assignment is itself stored at the end of a program; what it assigns can be stored before.
  static NodeRef value_of(NodeRef node) { return node->op == Op::Assign ? node->source(1) : node; }

  // In any case: it goes across for nothing.
  static bool is_stored(NodeRef node) { return node->op == Op::Contiguous; }

  // Of the places in the second half of what a piece that begins there may be, the last of those
  // where the fewest bytes go across; all of the rest, if that is short enough.
  size_t end_of_piece(size_t begin, double most) const {
    double length = 0, across = 0, fewest = 0;
    size_t best = begin;
    for (size_t i = begin; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      length += step.weight;
      if (i > begin && length > most) return best > begin ? best : i;
      if (step.last_use > i) across += step.bytes;
      for (size_t ended : step.ends)
        if (ended >= begin) across -= steps_[ended].bytes;
      if (length * 2 >= most && (best == begin || across <= fewest)) {
        best = i + 1;
        fewest = across;
      }
    }
    return steps_.size();
  }

  NodeMap<double> weights_;  // of the nodes that are computed, as often as they are
  NodeMap<std::vector<NodeRef>> operands_;
  NodeMap<size_t> places_;
  std::vector<Step> steps_;
  double total_ = 0;
};

}  // namespace

std::vector<OverLimit> values_over_length(const Rangified& program,
                                          const Capabilities& capabilities, size_t least_nodes) {
  std::vector<OverLimit> values;
  NodeMap<char> chosen;
  for (const Fragment& fragment : program.fragments) {
    if (fragment.nodes.size() < least_nodes) continue;
    const double share = share_of_kernel(fragment, capabilities);
    if (share >= 1) continue;
    const Sequence sequence(fragment);
    for (NodeRef value : sequence.cut(sequence.total() * share * kPlannedLength))
      if (chosen.insert(value, 1).second) values.push_back({value, UnfusedReason::Length, {}});
  }
  return values;
}

}  // namespace anneal
