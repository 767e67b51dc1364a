#include "models/training.h"

#include <algorithm>

namespace anneal::models {
namespace {

// Warms up and falls to a twentieth over the steps that the model has by default, whatever a run
// is asked for: one that goes on further does what it would have done anyway.
optim::Schedule image_rate(const ModelRow& row, double lr) {
  // A rectifier at its edge goes one way or the other by the last bit of a sum, and of what becomes
  // of that in perceptrons Adam's first steps make much: while they are short, devices stay
  // together.
  const int64_t rising = row.name == "conv" ? 20 : 150;
  return optim::warm_up(rising, optim::cosine(lr, lr / 20, row.steps - rising));
}

}  // namespace

bool ModelRow::has_dynamic_batch() const { return name == "dynmlp"; }

const std::vector<ModelRow>& model_rows() {
  static const std::vector<ModelRow> rows{
      {"mlp", "784-512-512-10 perceptron on digits", 0, 0, 512, 0, 128, 1400, 1e-3},
      {"conv", "two 3x3 convolutions, pooling and a linear layer on digits", 0, 0, 32, 0, 64, 1400,
       1e-3},
      {"dynmlp", "the perceptron on batches of many sizes, with one plan", 0, 0, 512, 0, 128, 1400,
       1e-3},
      {"nanogpt", "a GPT that learns a text character by character", 4, 4, 128, 64, 16, 1000, 1e-3},
  };
  return rows;
}

std::vector<std::string_view> model_names() {
  std::vector<std::string_view> names;
  for (const ModelRow& row : model_rows()) names.push_back(row.name);
  return names;
}

const ModelRow* find_model(std::string_view name) {
  const auto row = std::ranges::find(model_rows(), name, &ModelRow::name);
  return row == model_rows().end() ? nullptr : &*row;
}

optim::AdamWOptions optimizer_options(const ModelRow& row, double lr, DType dtype) {
  optim::AdamWOptions options{.lr = row.learns_text() ? optim::Schedule(lr) : image_rate(row, lr),
                              .gradients = {.clip_norm = 1, .skip_non_finite = true}};
  if (dtype == DType::F16) options.gradients.loss_scale.emplace();
  return options;
}

nn::GptOptions character_gpt(int64_t layers, int64_t width, int64_t heads, int64_t block,
                             int64_t vocabulary) {
  return {.layers = layers,
          .width = width,
          .heads = heads,
          .vocabulary = vocabulary,
          .block = block,
          .tied_head = false};
}

}  // namespace anneal::models
