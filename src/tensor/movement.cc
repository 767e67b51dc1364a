// Movement that keeps every element, as users write it. Sizes and axes are checked here; what
// remains is reshape, permute, expand and flip. Must not compute with elements.
#include "tensor/movement.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include <anneal/tensor.h>

#include "base/checked.h"
#include "ir/infer.h"
#include "symbolic/bounds.h"
#include "symbolic/prove.h"
#include "symbolic/simplify.h"

namespace anneal {

NodeRef least(NodeRef a, NodeRef b) {
  if (prove_less_equal(a, b)) return a;
  if (prove_less_equal(b, a)) return b;
  return simplify(make(Op::Min, {a, b}));
}

NodeRef greatest(NodeRef a, NodeRef b) {
  if (prove_less_equal(a, b)) return b;
  if (prove_less_equal(b, a)) return a;
  return simplify(make(Op::Max, {a, b}));
}

NodeRef positions(std::span<const NodeRef> dims, size_t axis) {
  bool narrow = bounds(dims[axis]).max <= std::numeric_limits<int32_t>::max();
  return make_iota(narrow ? DType::I32 : DType::I64, dims, static_cast<int64_t>(axis));
}

NodeRef spread(NodeRef index, DType dtype, std::span<const NodeRef> dims) {
  NodeRef scalar = is_static(index) ? make_const(Scalar::of_int(dtype, static_value(index)))
                                    : make_cast(index, dtype);
  return broadcast_to(scalar, dims);
}

NodeRef cut(NodeRef node, size_t axis, NodeRef begin, NodeRef count) {
  std::vector<NodeRef> pairs, dims = dims_of(node);
  for (NodeRef dim : dims) pairs.insert(pairs.end(), {index_const(0), dim});
  pairs[2 * axis] = begin;
  pairs[2 * axis + 1] = simplify(index_add(begin, count));
  dims[axis] = count;
  return reshape_node(shrink_node(node, pairs), dims);
}

namespace {

struct Products {
  NodeRef left, right;
};

void add_factors(NodeRef size, int64_t& constant, std::vector<NodeRef>& factors, NodeRef& rest) {
  std::vector<NodeRef> stack{size};
  while (!stack.empty()) {
    NodeRef top = stack.back();
    stack.pop_back();
    std::optional<int64_t> product =
        is_static(top) ? checked_mul(constant, static_value(top)) : std::nullopt;
    if (product)
      constant = *product;
    else if (is_static(top))
      rest = index_mul(rest, top);  // too large to count: left as it is written
    else if (top->op == Op::Mul)
      stack.insert(stack.end(), {top->source(0), top->source(1)});
    else
      factors.push_back(top);
  }
}

// Two products without the symbolic factors they share: of n * 784 and 28 * n remain 784 and 28,
// also where n can be 0.
Products without_shared_factors(std::span<const NodeRef> left, std::span<const NodeRef> right) {
  struct Side {
    int64_t constant = 1;
    std::vector<NodeRef> factors = {};
    NodeRef rest = index_const(1);
  } a, b;
  for (NodeRef size : left) add_factors(size, a.constant, a.factors, a.rest);
  for (NodeRef size : right) add_factors(size, b.constant, b.factors, b.rest);
  std::erase_if(a.factors, [&](NodeRef factor) {
    auto twin = std::find(b.factors.begin(), b.factors.end(), factor);
    if (twin == b.factors.end()) return false;
    b.factors.erase(twin);
    return true;
  });
  auto product = [](const Side& side) {
    NodeRef symbolic = element_count_expr(side.factors);
    return simplify(index_mul(index_mul(symbolic, index_const(side.constant)), side.rest));
  };
  return {product(a), product(b)};
}

[[noreturn]] void fail_reshape(NodeRef from, std::span<const NodeRef> dims) {
  NodeRef count = simplify(element_count_expr(from->shape->dims()));
  const NodeRef wanted = simplify(element_count_expr(dims));
  const bool known = is_static(count) && is_static(wanted);
  fail(fmt::format("{} cannot become {}: {} elements {}", shape_text(from), text_of(dims),
                   to_text(count),
                   known ? "do not fill it" : "are not shown to fill it for every binding"),
       fmt::format("the sizes must multiply to {}; one of them may be -1", to_text(count)));
}

// The size that -1 stands for.
NodeRef inferred_size(NodeRef from, std::span<const NodeRef> dims, const Products& elements) {
  if (is_number(elements.right, 0))
    fail(fmt::format("-1 in {} could be any size, as another size is 0", text_of(dims)),
         "write the size instead of -1");
  NodeRef size = simplify(index_floor_div(elements.left, elements.right));
  if (!prove_equal(index_mul(size, elements.right), elements.left)) fail_reshape(from, dims);
  return size;
}

// x on one side of a diagonal and 0 on the other.
Tensor triangle(NodeRef x, int64_t diagonal, bool lower) {
  if (x->rank() < 2)
    fail(fmt::format("{} has no rows and columns", shape_text(x)), "a matrix has two axes or more");
  std::span<const NodeRef> dims = x->shape->dims();
  size_t rank = dims.size();
  // Rows and columns differ by less than 2^30, so a diagonal beyond that is as good as there.
  constexpr int64_t kNarrow = int64_t{1} << 30;
  bool narrow = std::max(bounds(dims[rank - 2]).max, bounds(dims[rank - 1]).max) <= kNarrow;
  int64_t most = narrow ? kNarrow : kFar;
  DType dtype = narrow ? DType::I32 : DType::I64;
  NodeRef row = make_iota(dtype, dims, static_cast<int64_t>(rank) - 2);
  NodeRef column = make_iota(dtype, dims, static_cast<int64_t>(rank) - 1);
  NodeRef limit = spread(index_const(std::clamp(diagonal, -most, most)), dtype, dims);
  NodeRef offset = make(Op::Add, {column, make(Op::Neg, {row})});
  NodeRef keep = lower ? make(Op::Le, {offset, limit}) : make(Op::Le, {limit, offset});
  return wrap(make(Op::Where, {keep, x, make_const_like(x, 0)}));
}

}  // namespace

Tensor reshape(const Operand& x, const Sizes& sizes) {
  CallScope call("reshape", x.where());
  NodeRef node = node_of(x);
  std::vector<NodeRef> dims = nodes_of(sizes), known;
  size_t open = dims.size();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!is_number(dims[i], -1)) {
      known.push_back(dims[i]);
    } else if (open == dims.size()) {
      open = i;
    } else {
      fail(fmt::format("two sizes of {} are -1", text_of(dims)), "only one size can be inferred");
    }
  }
  check_sizes(known);
  Products elements = without_shared_factors(node->shape->dims(), known);
  if (open != dims.size())
    dims[open] = inferred_size(node, dims, elements);
  else if (!prove_equal(elements.left, elements.right))
    fail_reshape(node, dims);
  return wrap(reshape_node(node, dims));
}

