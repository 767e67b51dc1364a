// Whether what two nodes of one op say besides their sources is the same. Not by the bits of Arg:
// where addresses have 32 bits, what stands above one says nothing.
#pragma once

#include "ir/node.h"
#include "ir/op.h"

namespace anneal {

// Of nodes of one graph, whose lists and symbols are interned.
inline bool same_arg(Op op, Arg a, Arg b) {
  switch (info(op).arg) {
    case ArgKind::None: return true;
    case ArgKind::Scalar: return a.bits == b.bits;
    case ArgKind::Axis: return a.axis == b.axis;
    case ArgKind::Axes: return a.axes == b.axes;
    case ArgKind::Symbol: return a.symbol == b.symbol;
  }
  return false;
}

}  // namespace anneal
