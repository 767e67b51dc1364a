// Grows a pool of nodes step by step; each kind of step is one function.
// Must not evaluate anything.
#include "random_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "ir/build.h"
#include "ir/index.h"
#include "random_pool.h"
#include "symbolic/bounds.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace {

constexpr Op kFloatUnary[] = {Op::Neg,  Op::Abs,   Op::Sqrt,  Op::Exp,   Op::Exp2,  Op::Log,
                              Op::Log2, Op::Sin,   Op::Cos,   Op::Tanh,  Op::Erf,   Op::Floor,
                              Op::Ceil, Op::Trunc, Op::Round, Op::Log10, Op::Log1p, Op::Expm1,
                              Op::Sinh, Op::Cosh,  Op::Asinh, Op::Erfc};
constexpr Op kFloatBinary[] = {Op::Add, Op::Mul, Op::Add, Op::Mul, Op::Max, Op::Min,
                               Op::Div, Op::Pow, Op::Lt,  Op::Le,  Op::Eq,  Op::Atan2};
constexpr Op kIntBinary[] = {Op::Add, Op::Mul, Op::FloorDiv, Op::Mod, Op::Max, Op::Min, Op::And,
                             Op::Or,  Op::Xor, Op::Shl,      Op::Shr, Op::Lt,  Op::Le,  Op::Eq};
constexpr Op kBoolBinary[] = {Op::And, Op::Or, Op::Xor, Op::Lt, Op::Le, Op::Eq};
constexpr Op kReductions[] = {Op::ReduceSum, Op::ReduceSum, Op::ReduceMax,
                              Op::ReduceSum, Op::ReduceMin, Op::ReduceProd};
constexpr Op kMovements[] = {Op::Reshape, Op::Permute, Op::Expand, Op::Pad, Op::Shrink, Op::Flip};

class Generator : RandomPool {
 public:
  using RandomPool::RandomPool;

  std::vector<NodeRef> build() {
    // Steps that come to nothing cost no depth, so they are tried again.
    int tries = 20 * options_.steps;
    for (int made = 0; made < options_.steps && tries > 0; --tries) made += step() ? 1 : 0;
    return roots();
  }

 private:
  // ---- steps: each gives a new node, or null

  NodeRef unary() {
    NodeRef a = pick();
    if (is_bool(a->dtype)) return make(Op::Xor, {a, number(a, 1)});
    if (!is_float(a->dtype)) return make(chance(50) ? Op::Neg : Op::Abs, {a});
    const Op op = one_of(kFloatUnary);
    switch (op) {
      case Op::Exp:
      case Op::Exp2:
      case Op::Expm1:
      case Op::Sinh:
      case Op::Cosh:
      case Op::Erfc: return make(op, {bounded(a, 3)});
      case Op::Sqrt:
      case Op::Log:
      case Op::Log2:
      case Op::Log10:
      case Op::Log1p: return make(op, {positive(a)});
      case Op::Sin:
      case Op::Cos:
      case Op::Tanh:
      case Op::Asinh:
      case Op::Erf: return make(op, {bounded(a, 16)});
      case Op::Floor:
      case Op::Ceil:
      case Op::Trunc:
      case Op::Round: return is_exact(a) ? make(op, {a}) : nullptr;
      default: return make(op, {a});
    }
  }

  NodeRef binary() {
    NodeRef a = pick();
    if (!is_float(a->dtype)) {
      NodeRef b = like(a);
      return make(is_bool(a->dtype) ? one_of(kBoolBinary) : one_of(kIntBinary), {a, b});
    }
    const Op op = one_of(kFloatBinary);
    NodeRef b = like(a);
    switch (op) {
      case Op::Div:
      case Op::Atan2: return make(op, {a, positive(b)});
      case Op::Pow:
        return chance(50) ? make(op, {positive(bounded(a, 4)), bounded(b, 2)})
                          : make(op, {positive(a), number(a, one_of(kFloatConstants))});
      case Op::Lt:
      case Op::Le:
      case Op::Eq: return is_exact(a) && is_exact(b) ? make(op, {a, b}) : nullptr;
      default: return chance(50) ? make(op, {a, b}) : make(op, {b, a});
    }
  }

