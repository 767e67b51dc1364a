#include "ir/node.h"

#include <algorithm>

namespace anneal {

bool Node::is_const_value(double value) const {
  return op == Op::Const && scalar() == Scalar::of(dtype, value);
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
