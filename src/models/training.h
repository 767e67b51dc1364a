// How the built-in models are trained: sizes, batches and the optimizer. `anneal train` runs these
// steps, and the programs of program.h show them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <anneal/nn.h>
#include <anneal/optim.h>

namespace anneal::models {

struct ModelRow {
  std::string_view name, description;
  int64_t layers, heads, width, block;  // by default; 0: the model has no such size
  int64_t batch, steps;
  double lr;

  bool learns_text() const { return block > 0; }
  bool has_dynamic_batch() const;  // sizes of batches are known when a step runs
};
const std::vector<ModelRow>& model_rows();
std::vector<std::string_view> model_names();
const ModelRow* find_model(std::string_view name);  // null: there is none

// Clipped, and left out where gradients are not finite. On images the learning rate warms up and
// falls; f16 scales losses.
optim::AdamWOptions optimizer_options(const ModelRow& row, double lr, DType dtype = DType::F32);

// A GPT over characters.
nn::GptOptions character_gpt(int64_t layers, int64_t width, int64_t heads, int64_t block,
                             int64_t vocabulary);

}  // namespace anneal::models
