#include "schedule/fuse/rangeify.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "ir/build.h"
#include "ir/index.h"
#include "schedule/cost.h"
#include "schedule/fuse/inline_choice.h"
#include "schedule/fuse/value_uses.h"
#include "schedule/graph/products.h"
#include "symbolic/index_map.h"

namespace anneal {
namespace {

NodeRef true_condition() { return make_const(Scalar::of_int(DType::Bool, 1)); }
bool is_true(NodeRef condition) { return condition->is_const() && condition->arg.bits == 1; }

NodeRef zero_of(DType dtype) { return make_const(Scalar::of_int(dtype, 0)); }

// x where the condition holds, else 0.
NodeRef gated(NodeRef condition, NodeRef x) {
  if (is_true(condition) || (x->op == Op::Load && x->source(2) == condition)) return x;
  return make(Op::Where, {condition, x, zero_of(x->dtype)});
}

NodeRef in_range(NodeRef position, NodeRef size) {
  return make(Op::And, {make(Op::Le, {index_const(0), position}), make(Op::Lt, {position, size})});
}

Op reduce_over_of(Op reduce) {
  switch (reduce) {
    case Op::ReduceSum: return Op::SumOver;
    case Op::ReduceProd: return Op::ProdOver;
    case Op::ReduceMax: return Op::MaxOver;
    default: return Op::MinOver;
  }
}

class Rangeifier {
 public:
  Rangeifier(std::span<const NodeRef> roots, const ScheduleOptions& options)
      : program_(roots.begin(), roots.end()), values_(roots), choice_(values_, options) {}

  Rangified run() {
    place_outputs();
    choice_.estimate();
    for (size_t i = values_.order().size(); i-- > 0;)
      if (values_.order()[i]->dtype != DType::Index) visit(values_.order()[i]);
    for (NodeRef node : values_.order())
      if (node->dtype != DType::Index) build(node);
    store_roots();
    return std::move(values_.result());
  }

 private:
  void place_outputs() {
    for (NodeRef node : values_.order()) {
      if (node->op == Op::Contiguous) {
        values_.force(node);
        values_.buffer(values_.buffer_of(node)).wanted = true;
        values_.result().wanted.push_back({node, values_.buffer_of(node)});
      }
      if (node->op == Op::Scatter || node->op == Op::ScatterAdd) values_.force(node);
    }
    for (size_t i = 0; i < program_.size(); ++i) {
      NodeRef node = program_[i];
      NodeRef value = node->op == Op::Assign ? node->source(1) : node;
      values_.force(value);
      const int number = values_.buffer_of(value);
      if (node->op == Op::Assign) {
        const int target = values_.buffer_of(node->source(0));
        values_.result().assigned.push_back({number, target});
        values_.result().outputs.push_back(target);
      } else {
        if (!values_.buffer(number).external) values_.buffer(number).output = static_cast<int>(i);
        values_.result().outputs.push_back(number);
      }
    }
  }

  // ---- from the results to the inputs

  void visit(NodeRef node) {
    ValueState& s = values_.state(node);
    if (s.uses.empty() && !s.forced) return;
    if (node->op == Op::Buffer) return;
    StoredValue why{node, -1, UnfusedReason::Reuse};
    if (s.forced || !choice_.stays_inline(node, s, &why)) {
      if (!s.forced) {
        why.buffer = values_.buffer_of(node);
        values_.result().stored.push_back(why);
        if (is_reduce(node->op) && !s.expands) s.layout = layout_for(s.uses, node->rank());
      }
      make_root(node);
    } else {
      for (size_t i = 0; i < s.uses.size(); ++i) propagate(node, s.uses[i]);
    }
  }

