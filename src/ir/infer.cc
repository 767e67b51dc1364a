#include "ir/infer.h"

#include <optional>

#include <fmt/format.h>

#include "base/checked.h"
#include "ir/index.h"
#include "ir/print.h"

namespace anneal {
namespace {

uint8_t class_of(DType dtype) {
  if (dtype == DType::Index) return kIndexClass;
  if (is_bool(dtype)) return kBoolClass;
  return is_float(dtype) ? kFloatClass : kIntClass;
}

struct Inference {
  Graph& graph;
  Op op;
  DType dtype;
  std::span<const NodeRef> sources;
  Arg arg;
  const Shape* shape = nullptr;
  std::string error = {};

  const OpInfo& row() const { return info(op); }
  NodeRef source(size_t i) const { return sources[i]; }
  std::span<const NodeRef> tail() const { return sources.subspan(row().sources); }
  void reject(std::string message) {
    if (error.empty()) error = std::move(message);
  }

  void check_arity() {
    size_t n = sources.size(), wanted = row().sources;
    bool open = row().tail == Tail::Dims || row().tail == Tail::Inputs;
    size_t exact = row().tail == Tail::Pairs && n > 0 ? 1 + 2 * source(0)->rank() : wanted;
    if (open ? n < wanted : n != exact) reject(fmt::format("has {} sources, needs {}", n, exact));
    if (n > Limits::kSources)
      reject(fmt::format("has {} sources, at most {}", n, Limits::kSources));
  }

  // Positions are indices, conditions bools; the value stored is what the buffer holds.
  void check_access() {
    if (source(0)->op != Op::Buffer) return reject("needs a buffer");
    if (source(1)->dtype != DType::Index) return reject("its position is no index");
    if (!is_bool(source(2)->dtype)) return reject("its condition is no bool");
    if (op != Op::Load && source(3)->dtype != source(0)->dtype)
      return reject(fmt::format("stores {} in {}", name(source(3)->dtype), name(source(0)->dtype)));
    if (op != Op::Load && (arg.axis < 0 || arg.axis > static_cast<int64_t>(tail().size())))
      return reject(fmt::format("{} of {} axes", arg.axis, tail().size()));
    for (size_t i = 1; i < row().sources; ++i)
      if (source(i)->rank() != 0) reject("needs scalars");
    check_axis_variables();
  }

  void check_axis_variables() {
    if (row().tail != Tail::Inputs) return;
    for (NodeRef axis : tail())
      if (axis->op != Op::Variable) reject("an axis is no variable");
  }

  void check_dtypes() {
    if (op == Op::Load || op == Op::Store || op == Op::StoreAdd) return check_access();
    if (is_reduce_over(op)) check_axis_variables();
    if (is_reduce_over(op) && source(0)->rank() != 0) reject("needs a scalar");
    for (size_t i = 0; i < row().sources; ++i) {
      bool selector = op == Op::Where && i == 0;
      bool places = row().shape >= ShapeRule::Gather && i == 1;
      uint8_t accepts = selector ? kBoolClass : places ? kIntClass : row().accepts;
      if (!(class_of(source(i)->dtype) & accepts))
        reject(fmt::format("source {} cannot be {}", i, name(source(i)->dtype)));
      // All sources agree, but for a selector and the places of an indexed access.
      size_t like = op == Op::Where ? 1 : 0;
      if (!selector && !places && source(i)->dtype != source(like)->dtype)
        reject(fmt::format("sources are {} and {}", name(source(like)->dtype),
                           name(source(i)->dtype)));
    }
    if (row().tail == Tail::Dims || row().tail == Tail::Pairs)
      for (NodeRef size : tail())
        if (size->dtype != DType::Index) reject(fmt::format("a size is {}", name(size->dtype)));
    if (row().type == TypeRule::Given && op != Op::Cast && op != Op::Bitcast &&
        !(class_of(dtype) & row().accepts))
      reject(fmt::format("cannot be {}", name(dtype)));
    if (op == Op::Cast && dtype == DType::Index) reject("cannot make an index");
    if (op == Op::Bitcast &&
        (dtype == DType::Index || is_bool(dtype) != is_bool(source(0)->dtype) ||
         byte_size(dtype) != byte_size(source(0)->dtype)))
      reject(fmt::format("{} cannot be read as {}", name(source(0)->dtype), name(dtype)));
    if (op == Op::AsIndex && source(0)->rank() != 0) reject("needs a scalar");
    if (op == Op::Threefry && dtype != DType::U32) reject("needs u32");
  }

