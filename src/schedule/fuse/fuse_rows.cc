#include "schedule/fuse/fuse_rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "body/match_axes.h"
#include "body/substitute.h"
#include "ir/build.h"
#include "ir/index.h"
#include "ir/node_map.h"
#include "schedule/cost.h"
#include "schedule/fuse/code_size.h"
#include "schedule/fuse/in_place.h"
#include "symbolic/polynomial.h"

namespace anneal {
namespace {

class Grouper {
 public:
  Grouper(Rangified& program, Dataflow& flow, std::span<const AssignedBuffer> in_place,
          const ScheduleOptions& options)
      : program_(program),
        flow_(flow),
        options_(options),
        replaced_(program.buffers.size(), -1),
        is_assigned_(program.buffers.size(), 0),
        stored_(program.buffers.size()) {
    for (const AssignedBuffer& assigned : in_place)
      replaced_[static_cast<size_t>(assigned.value)] = assigned.target;
    for (const AssignedBuffer& assigned : program.assigned)
      is_assigned_[static_cast<size_t>(assigned.value)] = 1;
    for (StoredValue& value : program.stored) stored_[static_cast<size_t>(value.buffer)] = &value;
  }

  void run() {
    // Consumers late in the order take their producers in, which took theirs in before.
    for (int consumer : flow_.order())
      for (bool again = true; again;) again = take_in_a_producer(consumer);
    join_siblings();
  }

 private:
  struct Refusal {
    UnfusedReason reason = UnfusedReason::Order;
    BufferLimit limit = {};
  };

  Fragment& fragment(int number) { return program_.fragments[static_cast<size_t>(number)]; }
  const ScheduleBuffer& buffer(int number) { return program_.buffers[static_cast<size_t>(number)]; }
  int level(int number) { return levels_[static_cast<size_t>(number)]; }
  NodeRef size_of(const Fragment& in, NodeRef variable) {
    return std::ranges::find(in.axes, variable, &Axis::variable)->size;
  }

  static bool is_simple(const Fragment& f) {
    if (f.phases.size() != 1 || !f.tiles.empty()) return false;
    return std::ranges::all_of(f.phases[0], [](NodeRef store) {
      return store->op == Op::Store &&
             store->arg.axis == static_cast<int64_t>(store_axes(store).size());
    });
  }

  static bool has_reductions(const Fragment& f) {
    for (NodeRef node : topological_order(f.phases[0]))
      if (is_reduce_over(node->op)) return true;
    return false;
  }

  // The axes that all stores of a fragment have, and whether they have no others.
  static std::vector<NodeRef> common_axes(const Fragment& f, bool* all_alike) {
    std::vector<NodeRef> common(store_axes(f.phases[0][0]).begin(),
                                store_axes(f.phases[0][0]).end());
    *all_alike = true;
    for (NodeRef store : f.phases[0]) {
      std::span<const NodeRef> axes = store_axes(store);
      const size_t before = common.size();
      std::erase_if(common, [&](NodeRef axis) { return std::ranges::count(axes, axis) == 0; });
      *all_alike = *all_alike && common.size() == before && axes.size() == before;
    }
    return common;
  }

  double rows(const Fragment& f, std::span<const NodeRef> axes) {
    double count = 1;
    for (NodeRef axis : axes) count *= size_estimate(size_of(f, axis));
    return count;
  }

  double work(const Fragment& f) {
    double elements = 0;
    for (NodeRef store : f.phases[0]) elements += rows(f, store_axes(store));
    return elements;
  }

  // ---- a producer into its consumer

  bool take_in_a_producer(int consumer) {
    if (!is_simple(fragment(consumer))) return false;
    const std::vector<int> producers = flow_.before(consumer);
    for (size_t i = producers.size(); i-- > 0;)
      if (try_merge(producers[i], consumer)) return true;
    return false;
  }

