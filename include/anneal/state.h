// Tensors by name: what a module or an optimizer keeps between steps, what a checkpoint holds.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <anneal/tensor.h>

namespace anneal {

// In a stable order; names are unique.
using State = std::vector<std::pair<std::string, Tensor>>;

// All of them as one: what a checkpoint of a model, its optimizer and its compiled step holds. An
// error where two tensors have one name.
State join(const std::vector<State>& states, Location where = Location::current());

struct LoadOptions {
  bool allow_missing = false;     // parameters that `from` lacks keep their values
  bool allow_unexpected = false;  // what `into` lacks is passed over
};

// Sets the parameters of `into` to the values of the same names in `from`, all or none of them.
// Names, shapes and dtypes must agree; an error says how they differ.
void load_state(const State& into, const State& from, const LoadOptions& options = {},
                Location where = Location::current());

}  // namespace anneal
