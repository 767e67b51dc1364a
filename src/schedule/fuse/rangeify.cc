#include "schedule/fuse/rangeify.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <unordered_map>

#include <fmt/format.h>

#include "ir/build.h"
#include "ir/index.h"
#include "ir/node_map.h"
#include "rewrite/passes.h"
#include "schedule/fuse/cost.h"
#include "schedule/fuse/recompute_cost.h"
#include "schedule/graph/products.h"
#include "symbolic/bounds.h"
#include "symbolic/index_map.h"
#include "symbolic/limits.h"
#include "symbolic/simplify.h"
#include "target/questions.h"

namespace anneal {
namespace {

// A reduction stays in the kernel of its consumer only where that still has this many rows to work
// on at once, or where all of it is little work.
constexpr double kEnoughRows = 16, kLittleWork = 32768;
// Places that cost more to compute are stored before they are used.
constexpr double kCheapIndex = 0.5;
// A kernel more, in nanoseconds.
constexpr double kLaunchCost = 2000;
// A value that is few operations away from others that several need is computed from those, unless
// all of it together is much.
constexpr double kModerate = 3;
// Values that many kernels compute again for themselves would make scheduling slow.
constexpr size_t kMostUses = 16;
// Sums over elements that are sums themselves, in one kernel: each loop is unrolled for the others.
constexpr int kMostNested = 4;
// Gathers of gathers in one kernel: each place is part of the next one's.
constexpr int kMostPlaces = 8;
// Uses that are compared one by one.
constexpr size_t kFewUses = 16;
// Where groups of threads have a rectangle of a product each, so many results wide, an operand is
// made anew for every one of them. That is for nothing where it is a value of memory, little
// changed.
constexpr double kWidthOfGroup = 128;

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

// A use of a value: where, under which condition, and for which kernel.
struct Use {
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
struct Root {
  NodeRef node;
  int buffer;
  std::vector<Axis> space, all;
  std::vector<NodeRef> nodes = {};
  bool is_product = false, has_rows = false;
};

// The loop of an axis, which belongs to one root alone.
struct Loop {
  NodeRef size = nullptr;
  int depth = 0;  // reductions around it whose elements it is made for
};

struct UseKey {
  int root;
  const Shape* coordinates;
  NodeRef valid;
  friend bool operator==(const UseKey&, const UseKey&) = default;
};

struct UseHash {
  size_t operator()(const UseKey& key) const {
    const uint64_t mixed = key.coordinates->key.low ^ key.valid->key.low * 3;
    return (mixed ^ static_cast<uint64_t>(key.root)) * 0x9e3779b97f4a7c15u >> 16;
  }
};

struct State {
  std::vector<Use> uses = {};
  std::unordered_map<UseKey, int, UseHash> use_numbers = {};  // of them, where they are many
  int root = -1;                                              // where it is stored
  int buffer = -1;  // known before the root when it is asked for early
  bool forced = false;
  bool carries = false;  // holds a reduction of its own size that nothing else uses
  bool expands = false;  // made of a product much larger than its operands: see tile_group.h
  std::vector<size_t> layout =
      {};  // its axes as they lie in memory, the outermost first; empty: in order
};

class Rangeifier {
 public:
  Rangeifier(std::span<const NodeRef> roots, const ScheduleOptions& options)
      : program_(roots.begin(), roots.end()),
        inline_(!is_disabled("inline", options.disabled)),
        groups_make_operands_(makes_operands_in_workgroups(options.capabilities)),
        cost_([this](NodeRef node) { return is_stored(node); },
              [this](NodeRef node) { return users_[node]; }, options.capabilities.flops_per_byte),
        order_(topological_order(roots)) {
    for (NodeRef node : order_)
      if (node->dtype != DType::Index) {
        index_.insert(node, static_cast<int>(states_.size()));
        states_.emplace_back();
      }
  }

  ~Rangeifier() {  // scopes end in the order opposite to that of their beginning
    while (!limits_.empty()) limits_.pop_back();
  }
  Rangeifier(const Rangeifier&) = delete;
  Rangeifier& operator=(const Rangeifier&) = delete;

  Rangified run() {
    place_outputs();
    estimate();
    for (size_t i = order_.size(); i-- > 0;)
      if (order_[i]->dtype != DType::Index) visit(order_[i]);
    for (NodeRef node : order_)
      if (node->dtype != DType::Index) build(node);
    store_roots();
    return std::move(result_);
  }