  void check_arg() {
    if (row().arg == ArgKind::Symbol && !arg.symbol) reject("needs a name");
    if (row().arg == ArgKind::Axes && !arg.axes) reject("needs axes");
    if (op == Op::Variable && arg.symbol && arg.symbol->first > arg.symbol->second)
      reject(fmt::format("bounds are {} and {}", arg.symbol->first, arg.symbol->second));
  }

  void set_dims(std::span<const NodeRef> dims) {
    if (dims.size() > Limits::kRank)
      return reject(fmt::format("rank is {}, at most {}", dims.size(), Limits::kRank));
    int64_t elements = 1;
    for (NodeRef dim : dims) {
      // Constants are folded unless the result does not fit.
      if ((dim->op == Op::Add || dim->op == Op::Mul) && is_static(dim->source(0)) &&
          is_static(dim->source(1)))
        return reject("a size does not fit 64 bits");
      if (!is_static(dim)) continue;
      int64_t size = static_value(dim);
      if (size < 0) return reject(fmt::format("a size is {}", size));
      std::optional<int64_t> product = checked_mul(elements, size == 0 ? 1 : size);
      if (!product) return reject("has more elements than 64 bits can count");
      elements = *product;
    }
    shape = graph.intern_shape(dims);
  }

  // Axes of a reduction or flip: increasing and within the rank.
  void check_axes(size_t rank) {
    int64_t previous = -1;
    for (int64_t axis : arg.axes->values()) {
      if (axis <= previous || axis >= static_cast<int64_t>(rank))
        reject(fmt::format("axes are not increasing below rank {}", rank));
      previous = axis;
    }
  }

  void check_axis(size_t rank) {
    if (arg.axis < 0 || arg.axis >= static_cast<int64_t>(rank))
      reject(fmt::format("axis is {}, rank is {}", arg.axis, rank));
  }

  // `part` and `whole` agree on every axis but the indexed one.
  void check_beside_axis(NodeRef part, NodeRef whole) {
    if (part->rank() != whole->rank())
      return reject(fmt::format("ranks are {} and {}", part->rank(), whole->rank()));
    check_axis(whole->rank());
    for (size_t axis = 0; axis < whole->rank(); ++axis)
      if (static_cast<int64_t>(axis) != arg.axis && part->dim(axis) != whole->dim(axis))
        reject(fmt::format("shapes are {} and {}", to_text(*part->shape), to_text(*whole->shape)));
  }

  void run() {
    check_arity();
    if (error.empty()) check_dtypes();
    if (error.empty()) check_arg();
    if (error.empty()) infer();
    if (error.empty() && dtype == DType::Index && shape->rank != 0) reject("an index is a scalar");
  }

  void infer() {
    switch (row().shape) {
      case ShapeRule::Point: return set_dims({});
      case ShapeRule::Elementwise: return elementwise();
      case ShapeRule::Tail: return from_tail();
      case ShapeRule::Reduce: return reduce();
      case ShapeRule::Permute: return permute();
      case ShapeRule::Expand: return expand();
      case ShapeRule::Pad:
      case ShapeRule::Shrink: return pairs();
      case ShapeRule::First: return first();
      case ShapeRule::Gather:
        check_beside_axis(source(1), source(0));
        shape = source(1)->shape;
        return;
      case ShapeRule::Scatter:
        check_beside_axis(source(1), source(0));
        if (source(1)->shape != source(2)->shape)
          reject(fmt::format("places are {}, values {}", to_text(*source(1)->shape),
                             to_text(*source(2)->shape)));
        shape = source(0)->shape;
        return;
    }
  }

  void elementwise() {
    shape = source(0)->shape;
    for (NodeRef s : sources)
      if (s->shape != shape)
        reject(fmt::format("shapes are {} and {}", to_text(*shape), to_text(*s->shape)));
  }

  void from_tail() {
    set_dims(tail());
    if (!error.empty()) return;
    if (op == Op::Iota) check_axis(shape->rank);
    if (op == Op::Reshape && is_static(*shape) && is_static(*source(0)->shape) &&
        element_count(*shape) != element_count(*source(0)->shape))
      reject(fmt::format("{} and {} differ in size", to_text(*source(0)->shape), to_text(*shape)));
  }