  // A condition that rests on exact values.
  NodeRef condition(std::span<const NodeRef> dims) {
    if (chance(40)) return operand(dims, DType::Bool);
    const DType dtype = any_integer();
    return make(chance(50) ? Op::Lt : Op::Le, {operand(dims, dtype), operand(dims, dtype)});
  }

  NodeRef where() {
    NodeRef a = pick(), b = like(a), test = condition(a->shape->dims());
    return make(Op::Where, chance(50) ? std::initializer_list<NodeRef>{test, a, b}
                                      : std::initializer_list<NodeRef>{test, b, a});
  }

  NodeRef cast() {
    NodeRef a = pick();
    const DType to = any_dtype();
    if (to == a->dtype) return nullptr;
    if (options_.tame && !is_float(to) && !is_exact(a)) return nullptr;
    return converted(a, to);
  }

  NodeRef bitcast() {
    NodeRef a = pick();
    for (int tries = 0; tries < 8; ++tries) {
      const DType to = any_dtype();
      if (to != a->dtype && byte_size(to) == byte_size(a->dtype) &&
          is_bool(to) == is_bool(a->dtype))
        return make_bitcast(a, to);
    }
    return nullptr;
  }

  std::vector<int64_t> some_axes(NodeRef a) {
    std::vector<int64_t> axes;
    for (size_t axis = 0; axis < a->rank(); ++axis)
      if (chance(50)) axes.push_back(static_cast<int64_t>(axis));
    if (axes.empty() && a->rank()) axes.push_back(static_cast<int64_t>(below(a->rank())));
    return axes;
  }

  NodeRef reduced(NodeRef a, std::span<const int64_t> axes) {
    const Op op = one_of(kReductions);
    if (op == Op::ReduceProd && is_float(a->dtype) && options_.tame)
      a = make(Op::Add, {bounded(a, 0.25), number(a, 1)});
    return make_axes(op, a, axes);
  }

  NodeRef reduce() {
    NodeRef a = pick_where([](NodeRef n) { return n->rank() > 0 && !is_bool(n->dtype); });
    if (!a) return nullptr;
    NodeRef result = reduced(a, some_axes(a));
    // Of no elements an extreme is infinite.
    if (options_.tame && is_float(a->dtype) && std::isinf(info_of(result).magnitude()))
      result = bounded(result, 4);
    return result;
  }

  // A reduction and what it came from, together: norms and softmax.
  NodeRef normalise() {
    NodeRef a = pick_where([](NodeRef n) { return n->rank() > 0 && is_float(n->dtype); });
    if (!a) return nullptr;
    const std::vector<int64_t> axes = some_axes(a);
    auto back = [&](NodeRef node) { return make_tail(Op::Expand, node, a->shape->dims()); };
    auto sum = [&](NodeRef node) { return make_axes(Op::ReduceSum, node, axes); };
    a = bounded(a, 1);
    switch (below(4)) {
      case 0: {  // softmax
        NodeRef top = bounded(make_axes(Op::ReduceMax, a, axes), 1);
        NodeRef e = make(Op::Exp, {make(Op::Add, {a, make(Op::Neg, {back(top)})})});
        return make(Op::Div, {e, back(positive(sum(e)))});
      }
      case 1: {  // centred, and divided by its spread
        NodeRef mean = bounded(sum(a), 1);
        NodeRef rest = make(Op::Add, {a, make(Op::Neg, {back(mean)})});
        NodeRef spread = make(Op::Sqrt, {positive(bounded(sum(make(Op::Mul, {rest, rest})), 4))});
        return make(Op::Div, {rest, back(spread)});
      }
      case 2: {  // by the root of its squares
        NodeRef squares = bounded(sum(make(Op::Mul, {a, a})), 4);
        return make(Op::Mul, {a, back(make(Op::Pow, {positive(squares), number(squares, -0.5)}))});
      }
      default: return make(Op::Mul, {a, back(bounded(reduced(a, axes), 4))});
    }
  }

