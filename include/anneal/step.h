// One step of a program that changes state. Layers and optimizers do not run what they change: they
// record it with the step that is being built, and whoever opened the step runs it.
#pragma once

#include <utility>
#include <vector>

#include <anneal/tensor.h>

namespace anneal {

// Open from its construction to its end; records go to the innermost of this thread.
class Step {
 public:
  Step();
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // One assignment for each parameter that changes, in the order of their first change.
  std::vector<Tensor> updates(Location where = Location::current()) const;
  // Computes `results` and does the updates, in one go.
  std::vector<Tensor> evaluate(std::vector<Tensor> results, const Bindings& bindings = {},
                               Location where = Location::current()) const;

 private:
  friend Tensor latest(const Tensor& parameter);
  friend void record(const Tensor& parameter, const Tensor& value, Location where);
  const Tensor* find(const Tensor& parameter) const;

  std::vector<std::pair<Tensor, Tensor>> changes_;  // parameter, value
  Step* outer_;
};

// The value that the open steps give the parameter so far; itself when they do not change it.
Tensor latest(const Tensor& parameter);

// The parameter gets this value when the innermost step runs. A second record replaces the first,
// which it can build on with latest(). An error when no step is open.
void record(const Tensor& parameter, const Tensor& value, Location where = Location::current());

}  // namespace anneal
