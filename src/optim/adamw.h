// AdamW as graph: moments, step count and parameters are buffers, the update is assignments that
// join the graph of the gradients.
#pragma once

#include <vector>

#include <anneal/tensor.h>

namespace anneal::optim {

struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
};

// One assignment a buffer: the step count, then parameter, first and second moment of each.
// Buffers of the optimizer are named after the parameter, "w1.adamw.m", and start at zero; beside
// parameters that are inputs without memory (a program that is only looked at) they are inputs too.
std::vector<Tensor> adamw(const std::vector<Tensor>& parameters,
                          const std::vector<Tensor>& gradients, const AdamWOptions& options = {});

}  // namespace anneal::optim