  // Which axis of the consumer each axis of the producer is, if the consumer loads exactly what the
  // producer stores for the same rows.
  std::optional<Renaming> matching(const Fragment& producer, const Fragment& consumer) {
    Renaming renaming;
    bool found = false;
    const std::vector<NodeRef> nodes = topological_order(consumer.phases[0]);
    for (NodeRef store : producer.phases[0]) {
      for (NodeRef node : nodes) {
        if (node->op != Op::Load || node->source(0) != store->source(0)) continue;
        if (!is_always(node->source(2))) return {};
        if (!found) {
          std::optional<Renaming> first =
              match_axes(producer.axes, store, consumer.axes, node->source(1));
          if (!first) return {};
          renaming = std::move(*first);
          found = true;
        }
        // Positions of no elements speak of no axes, so those are asked for by name.
        const bool known = std::ranges::all_of(store_axes(store), [&](NodeRef axis) {
          return std::ranges::count(renaming, axis, &Renaming::value_type::first) > 0;
        });
        if (!known || renamed(store->source(1), renaming) != node->source(1)) return {};
      }
    }
    if (!found) return {};
    return renaming;
  }

  bool try_merge(int from, int to) {
    Fragment &producer = fragment(from), &consumer = fragment(to);
    if (producer.phases.empty() || !is_simple(producer)) return false;
    if (consumer.is_product) return false;
    bool producer_alike = false, consumer_alike = false;
    common_axes(producer, &producer_alike);
    const std::vector<NodeRef> common = common_axes(consumer, &consumer_alike);
    if (!producer_alike && producer.is_product) return false;
    std::optional<Renaming> renaming = matching(producer, consumer);
    if (!renaming) return false;
    for (const auto& [axis, match] : *renaming)
      if (std::ranges::count(common, match) == 0) return false;  // an inner loop's
    const bool same_space = consumer_alike && producer_alike && renaming->size() == common.size();
    if (producer.is_product && (!same_space || has_reductions(consumer))) return false;
    if (flow_.has_detour(from, to)) return refuse(from, to, {UnfusedReason::Order});
    if (!has_reductions(producer) && holds_others_up(from, to))
      return refuse(from, to, {UnfusedReason::Order});
    merge(from, to, *renaming);
    return committed(from, to) || refuse(from, to, refusal_);
  }

  // A producer and its consumer fit and stay apart: that decides, and no cost.
  bool refuse(int producer, int consumer, const Refusal& refusal) {
    for (int number : fragment(producer).writes) {
      StoredValue* value = stored_[static_cast<size_t>(number)];
      if (!value || !std::ranges::binary_search(fragment(consumer).reads, number)) continue;
      value->reason = refusal.reason;
      value->cost = {};
      value->limit = refusal.limit;
    }
    return false;
  }

  // Whether others that need the producer would have to wait for something that only the consumer
  // needs.
  bool holds_others_up(int producer, int consumer) {
    std::vector<int> others = flow_.after(producer);
    std::erase(others, consumer);
    others = flow_.not_reached(consumer, std::move(others));
    return !others.empty() && std::ranges::any_of(flow_.before(consumer), [&](int awaited) {
      return awaited != producer && !flow_.not_reached(awaited, others).empty();
    });
  }

  // What the two would be together.
  void merge(int from, int to, const Renaming& renaming) {
    const Fragment &producer = fragment(from), &consumer = fragment(to);
    NodeMap<NodeRef> axes;
    for (const auto& [axis, match] : renaming) axes[axis] = match;
    std::vector<NodeRef> stores = substitute(producer.phases[0], axes);
    NodeMap<NodeRef> values;
    for (NodeRef node : topological_order(consumer.phases[0]))
      if (node->op == Op::Load)
        for (NodeRef store : stores)
          if (node->source(0) == store->source(0)) values[node] = store->source(3);
    candidate_ = Fragment{};
    candidate_.phases = {{}};
    for (NodeRef store : stores) candidate_.phases[0].push_back(store);
    for (NodeRef store : substitute(consumer.phases[0], values))
      candidate_.phases[0].push_back(store);
    candidate_.axes = consumer.axes;
    for (const Axis& axis : producer.axes)
      if (std::ranges::count(renaming, axis.variable, &Renaming::value_type::first) == 0)
        candidate_.axes.push_back(axis);
    candidate_.nodes = producer.nodes;
    candidate_.nodes.insert(candidate_.nodes.end(), consumer.nodes.begin(), consumer.nodes.end());
    candidate_.is_product = producer.is_product || consumer.is_product;
  }