  // A reduction makes its results in any order; those who turn it get it as they go through it.
  std::vector<size_t> layout_for(std::span<const ValueUse> uses, size_t rank) {
    std::vector<size_t> in_order(rank), common;
    std::iota(in_order.begin(), in_order.end(), size_t{0});
    for (const ValueUse& use : uses) {
      const KernelRoot& in = values_.root(use.root);
      if (in.all.size() != in.space.size()) return {};
      std::vector<size_t> innermost(rank, 0),
          layout = in_order;  // the loop that a coordinate needs
      for (size_t axis = 0; axis < rank; ++axis)
        for (size_t loop = 0; loop < in.all.size(); ++loop)
          if (values_.variables_of((*use.coordinates)[axis]).contains(in.all[loop].variable))
            innermost[axis] = loop + 1;
      std::ranges::stable_sort(layout, {}, [&](size_t axis) { return innermost[axis]; });
      if (!common.empty() && layout != common) return {};
      common = layout;
    }
    return common == in_order ? std::vector<size_t>{} : common;
  }

  void make_root(NodeRef node) {
    const int number = static_cast<int>(values_.roots().size());
    values_.roots().push_back({node, values_.buffer_of(node), {}, {}});
    values_.state(node).root = number;
    std::vector<NodeRef> coordinates;
    // A scatter writes its own way; this is the walk over what it starts from.
    for (NodeRef dim : node->shape->dims()) {
      if (is_static(dim) && static_value(dim) == 1) {
        coordinates.push_back(index_const(0));
        continue;
      }
      values_.root(number).space.push_back(values_.new_axis(dim));
      coordinates.push_back(values_.root(number).space.back().variable);
    }
    values_.root(number).all = values_.root(number).space;
    own_.resize(values_.roots().size());
    ValueUse own{number, current_graph().intern_shape(coordinates), true_condition()};
    propagate(node, own);
    own_[static_cast<size_t>(number)].push_back(std::move(own));
    if (node->op == Op::Scatter || node->op == Op::ScatterAdd) propagate_scatter(node, number);
  }

  // The second phase of a scatter: over the places and values.
  void propagate_scatter(NodeRef node, int number) {
    std::vector<NodeRef> coordinates;
    for (NodeRef dim : node->source(1)->shape->dims()) {
      Axis axis = values_.new_axis(dim);
      values_.root(number).all.push_back(axis);
      coordinates.push_back(axis.variable);
    }
    ValueUse use{number, current_graph().intern_shape(coordinates), true_condition()};
    use.place = make(Op::AsIndex, {early_scalar(node->source(1), use.coordinates, use.valid)});
    use.from = {values_.add_use(node->source(2), number, use.coordinates, use.valid)};
    own_[static_cast<size_t>(number)].push_back(std::move(use));
  }

  void propagate(NodeRef node, ValueUse& use) {
    if (!is_movement(node->op) && node->op != Op::Const && node->op != Op::Iota)
      values_.root(use.root).nodes.push_back(node);
    if (is_movement(node->op)) {
      IndexMap map = through(
          node, {{use.coordinates->dims().begin(), use.coordinates->dims().end()}, use.valid});
      use.valid_inside = map.valid;
      add_sources(use, {{node->source(0), map.coordinates, map.valid}});
    } else if (is_reduce(node->op)) {
      propagate_reduce(node, use);
    } else if (node->op == Op::Gather) {
      propagate_gather(node, use);
    } else if (node->op == Op::Assign) {
      add_sources(use, {{node->source(1), use.coordinates, use.valid}});
    } else if (node->op == Op::Contiguous || node->op == Op::Scatter ||
               node->op == Op::ScatterAdd) {
      add_sources(use, {{node->source(0), use.coordinates, use.valid}});
    } else {
      for (NodeRef source : node->tensors())
        use.from.push_back(values_.add_use(source, use.root, use.coordinates, use.valid));
    }
  }

  struct SourceUse {
    NodeRef source;
    const Shape* coordinates;
    NodeRef valid;
    SourceUse(NodeRef s, const Shape* c, NodeRef v) : source(s), coordinates(c), valid(v) {}
    SourceUse(NodeRef s, std::span<const NodeRef> c, NodeRef v)
        : SourceUse(s, current_graph().intern_shape(c), v) {}
  };
  void add_sources(ValueUse& use, std::initializer_list<SourceUse> sources) {
    for (const SourceUse& s : sources)
      use.from.push_back(values_.add_use(s.source, use.root, s.coordinates, s.valid));
  }

