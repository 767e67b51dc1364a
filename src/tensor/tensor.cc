// What a Tensor knows of itself.
#include <fmt/format.h>

#include <anneal/tensor.h>

#include "tensor/lift.h"

namespace anneal {

Operand::Operand(const Tensor& tensor, Location where)
    : kind_(Kind::Tensor), tensor_(&tensor), where_(where) {}

DType Tensor::dtype() const { return node_of(*this)->dtype; }

Sizes Tensor::shape() const {
  Sizes sizes;
  for (NodeRef dim : node_of(*this)->shape->dims()) sizes.emplace_back(Dim(dim));
  return sizes;
}

size_t Tensor::rank() const { return node_of(*this)->rank(); }

Dim Tensor::dim(int64_t axis, Location where) const {
  CallScope call("dim", where);
  NodeRef node = node_of(*this);
  return Dim(node->dim(checked_axis(axis, node->rank())));
}

Dim Tensor::size() const { return Dim(element_count_expr(node_of(*this)->shape->dims())); }

std::string Tensor::name() const {
  NodeRef node = node_of(*this);
  const bool has_name = node->op == Op::Buffer || node->op == Op::Named;
  return has_name ? std::string(node->arg.symbol->text()) : "";
}

Tensor& Tensor::operator+=(const Operand& y) & { return *this = Operand(*this, y.where()) + y; }
Tensor& Tensor::operator-=(const Operand& y) & { return *this = Operand(*this, y.where()) - y; }
Tensor& Tensor::operator*=(const Operand& y) & { return *this = Operand(*this, y.where()) * y; }
Tensor& Tensor::operator/=(const Operand& y) & { return *this = Operand(*this, y.where()) / y; }
Tensor& Tensor::operator%=(const Operand& y) & { return *this = Operand(*this, y.where()) % y; }
Tensor& Tensor::operator&=(const Operand& y) & { return *this = Operand(*this, y.where()) & y; }
Tensor& Tensor::operator|=(const Operand& y) & { return *this = Operand(*this, y.where()) | y; }
Tensor& Tensor::operator^=(const Operand& y) & { return *this = Operand(*this, y.where()) ^ y; }
Tensor& Tensor::operator<<=(const Operand& y) & { return *this = Operand(*this, y.where()) << y; }
Tensor& Tensor::operator>>=(const Operand& y) & { return *this = Operand(*this, y.where()) >> y; }

Tensor Tensor::cast(DType dtype, Location where) const {
  return anneal::cast(Operand(*this, where), dtype);
}

}  // namespace anneal
