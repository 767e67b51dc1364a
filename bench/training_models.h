// The models whose training is compared with PyTorch's: bench/peers/torch_models.py has the same
// ones, with the same names of parameters.
#pragma once

#include <anneal/functional.h>
#include <anneal/nn.h>

namespace anneal::bench {

struct Mlp : nn::Module {
  nn::Linear first{this, "first", 784, 512}, second{this, "second", 512, 512},
      last{this, "last", 512, 10};

  // Images [batch, 784] and their classes [batch].
  Tensor loss(const Tensor& x, const Tensor& y) const {
    return cross_entropy(last(relu(second(relu(first(x))))), y);
  }
};

struct ConvNet : nn::Module {
  nn::Conv2d first{this, "first", 1, 32, 3}, second{this, "second", 32, 64, 3};
  nn::Linear last{this, "last", 64 * 12 * 12, 10};

  // Images [batch, 1, 28, 28] and their classes [batch].
  Tensor loss(const Tensor& x, const Tensor& y) const {
    const Tensor pooled = max_pool(relu(second(relu(first(x)))), {2, 2});
    return cross_entropy(last(pooled.reshape({x.dim(0), 64 * 12 * 12})), y);
  }
};

// A block of GPT-2 with the exact gelu, which is PyTorch's faster one.
struct CharGptBlock : nn::Module {
  nn::LayerNorm norm1;
  nn::MultiHeadAttention attn;
  nn::LayerNorm norm2;
  nn::Linear up, down;

  CharGptBlock(nn::Module* parent, std::string_view name, int64_t width, int64_t heads,
               const nn::Init& init)
      : Module(parent, name),
        norm1(this, "norm1", width),
        attn(this, "attn", width, heads, {.weight_init = init}),
        norm2(this, "norm2", width),
        up(this, "up", width, 4 * width, {.weight_init = init}),
        down(this, "down", 4 * width, width, {.weight_init = init}) {}

  Tensor operator()(const Tensor& x) const {
    const Tensor h = x + attn(norm1(x));
    return h + down(gelu(up(norm2(h))));
  }
};

struct GptSizes {
  int64_t block;  // tokens
  int64_t layers = 4, heads = 4, width = 128;
};

// A small GPT-2 over characters; its logits are products with the rows of the embedding.
struct CharGpt : nn::Module {
  static constexpr int64_t kVocabulary = 65;
  nn::Init init = nn::init::normal(0, 0.02);
  nn::Embedding embedding, position;
  nn::List<CharGptBlock> blocks{this, "blocks"};
  nn::LayerNorm norm;

  explicit CharGpt(const GptSizes& sizes)
      : embedding(this, "embedding", kVocabulary, sizes.width, {init}),
        position(this, "position", sizes.block, sizes.width, {init}),
        norm(this, "norm", sizes.width) {
    for (int64_t i = 0; i < sizes.layers; ++i) blocks.add(sizes.width, sizes.heads, init);
  }

  // Tokens [batch, block] and those that follow them.
  Tensor loss(const Tensor& x, const Tensor& y) const {
    Tensor h = embedding(x) + position.weight;
    for (size_t i = 0; i < blocks.size(); ++i) h = blocks[i](h);
    const Tensor logits = matmul(norm(h), transpose(embedding.weight));
    return cross_entropy(logits.reshape({-1, kVocabulary}), y.reshape({-1}));
  }
};

}  // namespace anneal::bench
