#include "models/program.h"

#include <algorithm>

#include <anneal/grad.h>
#include <anneal/optim.h>
#include <anneal/step.h>

#include "base/call_site.h"

namespace anneal::models {

Tensor ParameterList::operator()(std::string_view name, const Sizes& sizes) {
  std::string path =
      current_layer().empty() ? std::string(name) : current_layer() + "." + std::string(name);
  return tensors_.emplace_back(input(path, sizes));
}

Program training_step(const Tensor& loss, const ParameterList& parameters) {
  Program program;
  program.loss = loss;
  program.parameters = parameters.tensors();
  program.gradients = grad(loss, program.parameters);
  nn::StructureOnly structure;
  Step step;
  optim::AdamW(program.parameters).apply(program.gradients);
  program.updates = step.updates();
  return program;
}

const std::vector<ProgramRow>& programs() {
  static const std::vector<ProgramRow> rows{
      {"mlp", "784-512-512-10 perceptron on 128 images", mlp},
      {"conv", "two 3x3 convolutions, pooling and a linear layer on 64 images", conv},
      {"attention", "one causal self-attention block, 4 heads, 64 tokens of width 128", attention},
  };
  return rows;
}

const ProgramRow* find_program(std::string_view name) {
  auto row = std::ranges::find(programs(), name, &ProgramRow::name);
  return row == programs().end() ? nullptr : &*row;
}

}  // namespace anneal::models
