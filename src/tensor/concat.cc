// Tensors out of pieces: concat, stack, roll and padding. Must not compute with elements: every bit
// of a piece arrives as it was.
#include <algorithm>

#include <fmt/format.h>

#include <anneal/tensor.h>

#include "symbolic/prove.h"
#include "symbolic/simplify.h"
#include "tensor/movement.h"

namespace anneal {
namespace {

// Of more pieces, as many at a time are joined and stored first: an element is then looked for
// among few, and no kernel holds all of them.
constexpr size_t kMostPieces = 32;

// Pieces one after another. Each is padded to the whole, and a position reads the piece it lies in,
// so that every bit arrives as it was: a sum of padded pieces would turn -0 into 0.
class Joint {
 public:
  Joint(std::span<const NodeRef> pieces, size_t axis) {
    std::vector<NodeRef> dims = dims_of(pieces[0]);
    for (NodeRef piece : pieces) {
      begins_.push_back(total_);
      total_ = simplify(index_add(total_, piece->dim(axis)));
    }
    dims[axis] = total_;
    check_sizes(dims);
    if (pieces.size() > 1) position_ = positions(dims, axis);
    for (size_t i = 0; i < pieces.size(); ++i) {
      std::vector<NodeRef> pairs(2 * dims.size(), index_const(0));
      pairs[2 * axis] = begins_[i];
      pairs[2 * axis + 1] =
          simplify(index_sub(total_, index_add(begins_[i], pieces[i]->dim(axis))));
      padded_.push_back(reshape_node(pad_node(pieces[i], pairs), dims));
    }
  }

  NodeRef node() const { return select(0, padded_.size()); }

 private:
  // What lies in the pieces first..last-1; anything outside them.
  NodeRef select(size_t first, size_t last) const {
    if (last - first == 1) return padded_[first];
    size_t middle = first + (last - first) / 2;
    NodeRef begin = spread(begins_[middle], position_->dtype, position_->shape->dims());
    NodeRef before = make(Op::Lt, {position_, begin});
    return make(Op::Where, {before, select(first, middle), select(middle, last)});
  }