Tensor permute(const Operand& x, const std::vector<int64_t>& axes) {
  CallScope call("permute", x.where());
  NodeRef node = node_of(x);
  if (axes.size() != node->rank())
    fail(fmt::format("{} axes for {}, which has {}", axes.size(), shape_text(node), node->rank()),
         "name every axis once, in the new order");
  checked_axes(Axes(axes), node->rank());
  std::vector<int64_t> order;
  for (int64_t axis : axes) order.push_back(static_cast<int64_t>(checked_axis(axis, node->rank())));
  return wrap(permute_node(node, order));
}

Tensor transpose(const Operand& x, int64_t a, int64_t b) {
  CallScope call("transpose", x.where());
  NodeRef node = node_of(x);
  std::vector<int64_t> order = checked_axes(Axes(), node->rank());
  size_t first = checked_axis(a, node->rank()), second = checked_axis(b, node->rank());
  std::swap(order[first], order[second]);
  return wrap(permute_node(node, order));
}

Tensor expand(const Operand& x, const Sizes& sizes) {
  CallScope call("expand", x.where());
  NodeRef node = node_of(x);
  std::vector<NodeRef> dims = nodes_of(sizes);
  if (dims.size() < node->rank())
    fail(fmt::format("{} has {} axes, {} has only {}", shape_text(node), node->rank(),
                     text_of(dims), dims.size()),
         "give a size for every axis; -1 keeps one as it is");
  size_t added = dims.size() - node->rank();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i < added && is_number(dims[i], -1))
      fail(fmt::format("-1 keeps a size, but axis {} of {} is new", i, text_of(dims)),
           "write the size of a new axis");
    if (i < added) continue;
    NodeRef size = node->dim(i - added);
    if (is_number(dims[i], -1)) dims[i] = size;
    if (!is_number(size, 1) && !prove_equal(size, dims[i]))
      fail(fmt::format("{} cannot become {}: axis {} is {}, not 1", shape_text(node), text_of(dims),
                       i - added, to_text(size)),
           "only axes of size 1 expand; repeat() and tile() repeat larger ones");
  }
  check_sizes(dims);
  return wrap(broadcast_to(node, dims));
}

Tensor flip(const Operand& x, const Axes& axes) {
  CallScope call("flip", x.where());
  NodeRef node = node_of(x);
  return wrap(flip_node(node, checked_axes(axes, node->rank())));
}

Tensor squeeze(const Operand& x, const Axes& axes) {
  CallScope call("squeeze", x.where());
  NodeRef node = node_of(x);
  std::vector<int64_t> chosen = checked_axes(axes, node->rank());
  std::vector<NodeRef> dims;
  for (size_t axis = 0; axis < node->rank(); ++axis) {
    bool named = std::binary_search(chosen.begin(), chosen.end(), static_cast<int64_t>(axis));
    bool one = is_number(node->dim(axis), 1);
    if (named && !one && !axes.is_all())
      fail(fmt::format("axis {} of {} is {}, not 1", axis, shape_text(node),
                       to_text(node->dim(axis))),
           "only axes of size 1 can go; without axes all of those do");
    if (!named || !one) dims.push_back(node->dim(axis));
  }
  return wrap(reshape_node(node, dims));
}