  void propagate_reduce(NodeRef node, ValueUse& use) {
    std::vector<NodeRef> coordinates(use.coordinates->dims().begin(),
                                     use.coordinates->dims().end());
    int depth = 1;
    for (NodeRef coordinate : coordinates)
      if (const KernelLoop* loop = values_.loop_of(coordinate))
        depth = std::max(depth, loop->depth + 1);
    for (int64_t axis : node->axes()) {
      const auto i = static_cast<size_t>(axis);
      NodeRef size = node->source(0)->dim(i);
      if (is_static(size) && static_value(size) == 1) continue;
      Axis added = values_.new_axis(size, depth);
      values_.root(use.root).all.push_back(added);
      coordinates[i] = added.variable;
      use.axes.push_back(added.variable);
    }
    add_sources(use, {{node->source(0), coordinates, use.valid}});
    if (is_product(node)) values_.root(use.root).is_product = true;
  }

  void propagate_gather(NodeRef node, ValueUse& use) {
    NodeRef index = node->source(1);
    NodeRef place = make(Op::AsIndex, {early_scalar(index, use.coordinates, use.valid)});
    const auto axis = static_cast<size_t>(node->arg.axis);
    std::vector<NodeRef> coordinates(use.coordinates->dims().begin(),
                                     use.coordinates->dims().end());
    coordinates[axis] = place;
    use.valid_inside = make(Op::And, {use.valid, in_range(place, node->source(0)->dim(axis))});
    if (is_true(use.valid)) use.valid_inside = use.valid_inside->source(1);
    add_sources(use, {{node->source(0), coordinates, use.valid_inside}});
  }

  // The scalar of a value that coordinates depend on, before the walk has reached it. What is not
  // simply computed is stored.
  NodeRef early_scalar(NodeRef node, const Shape* coordinates, NodeRef valid) {
    std::vector<NodeRef> gates;  // of pads on the way
    for (; is_movement(node->op); node = node->source(0)) {
      IndexMap map =
          through(node, {{coordinates->dims().begin(), coordinates->dims().end()}, valid});
      coordinates = current_graph().intern_shape(map.coordinates);
      valid = map.valid;
      if (node->op == Op::Pad) gates.push_back(valid);
    }
    NodeRef scalar = early_value(node, coordinates, valid);
    for (size_t i = gates.size(); i-- > 0;) scalar = gated(gates[i], scalar);
    return scalar;
  }

  NodeRef early_value(NodeRef node, const Shape* coordinates, NodeRef valid) {
    if (node->dtype == DType::Index) return node;
    if (node->op == Op::Const) return make_const(node->scalar());
    if (node->op == Op::Iota) return iota(node, coordinates);
    if (is_elementwise(node->op) && !values_.state(node).forced &&
        choice_.cost_of_element(node) < kCheapPlace) {
      std::vector<NodeRef> sources;
      for (NodeRef source : node->tensors())
        sources.push_back(early_scalar(source, coordinates, valid));
      return current_graph().make(node->op, node->dtype, sources, node->arg);
    }
    values_.force(node);
    return values_.load(node, coordinates, valid);
  }

  static NodeRef iota(NodeRef node, const Shape* coordinates) {
    return make_cast((*coordinates)[static_cast<size_t>(node->arg.axis)], node->dtype);
  }

  // ---- scalars, from the inputs to the results

  void build(NodeRef node) {
    ValueState& s = values_.state(node);
    if (s.root >= 0)
      for (ValueUse& own : own_[static_cast<size_t>(s.root)])
        if (!own.scalar) own.scalar = scalar(node, own);
    for (ValueUse& use : s.uses)
      use.scalar = s.root >= 0 || node->op == Op::Buffer
                       ? values_.load(node, use.coordinates, use.valid)
                       : scalar(node, use);
  }

  NodeRef source_scalar(NodeRef node, const ValueUse& use, size_t i) {
    NodeRef source = node->source(i);
    if (source->dtype == DType::Index) return source;
    return values_.state(source).uses[static_cast<size_t>(use.from[i])].scalar;
  }

