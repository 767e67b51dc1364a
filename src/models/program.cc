#include "models/program.h"

#include <algorithm>

#include <anneal/grad.h>
#include <anneal/step.h>

namespace anneal::models {

Program training_step(const Tensor& loss, const nn::Module& model,
                      const optim::AdamWOptions& options) {
  Program program;
  program.loss = loss;
  for (const nn::Parameter& parameter : model.parameters())
    program.parameters.push_back(parameter.tensor);
  program.gradients = grad(loss, program.parameters);
  nn::StructureOnly structure;
  Step step;
  optim::AdamW(model, options).apply(program.gradients);
  program.updates = step.updates();
  return program;
}

const std::vector<ProgramRow>& programs() {
  static const std::vector<ProgramRow> rows{
      {"mlp", "784-512-512-10 perceptron on 128 images", mlp},
      {"conv", "two 3x3 convolutions, pooling and a linear layer on 64 images", conv},
      {"dynmlp", "the perceptron of mlp on batches of 1 to 128 images", dynmlp},
      {"nanogpt", "a GPT of 4 layers, 4 heads, width 128, on 16 texts of 64 characters", nanogpt},
      {"attention", "one causal self-attention block, 4 heads, 64 tokens of width 128", attention},
  };
  return rows;
}

const ProgramRow* find_program(std::string_view name) {
  auto row = std::ranges::find(programs(), name, &ProgramRow::name);
  return row == programs().end() ? nullptr : &*row;
}

}  // namespace anneal::models
