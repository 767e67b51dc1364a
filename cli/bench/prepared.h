// A program made ready to run again and again: scheduled, compiled, with memory for everything, so
// that a run is its kernels and nothing else. For benchmarks: what it computes stays where it is.
#pragma once

#include <memory>
#include <vector>

#include <anneal/tensor.h>

#include "cli/chosen_device.h"

namespace anneal::cli {

class Prepared {
 public:
  // Runs it once. The results must need no bindings and assign nothing.
  Prepared(const ChosenDevice& device, std::vector<Tensor> results);
  ~Prepared();
  Prepared(Prepared&&) noexcept;
  Prepared& operator=(Prepared&&) = delete;

  double run();  // seconds it took

 private:
  struct Plan;

  std::vector<Tensor> results_;
  std::unique_ptr<Plan> plan_;  // null: the device has no kernels, and evaluates
};

}  // namespace anneal::cli