  NodeRef scalar(NodeRef node, const ValueUse& use) {
    auto only = [&](NodeRef source) {
      return values_.state(source).uses[static_cast<size_t>(use.from[0])].scalar;
    };
    switch (node->op) {
      case Op::Const: return make_const(node->scalar());
      case Op::Iota: return iota(node, use.coordinates);
      case Op::Pad:
      case Op::Gather: return gated(use.valid_inside, only(node->source(0)));
      case Op::Assign: return only(node->source(1));
      case Op::Contiguous: return only(node->source(0));
      case Op::Scatter:
      case Op::ScatterAdd: return only(node->source(use.place ? 2 : 0));
      default: break;
    }
    if (is_movement(node->op)) return only(node->source(0));
    if (is_reduce(node->op)) {
      std::vector<NodeRef> sources{only(node->source(0))};
      if (use.axes.empty()) return sources[0];
      sources.insert(sources.end(), use.axes.begin(), use.axes.end());
      return make(reduce_over_of(node->op), sources);
    }
    std::vector<NodeRef> sources;
    for (size_t i = 0; i < node->tensors().size(); ++i)
      sources.push_back(source_scalar(node, use, i));
    return current_graph().make(node->op, node->dtype, sources, node->arg);
  }

  // ---- fragments

  NodeRef store(Op op, const KernelRoot& r, NodeRef position, NodeRef valid, NodeRef value,
                std::span<const NodeRef> axes, size_t parallel) {
    std::vector<NodeRef> sources{schedule_buffer_node(r.buffer, values_.buffer(r.buffer)), position,
                                 valid, value};
    sources.insert(sources.end(), axes.begin(), axes.end());
    return make(op, sources, Arg(static_cast<int64_t>(parallel)));
  }

  void store_roots() {
    // Roots were met from the results on; kernels come the other way round.
    for (size_t i = values_.roots().size(); i-- > 0;) {
      const KernelRoot& r = values_.roots()[i];
      Fragment fragment;
      const ValueUse& own = own_[i][0];
      std::vector<NodeRef> axes;
      for (const Axis& axis : r.space) axes.push_back(axis.variable);
      NodeRef position = values_.position_of(r.node, own.coordinates);
      fragment.phases.push_back(
          {store(Op::Store, r, position, true_condition(), own.scalar, axes, axes.size())});
      if (own_[i].size() > 1) fragment.phases.push_back({scatter_store(r, own_[i][1])});
      fragment.axes = r.all;
      fragment.nodes = r.nodes;
      fragment.is_product = r.is_product;
      fragment.refresh();
      values_.result().fragments.push_back(std::move(fragment));
    }
  }

  NodeRef scatter_store(const KernelRoot& r, const ValueUse& use) {
    const auto axis = static_cast<size_t>(r.node->arg.axis);
    std::vector<NodeRef> coordinates(use.coordinates->dims().begin(),
                                     use.coordinates->dims().end());
    std::vector<NodeRef> axes = coordinates;
    std::rotate(axes.begin() + static_cast<std::ptrdiff_t>(axis),
                axes.begin() + static_cast<std::ptrdiff_t>(axis) + 1, axes.end());
    coordinates[axis] = use.place;
    NodeRef position = flatten_index(coordinates, r.node->shape->dims());
    NodeRef valid = in_range(use.place, r.node->dim(axis));
    return store(r.node->op == Op::Scatter ? Op::Store : Op::StoreAdd, r, position, valid,
                 use.scalar, axes, axes.size() - 1);
  }

  std::vector<NodeRef> program_;
  ValueUses values_;
  InlineChoice choice_;
  std::deque<std::vector<ValueUse>> own_;  // of each root
};

}  // namespace

NodeRef schedule_buffer_node(int number, const ScheduleBuffer& buffer) {
  return make_buffer("", number, buffer.dtype, {&buffer.elements, 1});
}

Rangified rangeify(std::span<const NodeRef> roots, const ScheduleOptions& options) {
  return Rangeifier(roots, options).run();
}

}  // namespace anneal
