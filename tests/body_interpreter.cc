#include "body_interpreter.h"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "ir/node_map.h"
#include "ir/semantics.h"

namespace anneal {
namespace {

// A scalar's last value, and when it was computed. It stays right until an axis it depends on
// moves.
struct Known {
  Scalar value;
  uint64_t time = 0;
  std::vector<NodeRef> depends_on;  // axes that are free in it
};

class Run {
 public:
  Run(const KernelBody& body, std::span<Value* const> buffers,
      const std::function<int64_t(NodeRef)>& variable)
      : body_(body), variable_(variable), buffers_(buffers.begin(), buffers.end()) {
    for (Value* buffer : buffers) before_.push_back(*buffer);
    for (size_t i = 0; i < body.buffers.size(); ++i) number_[body.buffers[i]] = i;
    for (const Axis& axis : body.axes) {
      moved_[axis.variable] = 0;
      size_[axis.variable] = axis.size;
    }
    order_ = topological_order(body.stores);
    for (NodeRef node : order_) known_[node].depends_on = free_axes(node);
  }

  // With tiles, each store sees what those before it did for the same values of the tile axes.
  void run() {
    over(body_.tile_axes, [&] {
      for (NodeRef store : body_.stores) {
        std::span<const NodeRef> axes = store->sources().subspan(4 + body_.tile_axes.size());
        over(axes, [&] { perform(store); });
        if (body_.tiles.empty()) continue;
        for (size_t i = 0; i < buffers_.size(); ++i) before_[i] = *buffers_[i];
        for (NodeRef node : order_) known_[node].time = 0;
      }
    });
  }

 private:
  std::vector<NodeRef> free_axes(NodeRef node) {
    std::vector<NodeRef> axes;
    if (moved_.contains(node)) axes.push_back(node);
    for (NodeRef source : node->sources())
      for (NodeRef axis : known_[source].depends_on) axes.push_back(axis);
    if (is_reduce_over(node->op))
      for (NodeRef bound : node->sources().subspan(1)) std::erase(axes, bound);
    std::sort(axes.begin(), axes.end());
    axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
    return axes;
  }

  void place(NodeRef axis, int64_t at) {
    at_[axis] = at;
    moved_[axis] = ++time_;
  }

  template <typename Function>
  void over(std::span<const NodeRef> axes, Function function) {
    if (axes.empty()) return function();
    const int64_t size = value(size_[axes[0]]).as_int();
    for (int64_t i = 0; i < size; ++i) {
      place(axes[0], i);
      over(axes.subspan(1), function);
    }
  }

  void perform(NodeRef store) {
    if (value(store->source(2)).bits() == 0) return;
    const Scalar stored = value(store->source(3));
    Value& buffer = *buffers_[number_[store->source(0)]];
    const int64_t at = checked_position(store, buffer);
    uint64_t& element = buffer.payload[static_cast<size_t>(at)];
    const std::array operands{buffer.at(at), stored};
    element = (store->op == Op::Store ? stored : evaluate(Op::Add, buffer.dtype, operands)).bits();
  }

  int64_t checked_position(NodeRef access, const Value& buffer) {
    const int64_t at = value(access->source(1)).as_int();
    if (at < 0 || at >= buffer.size())
      throw InternalError(
          fmt::format("{} at {} of {} elements", name(access->op), at, buffer.size()));
    return at;
  }

  Scalar value(NodeRef node) {
    Known& known = known_[node];
    const bool fresh =
        known.time > 0 && std::all_of(known.depends_on.begin(), known.depends_on.end(),
                                      [&](NodeRef axis) { return moved_[axis] <= known.time; });
    if (fresh) return known.value;
    const Scalar result = compute(node);
    Known& entry = known_[node];  // the table may have grown
    entry.value = result;
    entry.time = std::max<uint64_t>(1, time_);
    return result;
  }

  Scalar compute(NodeRef node) {
    switch (node->op) {
      case Op::Const: return node->scalar();
      case Op::Variable:
        return Scalar::of_int(DType::Index, at_.contains(node) ? at_[node] : variable_(node));
      case Op::AsIndex: return Scalar::of_int(DType::Index, value(node->source(0)).as_int());
      case Op::Load: {
        if (value(node->source(2)).bits() == 0) return Scalar::of_int(node->dtype, 0);
        const Value& buffer = before_[number_[node->source(0)]];
        return buffer.at(checked_position(node, buffer));
      }
      case Op::SumOver:
      case Op::ProdOver:
      case Op::MaxOver:
      case Op::MinOver: return reduce(node);
      default: break;
    }
    std::vector<Scalar> sources;
    for (NodeRef source : node->sources()) sources.push_back(value(source));
    // Where a size is 0 no condition holds, and what positions would be does not matter.
    const bool divides = node->op == Op::FloorDiv || node->op == Op::Mod;
    if (divides && sources[1].bits() == 0) return Scalar::of_int(node->dtype, 0);
    return evaluate(node->op, node->dtype, sources);
  }

  Scalar reduce(NodeRef node) {
    const bool real = is_float(node->dtype);
    const bool sum = node->op == Op::SumOver, product = node->op == Op::ProdOver;
    const DType running = real ? DType::F64 : is_unsigned(node->dtype) ? DType::U64 : DType::I64;
    const Scalar unit = sum                       ? Scalar::of(node->dtype, -0.0)
                        : product                 ? Scalar::of_int(node->dtype, 1)
                        : node->op == Op::MaxOver ? lowest(node->dtype)
                                                  : highest(node->dtype);
    const Op op = sum ? Op::Add : product ? Op::Mul : node->op == Op::MaxOver ? Op::Max : Op::Min;
    Scalar total = cast(unit, running);
    bool empty = true;
    std::vector<std::pair<NodeRef, int64_t>> outer;  // an axis may be bound again within itself
    for (NodeRef axis : node->sources().subspan(1))
      if (at_.contains(axis)) outer.push_back({axis, at_[axis]});
    over(node->sources().subspan(1), [&] {
      const std::array operands{total, cast(value(node->source(0)), running)};
      total = evaluate(op, running, operands);
      empty = false;
    });
    for (auto [axis, at] : outer) place(axis, at);
    if (empty && sum) return Scalar::of_int(node->dtype, 0);
    return cast(total, node->dtype);
  }

  const KernelBody& body_;
  const std::function<int64_t(NodeRef)>& variable_;
  std::vector<Value*> buffers_;
  std::vector<Value> before_;
  std::vector<NodeRef> order_;
  NodeMap<size_t> number_;
  NodeMap<NodeRef> size_;
  NodeMap<int64_t> at_;
  NodeMap<uint64_t> moved_;
  NodeMap<Known> known_;
  uint64_t time_ = 0;
};

}  // namespace

void run_body(const KernelBody& body, std::span<Value* const> buffers,
              const std::function<int64_t(NodeRef)>& variable) {
  Run(body, buffers, variable).run();
}

}  // namespace anneal
