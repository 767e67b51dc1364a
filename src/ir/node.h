// The one node type: forward, gradients, updates, shapes and index arithmetic are all made of it.
// Nodes are immutable and interned by a Graph, so two handles are equal exactly when the structure
// is.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <anneal/error.h>

#include "base/key.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "ir/scalar.h"

namespace anneal {

struct Node;
struct Origin;
using NodeRef = const Node*;

// An interned list of sizes. A size is a node of dtype index: a constant or an expression over
// Variables.
struct Shape {
  Key key;
  uint32_t rank;
  std::span<const NodeRef> dims() const {
    return {reinterpret_cast<const NodeRef*>(this + 1), rank};
  }
  NodeRef operator[](size_t axis) const { return dims()[axis]; }
};

// An interned list of axes.
struct IntList {
  Key key;
  uint32_t size;
  std::span<const int64_t> values() const {
    return {reinterpret_cast<const int64_t*>(this + 1), size};
  }
};

// An interned name with two numbers: a Variable and its bounds, a Buffer and its slot.
struct Symbol {
  Key key;
  int64_t first, second;
  uint32_t length;
  std::string_view text() const { return {reinterpret_cast<const char*>(this + 1), length}; }
};

// The constant a node carries. Which member is meant follows from the op (ArgKind).
union Arg {
  uint64_t bits = 0;  // Scalar: its payload
  int64_t axis;
  const IntList* axes;
  const Symbol* symbol;

  Arg() = default;
  explicit Arg(const Scalar& scalar) : bits(scalar.bits()) {}
  explicit Arg(int64_t the_axis) : axis(the_axis) {}
  explicit Arg(const IntList* list) : axes(list) {}
  explicit Arg(const Symbol* the_symbol) : symbol(the_symbol) {}
};

struct Node {
  Key key;             // structure alone: orders, names and caches things
  const Shape* shape;  // rank 0 for scalars and index expressions
  Arg arg;
  const Origin* origin;  // the user's line; outside the key; may be null
  uint32_t id;           // dense number in its graph: for side tables, never for order
  uint16_t source_count;
  Op op;
  DType dtype;

  std::span<const NodeRef> sources() const {
    return {reinterpret_cast<const NodeRef*>(this + 1), source_count};
  }
  NodeRef source(size_t i) const { return sources()[i]; }

  // The sources that are tensors, and the index expressions that follow them.
  std::span<const NodeRef> tensors() const {
    const OpInfo& row = info(op);
    return row.tail == Tail::Inputs ? sources() : sources().first(row.sources);
  }
  std::span<const NodeRef> tail() const { return sources().subspan(tensors().size()); }

  size_t rank() const { return shape->rank; }
  NodeRef dim(size_t axis) const { return (*shape)[axis]; }
  std::span<const int64_t> axes() const { return arg.axes->values(); }

  bool is_const() const { return op == Op::Const; }
  Scalar scalar() const { return Scalar::from_bits(dtype, arg.bits); }  // of a Const
  bool is_const_value(double value) const;
};

// The integer of a constant index expression, and whether a node is one.
inline bool is_static(NodeRef index) { return index->op == Op::Const; }
int64_t static_value(NodeRef index);
bool is_static(const Shape& shape);

}  // namespace anneal