 private:
  State& state(NodeRef node) { return states_[static_cast<size_t>(*index_.find(node))]; }
  Root& root(int number) { return roots_[static_cast<size_t>(number)]; }
  ScheduleBuffer& buffer(int number) { return result_.buffers[static_cast<size_t>(number)]; }

  // ---- buffers

  int new_buffer(NodeRef node) {
    NodeRef elements = simplify(element_count_expr(node->shape->dims()));
    result_.buffers.push_back({.dtype = node->dtype, .elements = elements});
    return static_cast<int>(result_.buffers.size()) - 1;
  }

  int buffer_of(NodeRef node) {
    State& s = state(node);
    if (s.buffer < 0) {
      s.buffer = new_buffer(node);
      if (node->op == Op::Buffer) buffer(s.buffer).external = node;
    }
    return s.buffer;
  }

  NodeRef load(NodeRef node, const Shape* coordinates, NodeRef valid) {
    const int number = buffer_of(node);
    NodeRef position = position_of(node, coordinates);
    return make(Op::Load, {schedule_buffer_node(number, buffer(number)), position, valid});
  }

  NodeRef position_of(NodeRef node, const Shape* coordinates) {
    std::vector<NodeRef> at(coordinates->dims().begin(), coordinates->dims().end()),
        sizes(node->shape->dims().begin(), node->shape->dims().end());
    const std::vector<size_t>& layout = state(node).layout;
    for (size_t i = 0; i < layout.size(); ++i) {
      at[i] = (*coordinates)[layout[i]];
      sizes[i] = node->dim(layout[i]);
    }
    return simplify(flatten_index(at, sizes));
  }

  // ---- what must be stored

  void force(NodeRef node) {
    if (node->op == Op::Buffer) return;
    state(node).forced = true;
    buffer_of(node);
  }

  void place_outputs() {
    for (NodeRef node : order_) {
      if (node->op == Op::Contiguous) {
        force(node);
        buffer(buffer_of(node)).wanted = true;
        result_.wanted.push_back({node, buffer_of(node)});
      }
      if (node->op == Op::Scatter || node->op == Op::ScatterAdd) force(node);
    }
    for (size_t i = 0; i < program_.size(); ++i) {
      NodeRef node = program_[i];
      NodeRef value = node->op == Op::Assign ? node->source(1) : node;
      force(value);
      const int number = buffer_of(value);
      if (node->op == Op::Assign) {
        const int target = buffer_of(node->source(0));
        result_.assigned.push_back({number, target});
        result_.outputs.push_back(target);
      } else {
        if (!buffer(number).external) buffer(number).output = static_cast<int>(i);
        result_.outputs.push_back(number);
      }
    }
  }

  // ---- estimates

  void estimate() {
    for (NodeRef node : order_)
      for (NodeRef source : node->tensors()) ++users_[source];
    for (NodeRef node : order_) {
      if (node->dtype == DType::Index) continue;
      State& s = state(node);
      s.carries = is_reduce(node->op);
      s.expands = expands(node);
      if (s.carries || node->op == Op::Buffer || s.forced) continue;
      const double elements = element_estimate(*node->shape);
      for (NodeRef source : node->tensors())
        s.carries =
            s.carries || (source->dtype != DType::Index && state(source).carries &&
                          users_[source] == 1 && element_estimate(*source->shape) >= elements);
    }
  }

  // Elements a value is made of, behind movement: those that any of it lets through.
  static double elements_behind(NodeRef node) {
    double elements = element_estimate(*node->shape);
    for (; is_movement(node->op); node = node->source(0))
      elements = std::min(elements, element_estimate(*node->source(0)->shape));
    return elements;
  }

  bool expands(NodeRef node) {
    const double elements = element_estimate(*node->shape);
    if (is_reduce(node->op)) {
      NodeRef product = node->source(0);
      return is_product(node) && product->op == Op::Mul &&
             elements >= elements_behind(product->source(0)) + elements_behind(product->source(1));
    }
    return std::ranges::any_of(node->tensors(), [&](NodeRef source) {
      return source->dtype != DType::Index && state(source).expands &&
             element_estimate(*source->shape) == elements;
    });
  }