  // Products of all pairs, summed: [rows, k] and [k, columns].
  NodeRef matrix_product() {
    NodeRef a = pick_where([](NodeRef n) { return n->rank() >= 2 && !is_bool(n->dtype); });
    if (!a) return nullptr;
    if (chance(20)) {  // narrow operands, wide sum
      if (NodeRef wide = is_float(a->dtype) ? converted(a, DType::F32) : nullptr) a = wide;
    }
    const size_t rank = a->rank();
    NodeRef columns = one_of(sizes_), inner = a->dim(rank - 1);
    NodeRef b = chance(50) ? operand(Dims{inner, columns}, a->dtype)
                           : make_axes(Op::Permute, operand(Dims{columns, inner}, a->dtype),
                                       std::vector<int64_t>{1, 0});
    Dims all(a->shape->dims().begin(), a->shape->dims().end()), left = all;
    all.push_back(columns);
    left.push_back(index_const(1));
    if (most_elements(all) > options_.max_elements * 4) return nullptr;
    NodeRef product = make(
        Op::Mul, {make_tail(Op::Expand, make_tail(Op::Reshape, a, left), all), stretched(b, all)});
    NodeRef sum =
        make_axes(Op::ReduceSum, product, std::vector<int64_t>{static_cast<int64_t>(rank - 1)});
    Dims dims(a->shape->dims().begin(), a->shape->dims().end());
    dims.back() = columns;
    return make_tail(Op::Reshape, moderate(sum), dims);
  }

  // [rows, k] and [columns, k]: sums over k.
  static NodeRef all_pairs(NodeRef a, NodeRef b) {
    NodeRef rows = a->dim(0), columns = b->dim(0), inner = a->dim(1), one = index_const(1);
    const Dims all{rows, columns, inner}, left{rows, one, inner}, right{one, columns, inner};
    NodeRef product = make(Op::Mul, {make_tail(Op::Expand, make_tail(Op::Reshape, a, left), all),
                                     make_tail(Op::Expand, make_tail(Op::Reshape, b, right), all)});
    NodeRef sum = make_axes(Op::ReduceSum, product, std::vector<int64_t>{2});
    return make_tail(Op::Reshape, sum, Dims{rows, columns});
  }

  // Weights from a row of products, which sum to one, for sums of other rows.
  NodeRef attention() {
    const DType dtype = chance(70) ? DType::F32 : any_float();
    NodeRef rows = one_of(sizes_), tokens = one_of(sizes_), inner = index_const(1 + below(3));
    if (most_elements(Dims{rows, tokens}) > options_.max_elements) return nullptr;
    NodeRef keys = operand(Dims{tokens, inner}, dtype);
    NodeRef s = bounded(all_pairs(operand(Dims{rows, inner}, dtype), keys), 1);
    const Dims dims(s->shape->dims().begin(), s->shape->dims().end());
    if (chance(30)) s = make(Op::Where, {condition(dims), s, number(s, -1)});
    if (chance(20)) s = bounded(make(Op::Add, {s, operand(dims, dtype)}), 1);
    const std::vector<int64_t> last{1};
    auto back = [&](NodeRef node) { return make_tail(Op::Expand, node, dims); };
    NodeRef top = bounded(make_axes(Op::ReduceMax, s, last), 1);
    NodeRef e = make(Op::Exp, {make(Op::Add, {s, make(Op::Neg, {back(top)})})});
    NodeRef total = positive(make_axes(Op::ReduceSum, e, last)), weights = e;
    const bool divided_first = chance(60);
    if (divided_first) weights = make(Op::Div, {e, back(total)});
    if (!divided_first && chance(50)) {
      NodeRef shift = make(Op::Add, {make(Op::Log, {total}), top});
      weights = make(Op::Exp, {bounded(make(Op::Add, {s, make(Op::Neg, {back(shift)})}), 4)});
    }
    if (chance(20)) weights = make(Op::Where, {condition(dims), weights, number(weights, 0)});
    if (chance(15)) push(weights);
    if (!is_usable(weights)) return nullptr;
    NodeRef values = operand(Dims{index_const(1 + below(4)), tokens}, dtype);
    NodeRef result = bounded(all_pairs(weights, values), 4);
    if (divided_first || weights != e) return result;
    const Dims wide(result->shape->dims().begin(), result->shape->dims().end());
    return make(Op::Div, {result, make_tail(Op::Expand, total, wide)});
  }

