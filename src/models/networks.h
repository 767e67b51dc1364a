// The models that are built in, as modules: what `anneal train` trains and what the programs of
// program.h are steps of.
#pragma once

#include <anneal/nn.h>

namespace anneal::models {

constexpr int64_t kImageSide = 28, kPixels = kImageSide * kImageSide, kClasses = 10;

// Images [batch, 784] to logits [batch, 10], by two hidden layers.
struct Mlp : nn::Module {
  explicit Mlp(int64_t width = 512);
  Tensor operator()(const Tensor& image) const;

  nn::Linear up, middle, down;
};

// Images [batch, 784] to logits [batch, 10], by two 3x3 convolutions, each with a pooling that
// halves the sides. The second one has twice the channels of the first.
struct ConvNet : nn::Module {
  explicit ConvNet(int64_t channels = 32);
  Tensor operator()(const Tensor& image) const;

  nn::Conv2d first, second;
  nn::Linear out;
};

// The mean cross-entropy of logits [batch, tokens, vocabulary] and targets [batch, tokens].
Tensor language_loss(const Tensor& logits, const Tensor& targets);

}  // namespace anneal::models
