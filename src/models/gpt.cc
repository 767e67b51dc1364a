// Causal self-attention, and a GPT-2-like decoder made of it.
#include <cmath>
#include <limits>

#include <anneal/functional.h>

#include "base/call_site.h"
#include "models/program.h"

namespace anneal::models {
namespace {

struct Layers {
  ParameterList& parameter;

  Tensor linear(const Tensor& x, const std::string& name, int64_t from, int64_t to) {
    LayerScope layer(name);
    return matmul(x, parameter("weight", {from, to})) + parameter("bias", {to});
  }

  Tensor norm(const Tensor& x, const std::string& name, int64_t width) {
    LayerScope layer(name);
    return layer_norm(x, 1, parameter("weight", {width}), parameter("bias", {width}));
  }

  // x is [batch, tokens, width].
  Tensor self_attention(const Tensor& x, int64_t heads, int64_t width) {
    LayerScope layer("attention");
    Dim batch = x.dim(0), tokens = x.dim(1);
    const int64_t head = width / heads;
    std::vector<Tensor> parts = chunk(linear(x, "qkv", width, 3 * width), 3, -1);
    for (Tensor& part : parts)  // [batch, heads, tokens, head]
      part = part.reshape({batch, tokens, heads, head}).permute({0, 2, 1, 3});
    Tensor scores = matmul(parts[0], transpose(parts[1])) / std::sqrt(static_cast<double>(head));
    Tensor visible = tril(ones({tokens, tokens}, DType::Bool));
    scores = where(visible, scores, -std::numeric_limits<double>::infinity());
    Tensor mixed =
        matmul(softmax(scores), parts[2]).permute({0, 2, 1, 3}).reshape({batch, tokens, width});
    return linear(mixed, "out", width, width);
  }

  Tensor block(const Tensor& x, const std::string& name, int64_t heads, int64_t width) {
    LayerScope layer(name);
    Tensor h = x + self_attention(norm(x, "norm1", width), heads, width);
    Tensor wide = gelu_tanh(linear(norm(h, "norm2", width), "up", width, 4 * width));
    return h + linear(wide, "down", 4 * width, width);
  }
};

}  // namespace

Program attention() {
  ParameterList parameter;
  Tensor x = input("x", {16, 64, 128}), target = input("target", {16, 64, 128});
  Tensor y = Layers{parameter}.block(x, "block", 4, 128);
  return training_step(mse_loss(y, target), parameter);
}

Program gpt(const GptOptions& o) {
  ParameterList parameter;
  Layers layers{parameter};
  Tensor tokens = input("tokens", {o.batch, o.block}, DType::I32);
  Tensor targets = input("targets", {o.batch, o.block}, DType::I32);
  Tensor embedding = parameter("embedding.weight", {o.vocabulary, o.width});
  Tensor x = index_select(embedding, tokens) + parameter("position.weight", {o.block, o.width});
  for (int64_t i = 0; i < o.layers; ++i)
    x = layers.block(x, "blocks." + std::to_string(i), o.heads, o.width);
  Tensor logits = matmul(layers.norm(x, "norm", o.width), transpose(embedding));
  return training_step(cross_entropy(logits.permute({0, 2, 1}), targets), parameter);
}

}  // namespace anneal::models
