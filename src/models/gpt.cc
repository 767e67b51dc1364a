// Causal self-attention, and a GPT-2-like decoder made of it.
#include <anneal/functional.h>

#include "io/data_text.h"
#include "models/networks.h"
#include "models/program.h"
#include "models/training.h"

namespace anneal::models {

Tensor language_loss(const Tensor& logits, const Tensor& targets) {
  return cross_entropy(logits.reshape({-1, logits.dim(-1)}), targets.flatten());
}

Program attention() {
  nn::StructureOnly structure;
  const nn::TransformerBlock block(nullptr, "block", {.width = 128, .heads = 4});
  Tensor x = input("x", {16, 64, 128}), target = input("target", {16, 64, 128});
  return training_step(mse_loss(block(x), target), block);
}

Program nanogpt() {
  nn::StructureOnly structure;
  const ModelRow& row = *find_model("nanogpt");
  const io::Vocabulary vocabulary(io::built_in_text());
  const nn::Gpt model(
      character_gpt(row.layers, row.width, row.heads, row.block, vocabulary.size()));
  Tensor tokens = input("tokens", {row.batch, row.block}, DType::I32);
  Tensor targets = input("targets", {row.batch, row.block}, DType::I32);
  return training_step(language_loss(model(tokens), targets), model,
                       optimizer_options(row, row.lr));
}

Program gpt(const GptOptions& o) {
  nn::StructureOnly structure;
  const nn::Gpt model({.layers = o.layers,
                       .width = o.width,
                       .heads = o.heads,
                       .vocabulary = o.vocabulary,
                       .block = o.block});
  Tensor tokens = input("tokens", {o.batch, o.block}, DType::I32);
  Tensor targets = input("targets", {o.batch, o.block}, DType::I32);
  return training_step(language_loss(model(tokens), targets), model);
}

}  // namespace anneal::models
