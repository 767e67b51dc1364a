// A row is a name and a call, and the call that is shown is the one that runs: a new function needs
// one line here. What is an op itself (exp, gather) is explained as such.
#include "cli/inspect/functions.h"

#include <algorithm>

#include <anneal/functional.h>
#include <anneal/grad.h>

#include "ir/graph.h"

namespace anneal::cli {
namespace {

// What the calls are made with.
struct Inputs {
  Tensor x = input("x", {2, 3}), y = input("y", {2, 3}), m = input("m", {3, 4}),
         s = input("s", {3, 3}), v = input("v", {3}), u = input("u", {3}), w = input("w", {4, 3}),
         c = input("c", {4}), mu = input("mu", {4}), sigma = input("sigma", {4});
  Tensor line = input("line", {1, 2, 8}), image = input("image", {1, 4, 6, 6}),
         volume = input("volume", {1, 2, 4, 4, 4});
  Tensor k1 = input("k1", {4, 2, 3}), k2 = input("k2", {4, 4, 3, 3}),
         k3 = input("k3", {4, 2, 3, 3, 3}), t1 = input("t1", {2, 4, 3}),
         t2 = input("t2", {4, 2, 3, 3}), t3 = input("t3", {2, 4, 3, 3, 3});
  Tensor mask = input("mask", {2, 3}, DType::Bool), i = input("i", {2, 3}, DType::I32),
         labels = input("labels", {2}, DType::I32);
};

#define ANNEAL_FUNCTION(name, ...)                   \
  {#name, #__VA_ARGS__, []() -> Tensor {             \
     struct Call : Inputs {                          \
       Tensor result() const { return __VA_ARGS__; } \
     };                                              \
     return Call().result();                         \
   }}

std::vector<Tensor> inputs_of(const Tensor& result) {
  const NodeRef root = result.node();
  std::vector<Tensor> inputs;
  for (NodeRef node : topological_order({&root, 1}))
    if (node->op == Op::Buffer) inputs.emplace_back(node);
  return inputs;
}

}  // namespace

FunctionExample example_of(const FunctionRow& row) {
  FunctionExample example{row.build(), {}, {}};
  example.inputs = inputs_of(example.result);
  std::vector<Tensor> wanted;
  for (const Tensor& each : example.inputs)
    if (is_float(each.dtype())) wanted.push_back(each);
  if (!is_float(example.result.dtype()) || wanted.empty()) return example;
  const Tensor g = input("g", example.result.shape(), example.result.dtype());
  example.gradients = grad(example.result, wanted, {.seed = g, .allow_unused = true});
  return example;
}

