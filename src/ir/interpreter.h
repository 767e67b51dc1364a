// The oracle: evaluates any tensor graph, symbolic ones too. What it answers is the definition of
// every op. Floats are computed in f64 and rounded once to the node's dtype; sums run in f64 and
// round at the end; integers are exact and wrap. It is written to be right, not fast.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace anneal {

// A tensor in the interpreter: one 8-byte payload an element (see Scalar::bits).
struct Value {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<uint64_t> payload;

  int64_t size() const { return static_cast<int64_t>(payload.size()); }
  Scalar at(int64_t i) const { return Scalar::from_bits(dtype, payload[static_cast<size_t>(i)]); }
  double as_double(int64_t i) const { return at(i).as_double(); }
};

Value to_value(const Storage& storage);
Storage to_storage(const Value& value);
void write_elements(const Value& value, std::byte* to);  // in the dtype's own format

// What a graph does not say: the numbers behind Variables and the contents of Buffers.
struct Environment {
  std::function<int64_t(NodeRef variable)> variable;
  std::function<const Value*(NodeRef buffer)> buffer;  // null: unknown
  // A value known before, for any node (null: compute it). Optional.
  std::function<const Value*(NodeRef node)> known;
};

// Values of the roots. An Assign yields its value; storing it is the caller's.
// Division by a zero that is visible in an index expression, an unbound variable, an unknown buffer
// and a size that does not fit are errors (UserError by fail()).
std::vector<Value> interpret(std::span<const NodeRef> roots, const Environment& environment);

// The integer an index expression stands for.
int64_t interpret_index(NodeRef expression, const std::function<int64_t(NodeRef)>& variable);

}  // namespace anneal