  void reduce() {
    check_axes(source(0)->rank());
    if (!error.empty()) return;
    std::vector<NodeRef> dims(source(0)->shape->dims().begin(), source(0)->shape->dims().end());
    for (int64_t axis : arg.axes->values()) dims[static_cast<size_t>(axis)] = index_const(1);
    set_dims(dims);
  }

  void permute() {
    size_t rank = source(0)->rank();
    std::vector<NodeRef> dims(rank, nullptr);
    std::vector<bool> seen(rank, false);
    std::span<const int64_t> axes = arg.axes->values();
    if (axes.size() != rank) return reject(fmt::format("{} axes for rank {}", axes.size(), rank));
    for (size_t i = 0; i < rank; ++i) {
      if (axes[i] < 0 || axes[i] >= static_cast<int64_t>(rank) ||
          seen[static_cast<size_t>(axes[i])])
        return reject("axes are not a permutation");
      seen[static_cast<size_t>(axes[i])] = true;
      dims[i] = source(0)->dim(static_cast<size_t>(axes[i]));
    }
    set_dims(dims);
  }

  void expand() {
    if (tail().size() != source(0)->rank())
      return reject(fmt::format("rank is {}, sizes are {}", source(0)->rank(), tail().size()));
    for (size_t axis = 0; axis < tail().size(); ++axis) {
      NodeRef from = source(0)->dim(axis);
      bool one = is_static(from) && static_value(from) == 1;
      if (!one && from != tail()[axis])
        return reject(fmt::format("axis {} is {}, not 1", axis, to_text(from)));
    }
    set_dims(tail());
  }

  void pairs() {
    size_t rank = source(0)->rank();
    std::vector<NodeRef> dims(rank);
    for (size_t axis = 0; axis < rank; ++axis) {
      NodeRef low = tail()[2 * axis], high = tail()[2 * axis + 1], size = source(0)->dim(axis);
      if (is_static(low) && static_value(low) < 0) return reject("begins below zero");
      if (op == Op::Pad) {
        if (is_static(high) && static_value(high) < 0) return reject("pads a negative amount");
        dims[axis] = index_add(index_add(low, size), high);
      } else {
        if (is_static(high) && is_static(size) && static_value(high) > static_value(size))
          return reject(fmt::format("ends at {} of {}", static_value(high), static_value(size)));
        dims[axis] = index_sub(high, low);
      }
    }
    set_dims(dims);
  }

  void first() {
    shape = source(0)->shape;
    if (op == Op::Flip) check_axes(shape->rank);
    if (op == Op::Assign && source(0)->op != Op::Buffer) reject("writes to what is not a buffer");
    if (op == Op::Assign && source(1)->shape != shape)
      reject(fmt::format("stores {} in {}", to_text(*source(1)->shape), to_text(*shape)));
  }
};

}  // namespace

bool accepts(const OpInfo& row, DType dtype) { return class_of(dtype) & row.accepts; }

DType infer_dtype(Op op, DType given, std::span<const NodeRef> sources) {
  switch (info(op).type) {
    case TypeRule::Given: return given;
    case TypeRule::Index: return DType::Index;
    case TypeRule::Bool: return DType::Bool;
    case TypeRule::Select: return sources.size() > 1 && sources[1] ? sources[1]->dtype : given;
    case TypeRule::Same:
    case TypeRule::First: return !sources.empty() && sources[0] ? sources[0]->dtype : given;
  }
  return given;
}

const Shape* infer_plain_elementwise(Op op, std::span<const NodeRef> sources) {
  const OpInfo& row = info(op);
  bool plain = row.shape == ShapeRule::Elementwise && sources.size() == row.sources &&
               (row.type == TypeRule::Same || row.type == TypeRule::Bool) && op != Op::Threefry;
  if (!plain || !accepts(row, sources[0]->dtype)) return nullptr;
  for (NodeRef source : sources)
    if (source->shape != sources[0]->shape || source->dtype != sources[0]->dtype) return nullptr;
  return sources[0]->shape;
}

std::string infer_shape(Graph& graph, Op op, DType dtype, std::span<const NodeRef> sources, Arg arg,
                        const Shape** shape) {
  GraphScope scope(graph);  // the sizes of a result are nodes of its own graph
  Inference inference{graph, op, dtype, sources, arg};
  inference.run();
  *shape = inference.shape;
  return inference.error;
}

}  // namespace anneal