  // Whether it surely has memory, or will: see value_stays_inline().
  bool is_stored(NodeRef node) {
    const State& s = state(node);
    return node->op == Op::Buffer || is_reduce(node->op) || s.forced || s.root >= 0 ||
           (s.carries && users_[node] > 1);
  }

  // ---- axes

  Axis new_axis(NodeRef size, int depth = 0) {
    const int64_t most = std::max<int64_t>(1, bounds(size).max);
    NodeRef variable = make_variable(fmt::format("axis{}", axes_++), 0, most - 1);
    if (!is_static(size)) {
      const Limit limit{variable, size};
      limits_.push_back(std::make_unique<LimitScope>(std::span(&limit, 1)));
    }
    axis_loops_[variable] = {size, depth};
    return {variable, size};
  }

  // ---- from the results to the inputs

  int add_use(NodeRef node, int the_root, const Shape* coordinates, NodeRef valid) {
    if (node->dtype == DType::Index) return -1;
    State& s = state(node);
    const int next = static_cast<int>(s.uses.size());
    if (s.uses.size() < kFewUses) {
      for (int i = 0; i < next; ++i) {
        const Use& use = s.uses[static_cast<size_t>(i)];
        if (use.root == the_root && use.coordinates == coordinates && use.valid == valid) return i;
      }
    } else {
      for (size_t i = s.use_numbers.size(); i < s.uses.size(); ++i)
        s.use_numbers.emplace(UseKey{s.uses[i].root, s.uses[i].coordinates, s.uses[i].valid},
                              static_cast<int>(i));
      const auto [known, fresh] = s.use_numbers.emplace(UseKey{the_root, coordinates, valid}, next);
      if (!fresh) return known->second;
    }
    s.uses.push_back({the_root, coordinates, valid});
    return next;
  }

  void visit(NodeRef node) {
    State& s = state(node);
    if (s.uses.empty() && !s.forced) return;
    if (node->op == Op::Buffer) return;
    StoredValue why{node, -1, UnfusedReason::Reuse};
    if (s.forced || !stays_inline(node, s, &why)) {
      if (!s.forced) {
        why.buffer = buffer_of(node);
        result_.stored.push_back(why);
        if (is_reduce(node->op) && !s.expands) s.layout = layout_for(s.uses, node->rank());
      }
      make_root(node);
    } else {
      for (size_t i = 0; i < s.uses.size(); ++i) propagate(node, s.uses[i]);
    }
  }

  // A reduction makes its results in any order; those who turn it get it as they go through it.
  std::vector<size_t> layout_for(std::span<const Use> uses, size_t rank) {
    std::vector<size_t> in_order(rank), common;
    std::iota(in_order.begin(), in_order.end(), size_t{0});
    for (const Use& use : uses) {
      const Root& in = root(use.root);
      if (in.all.size() != in.space.size()) return {};
      std::vector<size_t> innermost(rank, 0),
          layout = in_order;  // the loop that a coordinate needs
      for (size_t axis = 0; axis < rank; ++axis)
        for (size_t loop = 0; loop < in.all.size(); ++loop)
          if (variables_of((*use.coordinates)[axis]).contains(in.all[loop].variable))
            innermost[axis] = loop + 1;
      std::ranges::stable_sort(layout, {}, [&](size_t axis) { return innermost[axis]; });
      if (!common.empty() && layout != common) return {};
      common = layout;
    }
    return common == in_order ? std::vector<size_t>{} : common;
  }

  void make_root(NodeRef node) {
    const int number = static_cast<int>(roots_.size());
    roots_.push_back({node, buffer_of(node), {}, {}});
    state(node).root = number;
    std::vector<NodeRef> coordinates;
    // A scatter writes its own way; this is the walk over what it starts from.
    for (NodeRef dim : node->shape->dims()) {
      if (is_static(dim) && static_value(dim) == 1) {
        coordinates.push_back(index_const(0));
        continue;
      }
      root(number).space.push_back(new_axis(dim));
      coordinates.push_back(root(number).space.back().variable);
    }
    root(number).all = root(number).space;
    own_.resize(roots_.size());
    Use own{number, current_graph().intern_shape(coordinates), true_condition()};
    propagate(node, own);
    own_[static_cast<size_t>(number)].push_back(std::move(own));
    if (node->op == Op::Scatter || node->op == Op::ScatterAdd) propagate_scatter(node, number);
  }

