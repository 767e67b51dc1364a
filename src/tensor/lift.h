// From the public face to nodes: operands become nodes of one dtype and one shape (NumPy's
// broadcasting, the promotion order of dtypes.def), axes are checked, results are wrapped.
#pragma once

#include <array>
#include <span>
#include <vector>

#include <anneal/tensor.h>

#include "base/call_site.h"
#include "ir/build.h"
#include "ir/index.h"
#include "ir/print.h"

namespace anneal {

inline Tensor wrap(NodeRef node) { return Tensor(node); }
// What a function of creation returns: a value of its own, so that a derivative with respect to it
// sees neither a literal of a library function nor another tensor that was made alike.
inline Tensor wrap_new(NodeRef node) { return wrap(make_named(node)); }

// The node of a tensor of this thread; an error for an empty one or another thread's.
NodeRef node_of(const Tensor& tensor);
NodeRef node_of(const Dim& dim);
std::vector<NodeRef> nodes_of(const Sizes& sizes);
// A number becomes a scalar of its own: bool, i32 or f32.
NodeRef node_of(const Operand& operand);

// Constants of library functions: one node with every equal constant. zeros() and its like are for
// users, who may differentiate with respect to them.
Tensor literal(DType dtype, double value, const Sizes& sizes = {});
Tensor literal_like(const Tensor& x, double value);
Tensor literal_arange(const Dim& stop, DType dtype = DType::I32);
Tensor literal_dim(const Dim& dim, DType dtype);  // a scalar
// x, through which no gradient flows: stop_gradient() without a value of its own.
Tensor gradient_stopped(const Tensor& x);

// Whether the dtype holds the number. A float holds every number, rounded, and a bool whether it
// is 0; an integer holds whole numbers within its bounds, and others without their fraction.
bool fits(const Number& number, DType dtype);
// The number in that dtype; an error where it does not fit.
Scalar scalar_of(const Number& number, DType dtype);

// An error for what no tensor can hold: symbolic sizes, and numbers that are no DType.
void check_storable(DType dtype);

// The dtype in which the operands meet. Numbers do not widen tensors of their kind.
DType meeting_dtype(std::span<const Operand* const> operands);
// Of that dtype, without a change of shape.
NodeRef lift(const Operand& operand, DType dtype);

// An error where `what`, which is the amount, is negative, or is not shown not to be.
void check_nonnegative(NodeRef amount, const std::string& what, const std::string& hint);
// An error for sizes no tensor can have. Called before a node is made of them.
void check_sizes(std::span<const NodeRef> dims);

// The common shape; an error naming both when there is none.
std::vector<NodeRef> broadcast_dims(std::span<const NodeRef> nodes);
NodeRef broadcast_to(NodeRef node, std::span<const NodeRef> dims);

// Both of one dtype and shape. `arithmetic` turns bool into i32.
std::array<NodeRef, 2> meet(const Operand& a, const Operand& b, bool arithmetic = true);
std::array<NodeRef, 2> meet_in(DType dtype, const Operand& a, const Operand& b);
// As a float: integers become f32.
NodeRef as_float(NodeRef node);
// As something that can be added: bool becomes i32.
NodeRef as_number(NodeRef node);

// An axis from 0; an error outside -rank..rank-1.
size_t checked_axis(int64_t axis, size_t rank);
// Increasing and without repetition; every axis for Axes::all.
std::vector<int64_t> checked_axes(const Axes& axes, size_t rank);

// Movement on nodes, with constants kept constants and steps that change nothing left out.
NodeRef reshape_node(NodeRef node, std::span<const NodeRef> dims);
NodeRef expand_node(NodeRef node, std::span<const NodeRef> dims);
NodeRef permute_node(NodeRef node, std::span<const int64_t> axes);
NodeRef pad_node(NodeRef node, std::span<const NodeRef> pairs);     // before, after of each axis
NodeRef shrink_node(NodeRef node, std::span<const NodeRef> pairs);  // begin, end of each axis
NodeRef flip_node(NodeRef node, std::span<const int64_t> axes);
NodeRef reduce_node(Op op, NodeRef node, std::span<const int64_t> axes);  // keeps axes as 1
// Sums of a * b, both broadcast to `dims`; keeps axes as 1. Products of narrow floats are exact in
// f32, are added there and round once.
NodeRef sum_of_products(NodeRef a, NodeRef b, std::span<const NodeRef> dims,
                        std::span<const int64_t> axes);
// Sums over what broadcasting repeated: the way back from broadcast_to.
NodeRef unbroadcast(NodeRef node, std::span<const NodeRef> dims);

std::string text_of(std::span<const NodeRef> dims);  // "[n, 784]"
inline std::string shape_text(NodeRef node) { return to_text(*node->shape); }

}  // namespace anneal