  // Together they must have as many rows to work on at once as they had, or enough of them. What
  // reduces nothing is done soon and worth none of the other's.
  bool has_enough_rows(const Fragment& producer, const Fragment& consumer) {
    bool alike = false;
    const double together = rows(candidate_, common_axes(candidate_, &alike));
    double before = rows(consumer, common_axes(consumer, &alike));
    if (has_reductions(producer))
      before = std::min(before, rows(producer, common_axes(producer, &alike)));
    const double elements = work(producer) + work(consumer);
    if (together >= kEnoughRows) return true;
    return elements <= kLittleWork || (together >= before && elements <= kWorkOfFewRows);
  }

  // The axis along which a store fills memory.
  static NodeRef inner_axis(NodeRef store) {
    for (const LinearForm::Term& term : expand(store->source(1)).terms)
      if (term.factor == 1 && std::ranges::count(store_axes(store), term.base) > 0)
        return term.base;
    return nullptr;
  }

  // Whether two stores over the same elements fill memory along different axes: together one of
  // them would scatter them one by one, by itself it is a transpose.
  bool scatters(const Fragment& f) {
    if (work(f) <= kLittleWork) return false;
    std::set<std::pair<size_t, NodeRef>> inner;  // with how many axes there are, each once
    for (NodeRef store : f.phases[0])
      if (NodeRef axis = inner_axis(store)) inner.emplace(store_axes(store).size(), axis);
    for (NodeRef store : f.phases[0]) {
      const std::span<const NodeRef> axes = store_axes(store);
      NodeRef own = inner_axis(store);
      for (NodeRef axis : axes)
        if (own && axis != own && inner.contains({axes.size(), axis})) return true;
    }
    return false;
  }

  // What is bound: a value that replaces another is where that was.
  int pieces_of_memory(const Fragment& f) {
    std::set<int> pieces(f.reads.begin(), f.reads.end());
    for (int number : f.writes) {
      const int target = replaced_[static_cast<size_t>(number)];
      pieces.insert(target < 0 ? number : target);
    }
    return static_cast<int>(pieces.size());
  }

  bool not_committed(UnfusedReason reason, BufferLimit limit = {}) {
    refusal_ = {reason, limit};
    return false;
  }

  // Whether the candidate takes the place of the two; refusal_ says why not.
  bool committed(int from, int to) {
    if (!has_enough_rows(fragment(from), fragment(to))) return not_committed(UnfusedReason::Size);
    drop_unread_stores(from, to);
    if (scatters(candidate_)) return not_committed(UnfusedReason::Shape);
    candidate_.refresh();
    const BufferLimit buffers{pieces_of_memory(candidate_),
                              std::min(kMostBuffersOfRows, options_.capabilities.max_buffers)};
    if (buffers.needed > buffers.allowed) return not_committed(UnfusedReason::Limit, buffers);
    if (share_of_kernel(candidate_, options_.capabilities) < 1)
      return not_committed(UnfusedReason::Length);
    for (int number : candidate_.writes)
      if (const int target = replaced_[static_cast<size_t>(number)];
          target >= 0 && !reads_only_what_it_replaces(candidate_, {number, target}))
        return not_committed(UnfusedReason::Order);
    // Nor may a copy into a buffer join what reads it at other places.
    for (int number : candidate_.writes)
      if (std::ranges::binary_search(candidate_.reads, number) &&
          !reads_only_what_it_replaces(candidate_, {number, number}))
        return not_committed(UnfusedReason::Order);
    fragment(to) = std::move(candidate_);
    fragment(from) = Fragment{};
    flow_.merge(from, to);
    return true;
  }

