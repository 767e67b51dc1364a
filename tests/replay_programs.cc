// The programs of kernel replay: training steps, and what these are made of with its gradients.
#include <anneal/anneal.h>

#include "models/program.h"
#include "replay.h"

namespace anneal {
namespace {

using Roots = std::vector<NodeRef>;

Roots nodes_of(const std::vector<Tensor>& tensors) {
  Roots nodes;
  for (const Tensor& tensor : tensors) nodes.push_back(tensor.node());
  return nodes;
}

// Loss and updates, as a step is compiled.
Roots step_of(const models::Program& program) {
  Roots roots{program.loss.node()};
  for (const Tensor& update : program.updates) roots.push_back(update.node());
  return roots;
}

// A value, and the gradients of its squares' sum.
Roots with_gradients(const Tensor& value, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> results = grad(sum(square(value.cast(DType::F32))), inputs);
  results.insert(results.begin(), value);
  return nodes_of(results);
}

Roots gemm(int64_t m, int64_t n, int64_t k, DType dtype) {
  const Tensor a = input("a", {m, k}, dtype), b = input("b", {k, n}, dtype);
  return nodes_of({relu(matmul(a, b) + input("bias", {n}, dtype))});
}

Roots gemm_symbolic() {
  const Variable rows("rows", 1, 4096), depth("depth", 1, 2048);
  const Tensor a = input("a", {rows, depth}), b = input("b", {depth, 512});
  return nodes_of({matmul(a, b)});
}

Roots gemm_batched() {
  const Tensor a = input("a", {12, 96, 80}), b = input("b", {12, 80, 112});
  return with_gradients(matmul(a, b), {a, b});
}

Roots softmax_rows() {
  const Tensor x = input("x", {512, 1000});
  return with_gradients(softmax(x), {x});
}

Roots softmax_symbolic() {
  const Variable rows("rows", 1, 512), length("length", 1, 4096);
  const Tensor x = input("x", {rows, length});
  return with_gradients(softmax(x), {x});
}

Roots norms() {
  const Tensor x = input("x", {256, 768}), weight = input("weight", {768}),
               bias = input("bias", {768});
  return with_gradients(layer_norm(rms_norm(x, weight), 1, weight, bias), {x, weight, bias});
}

Roots group_norms() {
  const Tensor x = input("x", {16, 32, 14, 14});
  return with_gradients(group_norm(x, 8), {x});
}

Roots conv_3x3() {
  const Tensor x = input("x", {8, 32, 28, 28}), weight = input("weight", {64, 32, 3, 3});
  return with_gradients(conv2d(x, weight, {}, {.padding = {1}}), {x, weight});
}

Roots conv_strided() {
  const Tensor x = input("x", {4, 3, 64, 64}), weight = input("weight", {32, 3, 7, 7});
  return with_gradients(conv2d(x, weight, {}, {.stride = {2}, .padding = {3}}), {x, weight});
}

// So long that scores are not stored where anything else is possible.
Roots attention_long() {
  const Tensor q = input("q", {16, 8192, 64}), k = input("k", {16, 8192, 64}),
               v = input("v", {16, 8192, 64});
  const Tensor scores = matmul(q, transpose(k)) * 0.125;
  return with_gradients(matmul(softmax(scores), v), {q, k, v});
}

Roots cross_entropies() {
  const Tensor logits = input("logits", {256, 5000}), label = input("label", {256}, DType::I32);
  const Tensor loss = cross_entropy(logits, label);
  return nodes_of({loss, grad(loss, {logits})[0]});
}

Roots embedding() {
  const Tensor table = input("table", {1000, 64}), token = input("token", {512}, DType::I32);
  return with_gradients(index_select(table, token), {table});
}

Roots columns_and_turns() {
  const Tensor x = input("x", {4096, 300});
  return nodes_of({sum(x, {0}), transpose(x) * 2, max(x)});
}

// Forward and backward in bf16, parameters in f32.
Roots mlp_bf16() {
  const Tensor x = input("x", {64, 256}), up = input("up", {256, 512}),
               down = input("down", {512, 10}), label = input("label", {64}, DType::I32);
  const Tensor hidden = gelu(matmul(x.cast(DType::BF16), up.cast(DType::BF16)));
  const Tensor logits = matmul(hidden, down.cast(DType::BF16)).cast(DType::F32);
  const Tensor loss = cross_entropy(logits, label);
  const std::vector<Tensor> gradients = grad(loss, {up, down});
  return nodes_of({loss, up - 0.1 * gradients[0], down - 0.1 * gradients[1]});
}

}  // namespace

const std::vector<ReplayProgram>& replay_programs() {
  static const std::vector<ReplayProgram> programs{
      {"mlp", [] { return step_of(models::mlp()); }},
      {"conv", [] { return step_of(models::conv()); }},
      {"dynmlp", [] { return step_of(models::dynmlp()); }},
      {"nanogpt", [] { return step_of(models::nanogpt()); }},
      {"attention", [] { return step_of(models::attention()); }},
      {"mlp-bf16", mlp_bf16},
      {"gemm", [] { return gemm(1024, 1024, 1024, DType::F32); }},
      {"gemm-odd", [] { return gemm(1000, 777, 513, DType::F32); }},
      {"gemm-bf16", [] { return gemm(1024, 1024, 1024, DType::BF16); }},
      {"gemm-symbolic", gemm_symbolic},
      {"gemm-batched", gemm_batched},
      {"softmax", softmax_rows},
      {"softmax-symbolic", softmax_symbolic},
      {"norms", norms},
      {"group-norm", group_norms},
      {"conv-3x3", conv_3x3},
      {"conv-strided", conv_strided},
      {"attention-long", attention_long},
      {"cross-entropy", cross_entropies},
      {"embedding", embedding},
      {"columns", columns_and_turns},
  };
  return programs;
}

}  // namespace anneal
