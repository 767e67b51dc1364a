#include "kernel/body/masked_range.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "body/axis_bounds.h"
#include "body/match_axes.h"
#include "ir/graph.h"
#include "ir/index.h"
#include "ir/node_map.h"

namespace anneal {
namespace {

// row + first <= element <= row + last.
struct Window {
  std::optional<int64_t> first, last;
  bool operator==(const Window&) const = default;

  // Where both hold.
  void meet(const Window& other) {
    if (other.first) first = first ? std::max(*first, *other.first) : *other.first;
    if (other.last) last = last ? std::min(*last, *other.last) : *other.last;
  }
};

// What a scalar is outside of the window.
enum class Outside : uint8_t { Anything, Zero, MinusInfinity };

class ReachFinder {
 public:
  explicit ReachFinder(const KernelBody& body) : body_(body), row_(body.tile_axes.back()) {}

  std::vector<KernelBody::MaskedRange> run() {
    for (NodeRef store : body_.stores)
      if (is_tile(store->source(0)) && !note_tile(store)) return {};
    // Every sum and every maximum along the rows must agree.
    for (NodeRef store : body_.stores)
      for (NodeRef node : topological_order({&store, 1}))
        if (is_reduce_over(node->op) && reads_tile(node) && !note_reduction(node)) return {};
    // What is stored along the rows is wanted as a whole.
    for (NodeRef store : body_.stores)
      if (!is_tile(store->source(0)))
        for (NodeRef axis : store_axes(store))
          if (std::ranges::count(axes_, axis)) return {};
    if (!window_ || (!window_->first && !window_->last) || !sees_itself()) return {};
    std::vector<KernelBody::MaskedRange> masked_ranges;
    for (NodeRef axis : axes_) masked_ranges.push_back({axis, window_->first, window_->last});
    return masked_ranges;
  }

 private:
  bool is_tile(NodeRef buffer) const { return std::ranges::count(body_.tiles, buffer) > 0; }

  bool reads_tile(NodeRef root) const {
    return std::ranges::any_of(topological_order({&root, 1}), [&](NodeRef node) {
      return node->op == Op::Load && is_tile(node->source(0));
    });
  }

  // Every row sees one element at least: of one that sees none, all is NaN.
  bool sees_itself() const {
    if (window_->last && *window_->last < 0) return false;
    if (!window_->first) return true;
    NodeRef rows = body_.axis_of(row_).size;
    return *window_->first <= 0 && std::ranges::all_of(axes_, [&](NodeRef axis) {
      return body_.axis_of(axis).size == rows;
    });
  }

  void note_axis(NodeRef axis) {
    if (std::ranges::count(axes_, axis) == 0) axes_.push_back(axis);
  }

  bool note_tile(NodeRef store) {
    std::span<const NodeRef> own = store_axes(store).subspan(body_.tile_axes.size());
    if (own.size() != 1 || store->source(1) != own[0]) return false;
    stores_[store->source(0)] = store;
    note_axis(own[0]);
    return true;
  }

  bool note_reduction(NodeRef node) {
    if (node->source_count != 2) return false;
    NodeRef axis = node->source(1);
    note_axis(axis);
    const Outside neutral = node->op == Op::SumOver   ? Outside::Zero
                            : node->op == Op::MaxOver ? Outside::MinusInfinity
                                                      : Outside::Anything;
    if (neutral == Outside::Anything) return false;
    Window window;
    if (outside(node->source(0), axis, window) != neutral) return false;
    if (window_ && *window_ != window) return false;
    window_ = window;
    return true;
  }

  // What a scalar along the axis is outside of a window, which it tells.
  Outside outside(NodeRef node, NodeRef axis, Window& window) {
    switch (node->op) {
      case Op::Load: {
        if (node->source(1) != axis) return Outside::Anything;
        const NodeRef* store = stores_.find(node->source(0));
        if (!store) return Outside::Anything;
        return outside((*store)->source(3), store_axes(*store).back(), window);
      }
      case Op::Where: {
        const double other = constant(node->source(2));
        const Outside kind = other == 0           ? Outside::Zero
                             : other == -INFINITY ? Outside::MinusInfinity
                                                  : Outside::Anything;
        if (kind == Outside::Anything) return kind;
        Window found;
        if (!condition(node->source(0), axis, found)) return Outside::Anything;
        // A second mask of the same kind makes the window smaller.
        Window inner;
        if (outside(node->source(1), axis, inner) == kind) found.meet(inner);
        window = found;
        return kind;
      }
      case Op::Mul: {
        Window a, b;
        const Outside left = outside(node->source(0), axis, a),
                      right = outside(node->source(1), axis, b);
        if (left == Outside::Zero && right == Outside::Zero) a.meet(b);
        if (left == Outside::Zero) return window = a, Outside::Zero;
        if (right == Outside::Zero) return window = b, Outside::Zero;
        if (left == Outside::MinusInfinity && constant(node->source(1)) > 0)
          return window = a, left;
        if (right == Outside::MinusInfinity && constant(node->source(0)) > 0)
          return window = b, right;
        return Outside::Anything;
      }
      case Op::Add: {
        Window a, b;
        const Outside left = outside(node->source(0), axis, a),
                      right = outside(node->source(1), axis, b);
        if (left == right && left != Outside::Anything) {
          if (a != b) return Outside::Anything;
          return window = a, left;
        }
        if (left == Outside::MinusInfinity && right == Outside::Anything) return window = a, left;
        if (right == Outside::MinusInfinity && left == Outside::Anything) return window = b, right;
        return Outside::Anything;
      }
      case Op::Exp:
      case Op::Exp2:
        return outside(node->source(0), axis, window) == Outside::MinusInfinity ? Outside::Zero
                                                                                : Outside::Anything;
      case Op::Neg:
      case Op::Div:
        return outside(node->source(0), axis, window) == Outside::Zero ? Outside::Zero
                                                                       : Outside::Anything;
      case Op::Cast:
        return is_float(node->dtype) && is_float(node->source(0)->dtype)
                   ? outside(node->source(0), axis, window)
                   : Outside::Anything;
      default: return Outside::Anything;
    }
  }

  static double constant(NodeRef node) {
    return node->is_const() && is_float(node->dtype) ? node->scalar().as_double() : NAN;
  }

  // Whether a condition says that the element is in a window; there may be more to it.
  bool condition(NodeRef node, NodeRef axis, Window& window) {
    bool any = false;
    for (const AxisBound& bound : bounds_in(node)) {
      if (bound.low == axis && bound.high == row_)
        window.meet({{}, bound.by});
      else if (bound.low == row_ && bound.high == axis)
        window.meet({-bound.by, {}});
      else
        continue;
      any = true;
    }
    return any;
  }

  const KernelBody& body_;
  NodeRef row_;
  NodeMap<NodeRef> stores_;  // of the tiles
  std::vector<NodeRef> axes_;
  std::optional<Window> window_;
};

}  // namespace

KernelBody find_masked_ranges(const KernelBody& body) {
  KernelBody result = body;
  if (!body.tiles.empty()) result.masked_ranges = ReachFinder(body).run();
  return result;
}

}  // namespace anneal
