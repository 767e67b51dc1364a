// What a Tensor knows of itself.
#include <fmt/format.h>

#include <anneal/tensor.h>

#include "tensor/lift.h"

namespace anneal {

Operand::Operand(const Tensor& tensor, Location where) : tensor_(&tensor), where_(where) {}

Operand::Kind Operand::kind() const {
  if (tensor_) return Kind::Tensor;
  switch (number_.kind()) {
    case Number::Kind::Bool: return Kind::Bool;
    case Number::Kind::Int: return Kind::Int;
    case Number::Kind::Float: break;
  }
  return Kind::Float;
}

std::string Number::text() const {
  if (kind_ == Kind::Float) return fmt::format("{}", real_);
  return above_i64_ ? fmt::format("{}", static_cast<uint64_t>(integer_))
                    : fmt::format("{}", integer_);
}

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