  // ---- movement

  NodeRef permute(NodeRef a) {
    std::vector<int64_t> axes(a->rank());
    std::iota(axes.begin(), axes.end(), 0);
    for (size_t i = axes.size(); i > 1; --i) std::swap(axes[i - 1], axes[below(i)]);
    return make_axes(Op::Permute, a, axes);
  }

  // Two factors of a size: of a number any, of an expression what it was multiplied from.
  std::optional<std::pair<NodeRef, NodeRef>> factors(NodeRef size) {
    if (is_static(size)) {
      const int64_t value = static_value(size);
      for (int tries = 0; tries < 6; ++tries) {
        const auto factor = static_cast<int64_t>(2 + below(7));
        if (value && value % factor == 0)
          return std::pair{index_const(factor), index_const(value / factor)};
      }
      return {};
    }
    if (size->op == Op::Mul) return std::pair{size->source(0), size->source(1)};
    return {};
  }

  NodeRef reshape(NodeRef a) {
    Dims dims(a->shape->dims().begin(), a->shape->dims().end());
    const int changes = 1 + static_cast<int>(below(3));
    for (int k = 0; k < changes; ++k) {
      const size_t axis = dims.empty() ? 0 : below(dims.size());
      const uint64_t draw = below(10);
      if (draw < 4 && axis + 1 < dims.size()) {
        dims[axis] = index_mul(dims[axis], dims[axis + 1]);
        dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis) + 1);
      } else if (draw < 8 && !dims.empty()) {
        if (auto pair = factors(dims[axis]); pair && dims.size() < 6) {
          if (chance(50)) std::swap(pair->first, pair->second);
          dims[axis] = pair->first;
          dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis) + 1, pair->second);
        }
      } else if (draw == 8 && dims.size() < 5) {
        dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), index_const(1));
      } else {
        std::erase_if(dims, is_one);
      }
    }
    return make_tail(Op::Reshape, a, dims);
  }

  NodeRef expand(NodeRef a) {
    Dims dims(a->shape->dims().begin(), a->shape->dims().end());
    if (std::ranges::none_of(dims, is_one)) {
      dims.insert(dims.begin() + static_cast<ptrdiff_t>(below(dims.size() + 1)), index_const(1));
      a = make_tail(Op::Reshape, a, dims);
    }
    for (NodeRef& dim : dims)
      if (is_one(dim) && chance(70)) dim = one_of(sizes_);
    return make_tail(Op::Expand, a, dims);
  }

  NodeRef pad(NodeRef a) {
    Dims pairs;
    for (size_t i = 0; i < 2 * a->rank(); ++i)
      pairs.push_back(index_const(chance(40) ? static_cast<int64_t>(1 + below(3)) : 0));
    return make_tail(Op::Pad, a, pairs);
  }

  NodeRef shrink(NodeRef a) {
    Dims pairs;
    for (NodeRef dim : a->shape->dims()) {
      // Something is left, but for now and then.
      const int64_t least = std::max<int64_t>(0, bounds(dim).min - (chance(3) ? 0 : 1));
      auto cut = [&](int64_t most) {
        return chance(50) ? static_cast<int64_t>(below(static_cast<uint64_t>(most) + 1)) : 0;
      };
      const int64_t front = cut(std::min<int64_t>(least, 5));
      const int64_t back = cut(std::min<int64_t>(least - front, 5));
      pairs.push_back(index_const(front));
      pairs.push_back(index_sub(dim, index_const(back)));
    }
    return make_tail(Op::Shrink, a, pairs);
  }

  NodeRef moved(NodeRef a) {
    switch (one_of(kMovements)) {
      case Op::Reshape: return reshape(a);
      case Op::Permute: return permute(a);
      case Op::Expand: return expand(a);
      case Op::Pad: return pad(a);
      case Op::Shrink: return shrink(a);
      default: return a->rank() ? make_axes(Op::Flip, a, some_axes(a)) : a;
    }
  }

  NodeRef move() { return moved(pick()); }
  NodeRef move_often() {
    NodeRef a = pick();
    for (uint64_t count = 2 + below(4); count > 0; --count)
      if (NodeRef next = moved(a); is_usable(next)) a = next;
    return a;
  }

  // All windows of an axis, made of movement alone: element (i, j) is element i + j.
  NodeRef windows() {
    NodeRef a = pick_where([](NodeRef n) {
      return n->rank() > 0 && is_static(n->dim(n->rank() - 1)) &&
             static_value(n->dim(n->rank() - 1)) >= 3;
    });
    if (!a) return nullptr;
    const int64_t size = static_value(a->dim(a->rank() - 1));
    const auto width = static_cast<int64_t>(2 + below(2));
    auto with = [&](std::initializer_list<int64_t> last) {
      Dims dims(a->shape->dims().begin(), a->shape->dims().end() - 1);
      for (int64_t each : last) dims.push_back(index_const(each));
      return dims;
    };
    Dims pairs(2 * a->rank(), index_const(0));
    pairs.back() = index_const(width);
    NodeRef rows =
        make_tail(Op::Expand, make_tail(Op::Reshape, a, with({1, size})), with({width, size}));
    NodeRef flat = make_tail(Op::Pad, make_tail(Op::Reshape, rows, with({width * size})), pairs);
    NodeRef shifted = make_tail(Op::Reshape, flat, with({width, size + 1}));
    Dims ends;
    for (NodeRef dim : shifted->shape->dims()) {
      ends.push_back(index_const(0));
      ends.push_back(dim);
    }
    ends.back() = index_const(size - width + 1);
    NodeRef result = make_tail(Op::Shrink, shifted, ends);
    if (!is_usable(result) || is_bool(a->dtype) || chance(40)) return result;
    const std::vector<int64_t> axes{static_cast<int64_t>(result->rank()) - 2};
    return make_axes(chance(50) ? Op::ReduceSum : Op::ReduceMax, result, axes);
  }

  // ---- indexed access and the rest

  // Places along an axis of this size, now and then outside of it.
  NodeRef places(std::span<const NodeRef> dims, NodeRef size) {
    const int64_t most = std::min<int64_t>(most_of(size), 100);
    DType dtype = any_integer();
    if (chance(50)) {
      NodeRef node = operand(dims, dtype);
      if (most > 0 && chance(70))
        node = make(Op::Mod, {node, number(node, static_cast<double>(most))});
      return node;
    }
    const int64_t low = is_unsigned(dtype) || chance(70) ? 0 : -1;
    return buffer(dims, dtype, {.low = low, .high = std::max(low, most - (chance(70) ? 1 : 0))});
  }
  Dims with_axis(NodeRef node, size_t axis, NodeRef size) {
    Dims dims(node->shape->dims().begin(), node->shape->dims().end());
    dims[axis] = size;
    return dims;
  }

  NodeRef gather() {
    NodeRef a = pick_where([](NodeRef n) { return n->rank() > 0; });
    if (!a) return nullptr;
    const size_t axis = below(a->rank());
    const Dims dims = with_axis(a, axis, one_of(sizes_));
    if (most_elements(dims) > options_.max_elements) return nullptr;
    return make(Op::Gather, {a, places(dims, a->dim(axis))}, Arg(static_cast<int64_t>(axis)));
  }

  NodeRef scatter() {
    NodeRef a = pick_where([](NodeRef n) { return n->rank() > 0; });
    if (!a) return nullptr;
    const size_t axis = below(a->rank());
    const Dims dims = with_axis(a, axis, one_of(sizes_));
    if (most_elements(dims) > options_.max_elements) return nullptr;
    const Op op = is_bool(a->dtype) || chance(50) ? Op::Scatter : Op::ScatterAdd;
    return make(op, {a, places(dims, a->dim(axis)), operand(dims, a->dtype)},
                Arg(static_cast<int64_t>(axis)));
  }

  NodeRef random_bits() {
    Dims dims = leaf_dims();
    if (chance(50)) {
      const std::span<const NodeRef> known = pick()->shape->dims();
      dims.assign(known.begin(), known.end());
    }
    auto word = [&] {
      NodeRef node = operand(dims, DType::U32);
      return chance(50) ? node : constant(dims, DType::U32);
    };
    NodeRef counter = dims.empty()
                          ? word()
                          : make_iota(DType::U32, dims, static_cast<int64_t>(below(dims.size())));
    NodeRef bits = make(Op::Threefry, {counter, word(), word(), word()});
    if (chance(30)) return bits;
    NodeRef fraction = make_cast(make(Op::Shr, {bits, number(bits, 9)}), DType::F32);
    return make(Op::Mul, {fraction, number(fraction, 0x1p-23)});
  }

  NodeRef new_leaf() {
    if (chance(60)) return any_leaf();
    const Dims dims = leaf_dims();
    return constant(dims, any_dtype());
  }

  NodeRef marked() {
    if (options_.tame || chance(50)) return make(Op::Contiguous, {pick()});
    if (chance(50)) return make(Op::StopGradient, {pick()});
    const auto number = static_cast<int64_t>(below(1000));  // of its own, or of an equal one
    return make(Op::Named, {pick()}, Arg(current_graph().intern_symbol("", number, 0)));
  }

  struct Kind {
    NodeRef (Generator::*make)();
    uint64_t weight;
  };
  static constexpr Kind kKinds[] = {
      {&Generator::unary, 14},     {&Generator::binary, 26},        {&Generator::where, 6},
      {&Generator::cast, 8},       {&Generator::bitcast, 3},        {&Generator::reduce, 9},
      {&Generator::normalise, 6},  {&Generator::matrix_product, 5}, {&Generator::move, 12},
      {&Generator::move_often, 5}, {&Generator::windows, 3},        {&Generator::gather, 4},
      {&Generator::scatter, 3},    {&Generator::random_bits, 2},    {&Generator::new_leaf, 3},
      {&Generator::marked, 2},     {&Generator::attention, 4},
  };

  bool step() {
    uint64_t total = 0;
    for (const Kind& kind : kKinds) total += kind.weight;
    uint64_t draw = below(total);
    for (const Kind& kind : kKinds) {
      if (draw < kind.weight) return push(moderate((this->*kind.make)()));
      draw -= kind.weight;
    }
    return false;
  }

  // ---- roots

  void add_root(std::vector<NodeRef>& roots, NodeRef node) {
    if (std::ranges::find(roots, node) == roots.end()) roots.push_back(node);
  }

  std::vector<NodeRef> roots() {
    std::vector<NodeRef> roots{*std::ranges::max_element(
        pool_, {}, [](NodeRef node) { return depth(std::span(&node, 1)); })};
    for (uint64_t count = below(4); count > 0; --count)
      add_root(roots, chance(70) ? pick() : pool_[below(pool_.size())]);
    if (!options_.assigns || !chance(40)) return roots;
    std::vector<NodeRef> targets;
    auto assign = [&](NodeRef target, NodeRef value) {
      if (!is_usable(value) || std::ranges::find(targets, target) != targets.end()) return;
      targets.push_back(target);
      add_root(roots, make(Op::Assign, {target, value}));
      if (chance(25)) add_root(roots, value);
    };
    const uint64_t count = 1 + below(3);
    for (uint64_t k = 0; k < count; ++k) {
      NodeRef target = buffers_[below(buffers_.size())];
      if (chance(30)) {  // two that change places, or one that moves on
        NodeRef other = leaf(target->shape->dims(), target->dtype);
        assign(target, other);
        assign(other, chance(50) ? target : like(target));
      } else if (chance(40)) {  // a step of its own value
        NodeRef value = is_bool(target->dtype) ? make(Op::Xor, {target, like(target)})
                                               : make(Op::Add, {target, like(target)});
        assign(target, value);
      } else {
        assign(target, like(target));
      }
    }
    return roots;
  }
};

}  // namespace

std::vector<NodeRef> random_graph(uint64_t seed, const RandomGraphOptions& options) {
  return Generator(seed, options).build();
}

int depth(std::span<const NodeRef> roots) {
  NodeMap<int> depths;
  int deepest = 0;
  for (NodeRef node : topological_order(roots)) {
    int below = 0;
    for (NodeRef source : node->tensors())
      if (source->dtype != DType::Index) below = std::max(below, depths[source]);
    depths[node] = below + (node->tensors().empty() ? 0 : 1);
    deepest = std::max(deepest, depths[node]);
  }
  return deepest;
}

}  // namespace anneal
