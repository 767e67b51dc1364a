// Random programs in two languages: tensors of anneal, and lines that torch_programs.py runs with
// PyTorch. Inputs come from functions of creation and from data, integers have every width, numbers
// of the host stand beside tensors, and some axes are long. The same seed gives the same program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <anneal/anneal.h>

namespace anneal {

struct TorchProgram {
  std::string text;             // a step a line, as JSON: [op, dtype, [sources], {attributes}]
  std::vector<Tensor> inputs;   // the float ones, by which it is differentiated
  std::vector<Tensor> outputs;  // what nothing uses
  Tensor loss;                  // the sum of the float outputs
};

TorchProgram random_torch_program(uint64_t seed);

}  // namespace anneal