  NodeRef total_ = index_const(0);
  NodeRef position_ = nullptr;
  std::vector<NodeRef> begins_, padded_;
};

void check_padding(const std::vector<Padding>& padding, NodeRef x) {
  if (padding.size() != x->rank())
    fail(fmt::format("{} paddings for {}, which has {} axes", padding.size(), shape_text(x),
                     x->rank()),
         "give one {before, after} an axis, {0, 0} where nothing is added");
  for (size_t axis = 0; axis < padding.size(); ++axis)
    for (NodeRef amount : {node_of(padding[axis].before), node_of(padding[axis].after)})
      check_nonnegative(amount, fmt::format("the padding {} of axis {}", to_text(amount), axis),
                        "use slice() to take elements away");
}

}  // namespace

NodeRef pad_constant(NodeRef x, std::span<const Padding> padding, const Scalar& value) {
  std::vector<NodeRef> pairs, dims;
  for (size_t axis = 0; axis < padding.size(); ++axis) {
    NodeRef before = node_of(padding[axis].before), after = node_of(padding[axis].after);
    pairs.insert(pairs.end(), {before, after});
    dims.push_back(simplify(index_add(index_add(before, x->dim(axis)), after)));
  }
  check_sizes(dims);
  NodeRef padded = reshape_node(pad_node(x, pairs), dims);
  if (value.bits() == 0 || padded == x) return padded;
  NodeRef inside = make_const(DType::Bool, 1, x->shape->dims());
  inside = reshape_node(pad_node(inside, pairs), dims);
  return make(Op::Where, {inside, padded, make_const(value, dims)});
}

namespace {

// What stands before or after an axis in a mode that repeats elements of it.
NodeRef margin(NodeRef x, size_t axis, NodeRef amount, PadMode mode, bool before) {
  NodeRef zero = index_const(0), one = index_const(1), size = x->dim(axis);
  NodeRef needed = mode == PadMode::Reflect     ? simplify(index_add(amount, one))
                   : mode == PadMode::Replicate ? one
                                                : amount;
  if (is_number(amount, 0)) return cut(x, axis, zero, zero);
  if (!prove_less_equal(needed, size))
    fail(fmt::format("to pad axis {} of {} by {} takes {} elements, it {} {}", axis, shape_text(x),
                     to_text(amount), to_text(needed), is_static(size) ? "has" : "may have less of",
                     to_text(size)),
         mode == PadMode::Replicate ? "use PadMode::Constant" : "pad less, or several times");
  NodeRef rest = simplify(index_sub(size, needed));
  if (mode == PadMode::Circular) return cut(x, axis, before ? rest : zero, amount);
  if (mode == PadMode::Reflect) {
    int64_t axes[] = {static_cast<int64_t>(axis)};
    return flip_node(cut(x, axis, before ? one : rest, amount), axes);
  }
  std::vector<NodeRef> dims = dims_of(x);
  dims[axis] = amount;
  return expand_node(cut(x, axis, before ? zero : rest, one), dims);
}

}  // namespace

NodeRef join(std::vector<NodeRef> pieces, size_t axis) {
  NodeRef first = pieces[0];
  std::erase_if(pieces, [&](NodeRef piece) { return is_number(piece->dim(axis), 0); });
  if (pieces.empty()) return first;
  while (pieces.size() > kMostPieces) {
    std::vector<NodeRef> groups;
    for (size_t i = 0; i < pieces.size(); i += kMostPieces) {
      const size_t count = std::min(kMostPieces, pieces.size() - i);
      NodeRef group = Joint(std::span(pieces).subspan(i, count), axis).node();
      groups.push_back(count > 1 ? make(Op::Contiguous, {group}) : group);
    }
    pieces = std::move(groups);
  }
  return Joint(pieces, axis).node();
}

Tensor concat(const std::vector<Tensor>& tensors, int64_t axis, Location where) {
  CallScope call("concat", where);
  if (tensors.empty()) fail("there are no tensors", "give one tensor or more");
  NodeRef first = node_of(tensors[0]);
  if (first->rank() == 0) fail("a scalar has no axis to concatenate along", "use stack()");
  size_t along = checked_axis(axis, first->rank());
  std::vector<DType> dtypes;
  for (const Tensor& tensor : tensors) dtypes.push_back(node_of(tensor)->dtype);
  DType dtype = promote_all(dtypes);
  std::vector<NodeRef> pieces;
  for (size_t i = 0; i < tensors.size(); ++i) {
    NodeRef piece = node_of(tensors[i]);
    std::vector<NodeRef> dims = dims_of(first);
    bool fits = piece->rank() == first->rank();
    if (fits) dims[along] = piece->dim(along);
    for (size_t k = 0; k < dims.size() && fits; ++k) fits = prove_equal(piece->dim(k), dims[k]);
    if (!fits)
      fail(fmt::format("shapes differ beside axis {}: tensor 0 is {}, tensor {} is {}", along,
                       shape_text(first), i, shape_text(piece)),
           "all sizes but that of the axis must be equal");
    pieces.push_back(reshape_node(make_cast(piece, dtype), dims));
  }
  return wrap(join(std::move(pieces), along));
}

Tensor stack(const std::vector<Tensor>& tensors, int64_t axis, Location where) {
  CallScope call("stack", where);
  if (tensors.empty()) fail("there are no tensors", "give one tensor or more");
  NodeRef first = node_of(tensors[0]);
  std::vector<Tensor> pieces;
  for (size_t i = 0; i < tensors.size(); ++i) {
    NodeRef piece = node_of(tensors[i]);
    bool same = piece->rank() == first->rank();
    for (size_t k = 0; k < first->rank() && same; ++k)
      same = prove_equal(piece->dim(k), first->dim(k));
    if (!same)
      fail(fmt::format("shapes differ: tensor 0 is {}, tensor {} is {}", shape_text(first), i,
                       shape_text(piece)),
           "all shapes must be equal; concat() joins along an axis that is there");
    pieces.push_back(unsqueeze(tensors[i], axis));
  }
  return concat(pieces, static_cast<int64_t>(checked_axis(axis, first->rank() + 1)));
}

// What leaves at the end comes back at the beginning.
Tensor roll(const Operand& x, int64_t shift, int64_t axis) {
  CallScope call("roll", x.where());
  NodeRef node = node_of(x), zero = index_const(0);
  size_t along = checked_axis(axis, node->rank());
  NodeRef size = node->dim(along);
  NodeRef divisor = greatest(size, index_const(1));
  NodeRef rolled = simplify(index_mod(index_const(shift), divisor));
  if (is_number(rolled, 0)) return wrap(node);
  NodeRef seam = simplify(index_sub(size, rolled));
  NodeRef whole = join({cut(node, along, seam, rolled), cut(node, along, zero, seam)}, along);
  return wrap(reshape_node(whole, node->shape->dims()));
}

Tensor pad(const Operand& x, const std::vector<Padding>& padding, PadMode mode, Number value) {
  CallScope call("pad", x.where());
  NodeRef node = node_of(x);
  check_padding(padding, node);
  if (mode == PadMode::Constant)
    return wrap(pad_constant(node, padding, scalar_of(value, node->dtype)));
  for (size_t axis = 0; axis < padding.size(); ++axis) {
    NodeRef before = node_of(padding[axis].before), after = node_of(padding[axis].after);
    if (is_number(before, 0) && is_number(after, 0)) continue;
    node =
        join({margin(node, axis, before, mode, true), node, margin(node, axis, after, mode, false)},
             axis);
  }
  return wrap(node);
}

}  // namespace anneal
