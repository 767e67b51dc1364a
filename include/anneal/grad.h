// Derivatives. Both modes are tables of rules over the graph (src/transform); what they give is
// graph again, so gradients of gradients work to any order.
//
// A trap: equal expressions are one node. After a = exp(p), b = exp(p) a derivative with respect to
// a is one with respect to b too, and a function that changes nothing (a reshape to the same sizes)
// answers its argument. What zeros(), rand() and other functions of creation return is a value of
// its own, and so is what tensor(), parameter(), stop_gradient(), realize() and named() return.
#pragma once

#include <functional>

#include <anneal/tensor.h>

namespace anneal {

struct GradOptions {
  Tensor seed = {};           // gradient of the result; ones for a scalar when left out
  bool allow_unused = false;  // zeros instead of an error for what the loss does not depend on
};

// Reverse mode: the gradient of `loss` with respect to each of `inputs`, which may be any tensors.
std::vector<Tensor> grad(const Operand& loss, const std::vector<Tensor>& inputs,
                         const GradOptions& options = {});

// Forward mode: how `outputs` change when each input moves along its tangent.
std::vector<Tensor> jvp(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& tangents, Location where = Location::current());

// x, as a value of its own, which derivatives tell from every other tensor: with a = named(exp(p))
// and b = named(exp(p)), grad(sum(a * b), {a}) is b. What is computed from it must be built from
// the result. The name, where given, is for reports. It costs nothing when the program runs.
Tensor named(const Operand& x, std::string_view name = {});

// x, for which gradients are taken to be zero. A value of its own.
Tensor stop_gradient(const Operand& x);

// `value`, whose gradient with respect to `inputs` is what `backward` makes of the gradient of
// `value`: one tensor an input. What computed `value` is not differentiated in reverse mode.
using Backward = std::function<std::vector<Tensor>(const Tensor& gradient)>;
Tensor custom_gradient(const Operand& value, const std::vector<Tensor>& inputs, Backward backward);

}  // namespace anneal
