#include "ir/node.h"

#include <algorithm>
#include <cmath>

namespace anneal {

bool Node::is_const_value(double value) const {
  if (op != Op::Const) return false;
  // A number the dtype cannot hold (-1 in u8) is no value of it; -0.0 is not 0.0.
  double mine = scalar().as_double();
  return mine == value && std::signbit(mine) == std::signbit(value);
}

int64_t static_value(NodeRef index) {
  if (index->op != Op::Const) throw InternalError("a symbolic size was taken for a number");
  return static_cast<int64_t>(index->arg.bits);
}

bool is_static(const Shape& shape) {
  return std::all_of(shape.dims().begin(), shape.dims().end(),
                     [](NodeRef dim) { return is_static(dim); });
}

}  // namespace anneal
