// What can be said of a node's values before they are computed: bounds, and whether every right way
// to compute them gives the same bits. Random programs keep to what this calls tame.
// Must not evaluate anything.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"
#include "ir/node_map.h"

namespace anneal {

struct ValueInfo {
  double low = 0, high = 0;
  // Multiples of 2^step, all of which the dtype holds: sums in any order, products that are rounded
  // later and casts that are left out change nothing.
  bool exact = false;
  int step = 0;
  bool no_negative_zero = false;
  // It and all it is made of stay moderate; decisions (comparisons, roundings, casts to integers)
  // rest on exact values only, and no divisor comes near zero.
  bool tame = false;

  double magnitude() const;
};

// Whether every multiple of 2^step up to `magnitude` is a value of the dtype.
bool holds(DType dtype, int step, double magnitude);

// The contents of a buffer follow from its name: "x3:-256..256/64" holds multiples of 1/64 between
// -4 and 4.
struct Grid {
  int64_t low = 0, high = 0;  // in units of 1/denominator
  int64_t denominator = 1;    // a power of two

  double first() const { return static_cast<double>(low) / static_cast<double>(denominator); }
  double last() const { return static_cast<double>(high) / static_cast<double>(denominator); }
};
std::string buffer_name(std::string_view prefix, const Grid& grid);
Grid grid_of(NodeRef buffer);  // 0..1 where the name says nothing

class ValueInfos {
 public:
  ValueInfo operator[](NodeRef node);

 private:
  NodeMap<ValueInfo> known_;
};

}  // namespace anneal