Tensor unsqueeze(const Operand& x, int64_t axis) {
  CallScope call("unsqueeze", x.where());
  NodeRef node = node_of(x);
  std::vector<NodeRef> dims = dims_of(node);
  size_t place = checked_axis(axis, dims.size() + 1);
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(place), index_const(1));
  check_sizes(dims);
  return wrap(reshape_node(node, dims));
}

// A scalar becomes one element.
Tensor flatten(const Operand& x, int64_t begin, int64_t end) {
  CallScope call("flatten", x.where());
  NodeRef node = node_of(x);
  size_t rank = std::max<size_t>(node->rank(), 1);
  size_t first = checked_axis(begin, rank), last = checked_axis(end, rank);
  if (first > last)
    fail(fmt::format("axis {} comes after axis {}", first, last), "name the first axis first");
  std::span<const NodeRef> dims = node->shape->dims();
  if (dims.empty()) return wrap(reshape_node(node, std::array{index_const(1)}));
  std::vector<NodeRef> joined(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(first));
  joined.push_back(simplify(element_count_expr(dims.subspan(first, last - first + 1))));
  joined.insert(joined.end(), dims.begin() + static_cast<std::ptrdiff_t>(last) + 1, dims.end());
  return wrap(reshape_node(node, joined));
}

Tensor repeat(const Operand& x, int64_t count, int64_t axis) {
  CallScope call("repeat", x.where());
  NodeRef node = node_of(x);
  size_t along = checked_axis(axis, node->rank());
  if (count < 0) fail(fmt::format("{} repetitions", count), "repeat 0 times or more");
  std::vector<NodeRef> rows = dims_of(node), dims = rows;
  dims[along] = simplify(index_mul(dims[along], index_const(count)));
  check_sizes(dims);
  auto after = rows.begin() + static_cast<std::ptrdiff_t>(along) + 1;
  after = rows.insert(after, index_const(1));
  NodeRef column = reshape_node(node, rows);
  *after = index_const(count);
  check_sizes(rows);
  return wrap(reshape_node(expand_node(column, rows), dims));
}

// As NumPy: missing counts are 1, and go in front as new axes do.
Tensor tile(const Operand& x, const std::vector<int64_t>& counts) {
  CallScope call("tile", x.where());
  NodeRef node = node_of(x);
  size_t rank = std::max(node->rank(), counts.size());
  std::vector<NodeRef> from, to, dims;
  for (size_t axis = 0; axis < rank; ++axis) {
    size_t without_size = rank - node->rank(), without_count = rank - counts.size();
    NodeRef size = axis < without_size ? index_const(1) : node->dim(axis - without_size);
    int64_t count = axis < without_count ? 1 : counts[axis - without_count];
    if (count < 0)
      fail(fmt::format("{} repetitions of axis {}", count, axis), "repeat 0 times or more");
    if (count != 1) {
      from.push_back(index_const(1));
      to.push_back(index_const(count));
    }
    from.push_back(size);
    to.push_back(size);
    dims.push_back(simplify(index_mul(size, index_const(count))));
  }
  check_sizes(dims);
  check_sizes(to);
  return wrap(reshape_node(expand_node(reshape_node(node, from), to), dims));
}

Tensor tril(const Operand& x, int64_t diagonal) {
  CallScope call("tril", x.where());
  return triangle(node_of(x), diagonal, /*lower=*/true);
}

Tensor triu(const Operand& x, int64_t diagonal) {
  CallScope call("triu", x.where());
  return triangle(node_of(x), diagonal, /*lower=*/false);
}

// ---- methods

Tensor Tensor::reshape(const Sizes& sizes, Location where) const {
  return anneal::reshape(Operand(*this, where), sizes);
}
Tensor Tensor::permute(const std::vector<int64_t>& axes, Location where) const {
  return anneal::permute(Operand(*this, where), axes);
}
Tensor Tensor::transpose(int64_t a, int64_t b, Location where) const {
  return anneal::transpose(Operand(*this, where), a, b);
}
Tensor Tensor::expand(const Sizes& sizes, Location where) const {
  return anneal::expand(Operand(*this, where), sizes);
}
Tensor Tensor::flatten(int64_t begin, int64_t end, Location where) const {
  return anneal::flatten(Operand(*this, where), begin, end);
}
Tensor Tensor::squeeze(const Axes& axes, Location where) const {
  return anneal::squeeze(Operand(*this, where), axes);
}
Tensor Tensor::unsqueeze(int64_t axis, Location where) const {
  return anneal::unsqueeze(Operand(*this, where), axis);
}

}  // namespace anneal
