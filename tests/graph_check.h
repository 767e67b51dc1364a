// Runs a program of nodes twice and compares: contents of its buffers, bindings of its sizes, and
// how far a right result may be from the interpreter's.
// Must not know how a device works.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/interpreter.h"

namespace anneal {

// Numbers for the Variables of a program.
using SizeBinding = std::map<NodeRef, int64_t>;

// The least sizes, the greatest, and one in between; a single empty one when all are static.
std::vector<SizeBinding> size_bindings(std::span<const NodeRef> roots);

// Contents of buffers, drawn from the grid their name tells of (value_info.h).
class GraphContents {
 public:
  explicit GraphContents(SizeBinding sizes) : sizes_(std::move(sizes)) {}

  int64_t size(NodeRef expression) const;
  const Value& value(NodeRef buffer);
  Environment environment();

 private:
  SizeBinding sizes_;
  std::map<NodeRef, Value> values_;
};

// For each root an f64 node that bounds how far any faithful way to compute it is from the
// interpreter's: roundings are propagated through each op, decisions on inexact values give
// infinity. Null: every way gives the same. In the current graph.
std::vector<NodeRef> error_bounds(std::span<const NodeRef> roots);

// What is expected of the roots: the interpreter's values and the bounds.
struct Expectation {
  std::vector<Value> values;
  std::vector<Value> errors;  // empty payload: exact
};
Expectation expect(std::span<const NodeRef> roots, GraphContents& contents);

// Where `got` is not what is expected, in words; empty when it is. NaN passes only where NaN is
// expected.
std::string difference(const Value& got, const Value& expected, const Value& error);

}  // namespace anneal