  // The second phase of a scatter: over the places and values.
  void propagate_scatter(NodeRef node, int number) {
    std::vector<NodeRef> coordinates;
    for (NodeRef dim : node->source(1)->shape->dims()) {
      Axis axis = new_axis(dim);
      root(number).all.push_back(axis);
      coordinates.push_back(axis.variable);
    }
    Use use{number, current_graph().intern_shape(coordinates), true_condition()};
    use.place = make(Op::AsIndex, {early_scalar(node->source(1), use.coordinates, use.valid)});
    use.from = {add_use(node->source(2), number, use.coordinates, use.valid)};
    own_[static_cast<size_t>(number)].push_back(std::move(use));
  }

  void propagate(NodeRef node, Use& use) {
    if (!is_movement(node->op) && node->op != Op::Const && node->op != Op::Iota)
      root(use.root).nodes.push_back(node);
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
        use.from.push_back(add_use(source, use.root, use.coordinates, use.valid));
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
  void add_sources(Use& use, std::initializer_list<SourceUse> sources) {
    for (const SourceUse& s : sources)
      use.from.push_back(add_use(s.source, use.root, s.coordinates, s.valid));
  }

  void propagate_reduce(NodeRef node, Use& use) {
    std::vector<NodeRef> coordinates(use.coordinates->dims().begin(),
                                     use.coordinates->dims().end());
    int depth = 1;
    for (NodeRef coordinate : coordinates)
      if (const Loop* loop = axis_loops_.find(coordinate)) depth = std::max(depth, loop->depth + 1);
    for (int64_t axis : node->axes()) {
      const auto i = static_cast<size_t>(axis);
      NodeRef size = node->source(0)->dim(i);
      if (is_static(size) && static_value(size) == 1) continue;
      Axis added = new_axis(size, depth);
      root(use.root).all.push_back(added);
      coordinates[i] = added.variable;
      use.axes.push_back(added.variable);
    }
    add_sources(use, {{node->source(0), coordinates, use.valid}});
    if (is_product(node)) root(use.root).is_product = true;
  }

  void propagate_gather(NodeRef node, Use& use) {
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
    if (is_elementwise(node->op) && !state(node).forced && cost_.of_element(node) < kCheapIndex) {
      std::vector<NodeRef> sources;
      for (NodeRef source : node->tensors())
        sources.push_back(early_scalar(source, coordinates, valid));
      return current_graph().make(node->op, node->dtype, sources, node->arg);
    }
    force(node);
    return load(node, coordinates, valid);
  }

  static NodeRef iota(NodeRef node, const Shape* coordinates) {
    return make_cast((*coordinates)[static_cast<size_t>(node->arg.axis)], node->dtype);
  }

  // ---- decisions

  double evaluations(const Use& use) {
    double count = 1;
    std::vector<NodeRef> counted;
    for (NodeRef coordinate : use.coordinates->dims())
      for (NodeRef variable : variables_of(coordinate).list) {
        const Loop* loop = axis_loops_.find(variable);
        if (!loop || std::ranges::count(counted, variable) > 0) continue;
        counted.push_back(variable);
        count *= size_estimate(loop->size);
      }
    return count;
  }

  bool depends(const Shape& coordinates, NodeRef variable) {
    return std::ranges::any_of(coordinates.dims(),
                               [&](NodeRef c) { return variables_of(c).contains(variable); });
  }

  struct Variables {
    std::vector<NodeRef> list;
    int places = 0;  // that are computed, as a gather's
    bool contains(NodeRef variable) const { return std::ranges::count(list, variable) > 0; }
  };
  const Variables& variables_of(NodeRef expression) {
    if (Variables* known = variables_.find(expression)) return *known;
    Variables found;
    for (NodeRef node : topological_order({&expression, 1}))
      if (node->op == Op::Variable)
        found.list.push_back(node);
      else if (node->op == Op::AsIndex)
        ++found.places;
    return *variables_.insert(expression, std::move(found)).first;
  }

  static bool refuse(StoredValue* why, UnfusedReason reason) {
    why->reason = reason;
    return false;
  }

  bool stays_inline(NodeRef node, const State& s, StoredValue* why) {
    const bool many = s.uses.size() > kMostUses;
    if (is_movement(node->op) || node->op == Op::Const || node->op == Op::Iota ||
        node->op == Op::Assign)
      return !many || node->op != Op::Pad || refuse(why, UnfusedReason::Uses);
    if (!inline_ && !is_cast_of_storage(node)) return refuse(why, UnfusedReason::Disabled);
    if (widens(node)) return !many || refuse(why, UnfusedReason::Uses);
    return is_reduce(node->op) ? reduce_stays_inline(node, s, why)
                               : value_stays_inline(node, s, why);
  }

  // What is stored, if anything is, is the narrow value.
  static bool widens(NodeRef node) {
    return node->op == Op::Cast && byte_size(node->source(0)->dtype) < byte_size(node->dtype);
  }

  // Widening a stored value costs nothing but the load.
  static bool is_cast_of_storage(NodeRef node) {
    return node->op == Op::Cast && node->source(0)->op == Op::Buffer;
  }

  bool value_stays_inline(NodeRef node, const State& s, StoredValue* why) {
    double again = 0;
    const double elements = element_estimate(*node->shape);
    for (const Use& use : s.uses) again += evaluations(use);
    if (node->op == Op::Gather && is_deep(s)) return refuse(why, UnfusedReason::Length);
    if (groups_make_operands_ && times_made_for_products(s, elements) >= 2 &&
        !cost_.is_near_memory(node))
      return refuse(why, UnfusedReason::Product);
    if (s.uses.size() == 1 && again <= elements * 16) return true;
    if (cost_.needs_no_memory(node)) return true;
    const double computed = cost_.of_element(node);
    double stored =
        elements * computed + (elements + again) * cost_.of_memory(node->dtype) + kLaunchCost;
    // Uses in one kernel go over the same rows while they are near; a store would take it apart.
    const bool one_kernel =
        std::ranges::all_of(s.uses, [&](const Use& use) { return use.root == s.uses[0].root; });
    const double near = one_kernel ? 2 : 1;
    stored *= near;
    if (s.carries && s.uses.size() > 1) return refuse(why, UnfusedReason::Reduce);
    if (s.uses.size() <= 4 && computed < kModerate && cost_.is_few_operations(node)) return true;
    if (s.uses.size() > kMostUses) return refuse(why, UnfusedReason::Uses);
    why->cost = {again * computed, stored};
    if (!why->cost.decided()) return true;
    // Of a narrow dtype it is cheap to keep: as wide as f32 it might have been computed again.
    const double narrow = cost_.of_memory(DType::F32) - cost_.of_memory(node->dtype);
    const double as_wide = stored + near * (elements + again) * narrow;
    return refuse(why, why->cost.again <= as_wide ? UnfusedReason::Dtype : UnfusedReason::Reuse);
  }

  // Whether it is wanted at places that are found through many others.
  bool is_deep(const State& s) {
    return std::ranges::any_of(s.uses, [&](const Use& use) {
      return std::ranges::any_of(use.coordinates->dims(), [&](NodeRef coordinate) {
        return variables_of(coordinate).places >= kMostPlaces;
      });
    });
  }

  // How often each element would be made as an operand of products, by groups of threads.
  double times_made_for_products(const State& s, double elements) {
    double times = 0;
    for (const Use& use : s.uses) {
      const Root& in = root(use.root);
      if (!in.is_product) continue;
      bool summed = false;
      double others = 1;
      for (const Axis& axis : in.all) {
        const bool of_result = std::ranges::count(in.space, axis.variable, &Axis::variable) > 0;
        if (depends(*use.coordinates, axis.variable))
          summed = summed || !of_result;
        else if (of_result)
          others *= size_estimate(axis.size);
      }
      if (summed && others > 1)
        times += evaluations(use) / std::max(1.0, elements) * std::max(1.0, others / kWidthOfGroup);
    }
    return times;
  }

  bool reduce_stays_inline(NodeRef node, const State& s, StoredValue* why) {
    const double work = element_estimate(*node->source(0)->shape);
    const double elements = element_estimate(*node->shape);
    if (s.uses.size() > 1) return refuse(why, UnfusedReason::Reduce);
    const Use& use = s.uses[0];
    Root& in = root(use.root);
    if (!is_true(use.valid)) return refuse(why, UnfusedReason::Shape);
    std::vector<NodeRef> rows;
    for (NodeRef coordinate : use.coordinates->dims()) {
      if (is_static(coordinate)) continue;
      const Loop* loop = axis_loops_.find(coordinate);
      if (!loop || std::ranges::count(rows, coordinate) > 0)
        return refuse(why, UnfusedReason::Shape);
      if (loop->depth >= kMostNested) return refuse(why, UnfusedReason::Length);
      rows.push_back(coordinate);
    }
    if (evaluations(use) < elements)
      return refuse(why, UnfusedReason::Shape);  // some are not wanted
    const bool all_space =
        rows.size() == in.space.size() && std::ranges::all_of(rows, [&](NodeRef row) {
          return std::ranges::count(in.space, row, &Axis::variable) > 0;
        });
    const bool product = is_product(node);
    if (product &&
        !(all_space && !in.is_product && !in.has_rows && in.all.size() == in.space.size()))
      return refuse(why, UnfusedReason::Reduce);
    if (in.is_product) return refuse(why, UnfusedReason::Reduce);
    if (all_space) return true;
    if (elements < kEnoughRows && work > kLittleWork) return refuse(why, UnfusedReason::Size);
    // Rows that are never stored need their statistics for themselves.
    if (state(node->source(0)).expands) return refuse(why, UnfusedReason::Size);
    in.has_rows = true;
    return true;
  }

  // ---- scalars, from the inputs to the results

  void build(NodeRef node) {
    State& s = state(node);
    if (s.root >= 0)
      for (Use& own : own_[static_cast<size_t>(s.root)])
        if (!own.scalar) own.scalar = scalar(node, own);
    for (Use& use : s.uses)
      use.scalar = s.root >= 0 || node->op == Op::Buffer ? load(node, use.coordinates, use.valid)
                                                         : scalar(node, use);
  }

  NodeRef source_scalar(NodeRef node, const Use& use, size_t i) {
    NodeRef source = node->source(i);
    if (source->dtype == DType::Index) return source;
    return state(source).uses[static_cast<size_t>(use.from[i])].scalar;
  }

  NodeRef scalar(NodeRef node, const Use& use) {
    auto only = [&](NodeRef source) {
      return state(source).uses[static_cast<size_t>(use.from[0])].scalar;
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

  NodeRef store(Op op, const Root& r, NodeRef position, NodeRef valid, NodeRef value,
                std::span<const NodeRef> axes, size_t parallel) {
    std::vector<NodeRef> sources{schedule_buffer_node(r.buffer, buffer(r.buffer)), position, valid,
                                 value};
    sources.insert(sources.end(), axes.begin(), axes.end());
    return make(op, sources, Arg(static_cast<int64_t>(parallel)));
  }

  void store_roots() {
    // Roots were met from the results on; kernels come the other way round.
    for (size_t i = roots_.size(); i-- > 0;) {
      const Root& r = roots_[i];
      Fragment fragment;
      const Use& own = own_[i][0];
      std::vector<NodeRef> axes;
      for (const Axis& axis : r.space) axes.push_back(axis.variable);
      NodeRef position = position_of(r.node, own.coordinates);
      fragment.phases.push_back(
          {store(Op::Store, r, position, true_condition(), own.scalar, axes, axes.size())});
      if (own_[i].size() > 1) fragment.phases.push_back({scatter_store(r, own_[i][1])});
      fragment.axes = r.all;
      fragment.nodes = r.nodes;
      fragment.is_product = r.is_product;
      fragment.refresh();
      result_.fragments.push_back(std::move(fragment));
    }
  }

  NodeRef scatter_store(const Root& r, const Use& use) {
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
  bool inline_;
  bool groups_make_operands_;
  RecomputeCost cost_;
  std::vector<NodeRef> order_;
  NodeMap<int> index_, users_;
  std::deque<State> states_;
  std::deque<Root> roots_;
  std::deque<std::vector<Use>> own_;  // of each root
  NodeMap<Variables> variables_;
  NodeMap<Loop> axis_loops_;  // by axis
  std::vector<std::unique_ptr<LimitScope>> limits_;
  int axes_ = 0;
  Rangified result_;
};

}  // namespace

NodeRef schedule_buffer_node(int number, const ScheduleBuffer& buffer) {
  return make_buffer("", number, buffer.dtype, {&buffer.elements, 1});
}

Rangified rangeify(std::span<const NodeRef> roots, const ScheduleOptions& options) {
  return Rangeifier(roots, options).run();
}

}  // namespace anneal
