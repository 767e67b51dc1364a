#include "optim/adamw.h"

#include <cmath>

#include "base/call_site.h"
#include "ir/graph.h"

namespace anneal::optim {
namespace {

// Memory that starts at zero beside a parameter that has memory; a mere place beside a place.
Tensor state(const std::string& name, const Sizes& sizes, DType dtype, bool memory) {
  return memory ? parameter(name, zeros(sizes, dtype)) : input(name, sizes, dtype);
}

// 1 - beta^t, as 2 h / (1 + h) with h = tanh(-t ln(beta) / 2): f32 would lose half its digits in
// the difference.
Tensor seen(double beta, const Tensor& t) {
  Tensor h = tanh(t * (-std::log(beta) / 2));
  return 2 * h / (1 + h);
}

}  // namespace

std::vector<Tensor> adamw(const std::vector<Tensor>& parameters,
                          const std::vector<Tensor>& gradients, const AdamWOptions& o) {
  LayerScope layer("adamw");
  bool memory = !parameters.empty() && current_graph().stored(parameters[0].node()) != nullptr;
  Tensor step = state("adamw.step", {}, DType::F32, memory);
  Tensor next_step = step + 1;
  // The moments start at zero; dividing by what has been seen of the weights removes that bias.
  Tensor unbiased1 = seen(o.beta1, next_step), unbiased2 = seen(o.beta2, next_step);
  std::vector<Tensor> updates{step.assign(next_step)};
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor &p = parameters[i], &g = gradients[i];
    Tensor m = state(p.name() + ".adamw.m", p.shape(), p.dtype(), memory);
    Tensor v = state(p.name() + ".adamw.v", p.shape(), p.dtype(), memory);
    Tensor next_m = m * o.beta1 + g * (1 - o.beta1);
    Tensor next_v = v * o.beta2 + g * g * (1 - o.beta2);
    Tensor seen1 = cast(unbiased1, p.dtype()), seen2 = cast(unbiased2, p.dtype());
    Tensor direction = next_m / seen1 / (sqrt(next_v / seen2) + o.epsilon);
    updates.push_back(p.assign(p * (1 - o.lr * o.weight_decay) - direction * o.lr));
    updates.push_back(m.assign(next_m));
    updates.push_back(v.assign(next_v));
  }
  return updates;
}

}  // namespace anneal::optim
