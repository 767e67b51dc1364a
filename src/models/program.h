// Built-in programs: models as graphs, with their gradients and updates, to look at and to measure.
// Parameters are named inputs without memory: a program is structure.
#pragma once

#include <string_view>
#include <vector>

#include <anneal/nn.h>
#include <anneal/optim.h>
#include <anneal/tensor.h>

namespace anneal::models {

// A whole training step: forward, backward and update in one graph.
struct Program {
  Tensor loss;
  std::vector<Tensor> parameters, gradients, updates;
};

// Takes the gradients of the loss and adds AdamW.
Program training_step(const Tensor& loss, const nn::Module& model,
                      const optim::AdamWOptions& options = {});

struct ProgramRow {
  std::string_view name, description;
  Program (*build)();
};
const std::vector<ProgramRow>& programs();
const ProgramRow* find_program(std::string_view name);  // null: there is none

// The steps that `anneal train` runs, with the sizes it has by default.
Program mlp();
Program conv();
Program dynmlp();
Program nanogpt();
Program attention();

struct GptOptions {
  int64_t layers = 12, width = 768, heads = 12, vocabulary = 50257, block = 1024, batch = 8;
};
Program gpt(const GptOptions& options);

}  // namespace anneal::models
