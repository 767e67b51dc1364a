// Sorting, by a network of comparisons whose wiring does not depend on the data: log^2 n layers of
// reshape, flip and where. A symbolic axis is sorted at the largest size it can have. Must not sort
// values themselves: it finds indices, and values are read by them, so that gradients follow.
#include <bit>

#include <fmt/format.h>

#include <anneal/tensor.h>

#include "symbolic/bounds.h"
#include "symbolic/prove.h"
#include "tensor/movement.h"

namespace anneal {
namespace {

// Integers in the order of the floats: NaN last, both zeros equal. The bits of positive floats are
// in order; those of negative ones are in reverse, below zero.
Tensor ordered_bits(const Tensor& x) {
  DType dtype = byte_size(x.dtype()) == 1   ? DType::I8
                : byte_size(x.dtype()) == 2 ? DType::I16
                : byte_size(x.dtype()) == 4 ? DType::I32
                                            : DType::I64;
  int64_t all_but_sign = highest(dtype).as_int();
  Tensor bits = bitcast(where(x == 0, 0, x), dtype);
  Tensor ordered = where(bits < 0, bits ^ all_but_sign, bits);
  return where(is_nan(x), all_but_sign, ordered);
}

// Integers in the order wished for. ~k turns the order round, for signed and unsigned alike.
Tensor sort_keys(const Tensor& x, bool descending) {
  Tensor keys = is_float(x.dtype()) ? ordered_bits(x) : is_bool(x.dtype()) ? cast(x, DType::U8) : x;
  return descending ? ~keys : keys;
}

// Keys along an axis whose size is a power of two, and the places they come from. Places are all
// different and break ties, so that the order is strict and the sort stable.
struct Line {
  Tensor keys, places;
  size_t axis;

  // In every block of `width`, orders each element of the first half and its partner in the second:
  // the one at the same distance from the half's beginning, or (mirrored) from the block's end.
  void exchange(int64_t width, bool mirrored) {
    Sizes flat = keys.shape(), blocks = flat;
    auto place = blocks.begin() + static_cast<std::ptrdiff_t>(axis);
    int64_t size = place->value();
    *place = size / width;
    blocks.insert(place + 1, {Dim(2), Dim(width / 2)});
    int64_t half = static_cast<int64_t>(axis) + 1;
    Axes swapped = mirrored ? Axes{half, half + 1} : Axes(half);

    Tensor key = reshape(keys, blocks), from = reshape(places, blocks);
    Tensor other_key = flip(key, swapped), other_from = flip(from, swapped);
    Tensor is_less = (key < other_key) | ((key == other_key) & (from < other_from));
    Tensor is_first = wrap(make_iota(DType::I32, node_of(key)->shape->dims(), half)) == 0;
    Tensor stays = is_less == is_first;
    // Stored: each layer reads the one before twice, which unstored would double with every layer.
    keys = contiguous(reshape(where(stays, key, other_key), flat));
    places = contiguous(reshape(where(stays, from, other_from), flat));
  }

  // Sorted halves make a sorted block: its mirrored halves exchanged leave the smaller ones in
  // front, each half bitonic; exchanges at ever smaller distances sort those.
  void sort() {
    int64_t size = keys.dim(static_cast<int64_t>(axis)).value();
    for (int64_t block = 2; block <= size; block *= 2) {
      exchange(block, /*mirrored=*/true);
      for (int64_t width = block / 2; width >= 2; width /= 2) exchange(width, /*mirrored=*/false);
    }
  }
};

// Places are i32, and so is the size of the line, a power of two.
constexpr int64_t kLongest = int64_t{1} << 30;

// The places of the elements in order.
Tensor sorted_places(NodeRef x, size_t axis, bool descending) {
  NodeRef size = x->dim(axis);
  const int64_t longest = bounds(size).max;
  if (longest > kLongest)
    fail(fmt::format("axis {} of {} has up to {} elements, at most {} can be sorted", axis,
                     shape_text(x), longest, kLongest),
         is_static(size) ? "sort parts of it" : "give its variables smaller bounds");
  const auto line_size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(longest)));
  std::vector<NodeRef> dims = dims_of(x);
  dims[axis] = index_const(longest == 0 ? 0 : line_size);
  std::vector<Padding> padding(x->rank());
  padding[axis].after = Dim(dims[axis]) - Dim(size);
  Tensor keys = pad(sort_keys(wrap(x), descending), padding);
  keys = wrap(reshape_node(node_of(keys), dims));
  Tensor places = wrap(make_iota(DType::I32, dims, static_cast<int64_t>(axis)));
  // Padding has the greatest key and a later place than every element, so it comes last.
  if (dims[axis] != size)
    keys = where(places < wrap(spread(size, DType::I32, dims)), keys,
                 wrap(make_const(highest(keys.dtype()), dims)));
  Line line{keys, places, axis};
  line.sort();
  return wrap(cut(node_of(line.places), axis, index_const(0), size));
}

}  // namespace

// NaN counts as the largest, as in NumPy and PyTorch.
Sorted sort(const Operand& x, int64_t axis, bool descending) {
  CallScope call("sort", x.where());
  NodeRef node = node_of(x);
  size_t along = checked_axis(axis, node->rank());
  Tensor places = sorted_places(node, along, descending);
  return {take_along_axis(x, places, axis), places};
}

Tensor argsort(const Operand& x, int64_t axis, bool descending) {
  CallScope call("argsort", x.where());
  NodeRef node = node_of(x);
  return sorted_places(node, checked_axis(axis, node->rank()), descending);
}

// In order, the largest (or smallest) first.
Sorted topk(const Operand& x, int64_t k, int64_t axis, bool largest) {
  CallScope call("topk", x.where());
  NodeRef node = node_of(x);
  size_t along = checked_axis(axis, node->rank());
  NodeRef size = node->dim(along);
  if (k < 0 || !prove_less_equal(index_const(k), size))
    fail(fmt::format("k is {}, axis {} of {} has {}", k, along, shape_text(node), to_text(size)),
         is_static(size) ? "k goes from 0 to the size of the axis"
                         : "give the variables bounds that leave room for k elements");
  NodeRef places = node_of(sorted_places(node, along, largest));
  Tensor first = wrap(cut(places, along, index_const(0), index_const(k)));
  return {take_along_axis(x, first, axis), first};
}

}  // namespace anneal
