// What a kernel computes, before anything is said about how: Store nodes over axes, made of
// scalars.
//
//   %4 = load %0 (i0 * 512 + k0) true      one element of a buffer
//   %9 = sum_over %8 k0                    a reduction over axes
//   store %1 (i0 * 10 + i1) true %9 i0 i1  what becomes of it, for every i0 and i1
//
// Buffers and axes are numbered by where they are first met, so that kernels that do the same are
// the same nodes with the same keys.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace anneal {

// A loop: `variable` runs over 0 <= variable < size. The Variable's own bounds are those of the
// largest size.
struct Axis {
  NodeRef variable;
  NodeRef size;
};

// Rules every body keeps:
// - Stores are Store or StoreAdd nodes. The first `arg.axis` of a store's axes may run in any order
//   and in parallel; those after them run in order, innermost last.
// - A buffer that is stored to is loaded only at the very position of that store (in place), or
// not.
// - No two stores write the same buffer.
// - A position holds wherever its condition does; elsewhere it must not be touched.
struct KernelBody {
  std::vector<NodeRef> buffers;    // Buffer nodes of one flat axis; slot i is parameter i
  std::vector<NodeRef> variables;  // symbolic sizes it needs, ordered by key
  std::vector<Axis> axes;          // every axis of the stores and of the reductions in them
  std::vector<NodeRef> stores;

  // Values that live in fast memory. `tiles` are those of the buffers that have no memory of their
  // own: for each value of `tile_axes`, which every store has as its first axes, they are others,
  // and positions in them do not speak of these axes. Stores then happen in the order of the list,
  // and what one writes to a tile, or at the same position elsewhere, a later one may load.
  std::vector<NodeRef> tile_axes = {}, tiles = {};
  // Neighbouring stores whose first axis after those of the tiles is one of these run through it
  // together: all of them for its first value, then for the next.
  std::vector<NodeRef> block_axes = {};
  // What else would only be added as nothing, and need not be computed: of an axis of tiles those
  // elements outside first..last, as counted from the row, which is the last of tile_axes.
  struct MaskedRange {
    NodeRef axis;
    std::optional<int64_t> first, last;  // row + first <= axis * step .. <= row + last
    int64_t step = 1;
  };
  std::vector<MaskedRange> masked_ranges = {};

  const Axis& axis_of(NodeRef variable) const;
};

// Problems of a body by the rules above; empty when there are none. Passes over bodies may cut a
// store into several, each of which writes elements of its own.
enum class Stores : uint8_t { OneForABuffer, Several };
std::string verify(const KernelBody& body, Stores stores = Stores::OneForABuffer);
// As text IR, with the sizes of the axes.
std::string to_text(const KernelBody& body);

}  // namespace anneal
