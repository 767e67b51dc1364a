// Memory of modules and optimizers, or mere places where only the structure is wanted.
#pragma once

#include <string>

#include <anneal/nn.h>

namespace anneal::nn {

bool structure_only();  // whether a StructureOnly is open on this thread

// A parameter that starts as `init` says; an input where only the structure is wanted.
Tensor make_state(const std::string& path, const Sizes& sizes, const Init& init, DType dtype);

}  // namespace anneal::nn