const std::vector<FunctionRow>& functions() {
  static const std::vector<FunctionRow> rows{
      // Activations
      ANNEAL_FUNCTION(relu, relu(x)),
      ANNEAL_FUNCTION(leaky_relu, leaky_relu(x, 0.01)),
      ANNEAL_FUNCTION(elu, elu(x)),
      ANNEAL_FUNCTION(gelu, gelu(x)),
      ANNEAL_FUNCTION(gelu_tanh, gelu_tanh(x)),
      ANNEAL_FUNCTION(sigmoid, sigmoid(x)),
      ANNEAL_FUNCTION(silu, silu(x)),
      ANNEAL_FUNCTION(softplus, softplus(x)),
      ANNEAL_FUNCTION(hardswish, hardswish(x)),
      ANNEAL_FUNCTION(mish, mish(x)),
      ANNEAL_FUNCTION(softmax, softmax(x)),
      ANNEAL_FUNCTION(log_softmax, log_softmax(x)),
      // Normalisation
      ANNEAL_FUNCTION(layer_norm, layer_norm(x, 1, v, u)),
      ANNEAL_FUNCTION(rms_norm, rms_norm(x, v)),
      ANNEAL_FUNCTION(group_norm, group_norm(image, 2, c, mu)),
      ANNEAL_FUNCTION(batch_norm, batch_norm(image, mu, sigma, c, {})),
      // Products, convolutions and pooling
      ANNEAL_FUNCTION(matmul, matmul(x, m)),
      ANNEAL_FUNCTION(linear, matmul(x, transpose(w)) + c),
      ANNEAL_FUNCTION(dot, dot(v, u)),
      ANNEAL_FUNCTION(outer, outer(v, u)),
      ANNEAL_FUNCTION(einsum, einsum("ij,jk->ik", {x, m})),
      ANNEAL_FUNCTION(conv1d, conv1d(line, k1)),
      ANNEAL_FUNCTION(conv2d, conv2d(image, k2, c, {.padding = {1}})),
      ANNEAL_FUNCTION(conv3d, conv3d(volume, k3)),
      ANNEAL_FUNCTION(conv_transpose1d, conv_transpose1d(line, t1)),
      ANNEAL_FUNCTION(conv_transpose2d, conv_transpose2d(image, t2)),
      ANNEAL_FUNCTION(conv_transpose3d, conv_transpose3d(volume, t3)),
      ANNEAL_FUNCTION(max_pool, max_pool(image, {2, 2})),
      ANNEAL_FUNCTION(avg_pool, avg_pool(image, {2, 2})),
      ANNEAL_FUNCTION(adaptive_avg_pool, adaptive_avg_pool(image, {2, 2})),
      ANNEAL_FUNCTION(adaptive_max_pool, adaptive_max_pool(image, {2, 2})),
      ANNEAL_FUNCTION(unfold, unfold(image, {2, 2})),
      ANNEAL_FUNCTION(interpolate, interpolate(image, {.size = {12, 12}})),
      // Losses
      ANNEAL_FUNCTION(cross_entropy, cross_entropy(x, labels)),
      ANNEAL_FUNCTION(nll_loss, nll_loss(x, labels)),
      ANNEAL_FUNCTION(mse_loss, mse_loss(x, y)),
      ANNEAL_FUNCTION(bce_with_logits, bce_with_logits(x, y)),
      ANNEAL_FUNCTION(l1_loss, l1_loss(x, y)),
      ANNEAL_FUNCTION(huber_loss, huber_loss(x, y)),
      ANNEAL_FUNCTION(smooth_l1_loss, smooth_l1_loss(x, y)),
      ANNEAL_FUNCTION(kl_div, kl_div(x, y)),
      ANNEAL_FUNCTION(hinge_loss, hinge_loss(x, y)),
      ANNEAL_FUNCTION(hinge_embedding_loss, hinge_embedding_loss(x, y)),
      // Elementwise
      ANNEAL_FUNCTION(floor_divide, floor_divide(x, y)),
      ANNEAL_FUNCTION(maximum, maximum(x, y)),
      ANNEAL_FUNCTION(minimum, minimum(x, y)),
      ANNEAL_FUNCTION(clamp, clamp(x, -1, 1)),
      ANNEAL_FUNCTION(sign, sign(x)),
      ANNEAL_FUNCTION(tan, tan(x)),
      ANNEAL_FUNCTION(asin, asin(x)),
      ANNEAL_FUNCTION(acos, acos(x)),
      ANNEAL_FUNCTION(atan, atan(x)),
      ANNEAL_FUNCTION(acosh, acosh(x)),
      ANNEAL_FUNCTION(atanh, atanh(x)),
      ANNEAL_FUNCTION(logaddexp, logaddexp(x, y)),
      ANNEAL_FUNCTION(rsqrt, rsqrt(x)),
      ANNEAL_FUNCTION(reciprocal, reciprocal(x)),
      ANNEAL_FUNCTION(square, square(x)),
      ANNEAL_FUNCTION(is_nan, is_nan(x)),
      ANNEAL_FUNCTION(is_inf, is_inf(x)),
      ANNEAL_FUNCTION(is_finite, is_finite(x)),
      // Reductions
      ANNEAL_FUNCTION(sum, sum(x, 1)),
      ANNEAL_FUNCTION(prod, prod(x, 1)),
      ANNEAL_FUNCTION(mean, mean(x, 1)),
      ANNEAL_FUNCTION(var, var(x, 1)),
      ANNEAL_FUNCTION(stddev, stddev(x, 1)),
      ANNEAL_FUNCTION(any, any(mask, 1)),
      ANNEAL_FUNCTION(all, all(mask, 1)),
      ANNEAL_FUNCTION(argmax, argmax(x)),
      ANNEAL_FUNCTION(argmin, argmin(x)),
      ANNEAL_FUNCTION(logsumexp, logsumexp(x, 1)),
      ANNEAL_FUNCTION(cumsum, cumsum(x)),
      ANNEAL_FUNCTION(cumprod, cumprod(x)),
      ANNEAL_FUNCTION(cummax, cummax(x)),
      ANNEAL_FUNCTION(cummin, cummin(x)),
      ANNEAL_FUNCTION(diff, diff(x)),
      ANNEAL_FUNCTION(norm, norm(x)),
      ANNEAL_FUNCTION(median, median(x, 1)),
      ANNEAL_FUNCTION(quantile, quantile(x, 0.25, 1)),
      ANNEAL_FUNCTION(sort, sort(x).values),
      ANNEAL_FUNCTION(argsort, argsort(x)),
      ANNEAL_FUNCTION(topk, topk(x, 2).values),
      // Movement
      ANNEAL_FUNCTION(transpose, transpose(x)),
      ANNEAL_FUNCTION(slice, slice(x, {{}, {.begin = 1}})),
      ANNEAL_FUNCTION(squeeze, squeeze(line)),
      ANNEAL_FUNCTION(unsqueeze, unsqueeze(x, 0)),
      ANNEAL_FUNCTION(flatten, flatten(x)),
      ANNEAL_FUNCTION(split, split(m, {1, 2})[1]),
      ANNEAL_FUNCTION(chunk, chunk(x, 2)[1]),
      ANNEAL_FUNCTION(concat, concat({x, y})),
      ANNEAL_FUNCTION(stack, stack({x, y})),
      ANNEAL_FUNCTION(repeat, repeat(x, 2, 1)),
      ANNEAL_FUNCTION(tile, tile(x, {1, 2})),
      ANNEAL_FUNCTION(roll, roll(x, 1, 1)),
      ANNEAL_FUNCTION(tril, tril(s)),
      ANNEAL_FUNCTION(triu, triu(s)),
      ANNEAL_FUNCTION(diagonal, diagonal(s)),
      // Indexing
      ANNEAL_FUNCTION(take_along_axis, take_along_axis(x, i, 1)),
      ANNEAL_FUNCTION(index_select, index_select(x, labels)),
      ANNEAL_FUNCTION(one_hot, one_hot(labels, 3)),
      ANNEAL_FUNCTION(masked_fill, masked_fill(x, mask, 0)),
      ANNEAL_FUNCTION(searchsorted, searchsorted(v, u)),
      ANNEAL_FUNCTION(bincount, bincount(labels, 4)),
      ANNEAL_FUNCTION(nonzero, nonzero(x, 4)),
      // From nothing
      ANNEAL_FUNCTION(arange, arange(6)),
      ANNEAL_FUNCTION(eye, eye(3)),
      ANNEAL_FUNCTION(linspace, linspace(0, 1, 5)),
      ANNEAL_FUNCTION(logspace, logspace(0, 3, 4)),
      ANNEAL_FUNCTION(meshgrid, meshgrid({v, u})[0]),
  };
  return rows;
}

const FunctionRow* find_function(std::string_view name) {
  const auto row = std::ranges::find(functions(), name, &FunctionRow::name);
  return row == functions().end() ? nullptr : &*row;
}

}  // namespace anneal::cli
