// Public functions that are made of ops, each with a small example, for `anneal explain`.
#pragma once

#include <string_view>
#include <vector>

#include <anneal/tensor.h>

namespace anneal::cli {

struct FunctionRow {
  std::string_view name;
  std::string_view call;  // the example, as C++
  Tensor (*build)();      // what it gives, over named inputs
};

struct FunctionExample {
  Tensor result;
  std::vector<Tensor> inputs;
  // Of the float inputs, for the gradient "g" of the result; none where no gradient flows.
  std::vector<Tensor> gradients;
};
FunctionExample example_of(const FunctionRow& row);

const std::vector<FunctionRow>& functions();
const FunctionRow* find_function(std::string_view name);  // null: there is none

}  // namespace anneal::cli