  void drop_unread_stores(int from, int to) {
    std::erase_if(candidate_.phases[0], [&](NodeRef store) {
      const int number = schedule_buffer_of(store->source(0));
      if (!buffer(number).is_temporary()) return false;
      if (replaced_[static_cast<size_t>(number)] >= 0) return false;
      if (is_assigned_[static_cast<size_t>(number)]) return false;
      return std::ranges::all_of(flow_.readers(number),
                                 [&](int reader) { return reader == from || reader == to; });
    });
  }

  // ---- fragments side by side that read the same

  struct SiblingKey {
    std::vector<NodeRef> sizes;
    bool operator<(const SiblingKey& other) const {
      return std::ranges::lexicographical_compare(
          sizes, other.sizes, [](NodeRef a, NodeRef b) { return a->key < b->key; });
    }
  };

  // The sizes of the space and of all reductions, in order.
  std::optional<SiblingKey> sibling_key(const Fragment& f) {
    if (f.phases.empty() || !is_simple(f) || f.is_product) return {};
    bool alike = false;
    std::vector<NodeRef> space = common_axes(f, &alike);
    if (!alike) return {};
    SiblingKey key;
    for (NodeRef axis : space) key.sizes.push_back(size_of(f, axis));
    key.sizes.push_back(index_const(-1));
    std::vector<NodeRef> inner;
    for (const Axis& axis : f.axes)
      if (std::ranges::count(space, axis.variable) == 0) inner.push_back(axis.size);
    std::ranges::sort(inner, [](NodeRef a, NodeRef b) { return a->key < b->key; });
    inner.erase(std::unique(inner.begin(), inner.end()), inner.end());
    key.sizes.insert(key.sizes.end(), inner.begin(), inner.end());
    return key;
  }

  // Those that share no more than a number are as well off apart where one is ready before the
  // other: what it reads may still be near.
  bool belong_together(int first, int second) {
    const Fragment &a = fragment(first), &b = fragment(second);
    bool share = false, share_an_array = false;
    for (int number : a.reads)
      if (std::ranges::binary_search(b.reads, number)) {
        share = true;
        share_an_array = share_an_array || size_estimate(buffer(number).elements) > 1;
      }
    return share_an_array || (share && level(first) == level(second));
  }

  void join_siblings() {
    levels_ = flow_.levels();
    std::map<SiblingKey, std::vector<int>> alike;
    for (int number : flow_.order())
      if (std::optional<SiblingKey> key = sibling_key(fragment(number)))
        alike[*key].push_back(number);
    for (auto& [key, list] : alike)
      for (size_t i = 0; i < list.size(); ++i)
        for (size_t k = i + 1; k < std::min(list.size(), i + kSiblingsAhead); ++k)
          if (join(list[k], list[i])) list.erase(list.begin() + static_cast<std::ptrdiff_t>(k--));
  }

  bool join(int from, int to) {
    const Fragment &a = fragment(from), &b = fragment(to);
    if (!belong_together(from, to)) return false;
    if (flow_.masked_ranges(from, to) || flow_.masked_ranges(to, from)) return false;
    Renaming renaming;
    std::span<const NodeRef> axes = store_axes(a.phases[0][0]), others = store_axes(b.phases[0][0]);
    for (size_t i = 0; i < axes.size(); ++i) renaming.emplace_back(axes[i], others[i]);
    merge(from, to, renaming);
    return committed(from, to);
  }

  Rangified& program_;
  Dataflow& flow_;
  const ScheduleOptions& options_;
  std::vector<int> replaced_;         // by buffer: the one whose place it takes, if any
  std::vector<char> is_assigned_;     // by buffer
  std::vector<StoredValue*> stored_;  // by buffer; null: it has to be stored
  std::vector<int> levels_;
  Fragment candidate_;
  Refusal refusal_{};
};

}  // namespace

void fuse_rows(Rangified& program, Dataflow& flow, std::span<const AssignedBuffer> in_place,
               const ScheduleOptions& options) {
  Grouper(program, flow, in_place, options).run();
}

}  // namespace anneal
