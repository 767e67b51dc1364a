#include "optim/adamw.h"

#include "base/call_site.h"

namespace anneal::optim {

std::vector<Tensor> adamw(const std::vector<Tensor>& parameters, const std::vector<Tensor>& gradients,
                          const AdamWOptions& o) {
  LayerScope layer("adamw");
  Tensor step = input("adamw.step", {});
  Tensor next_step = step + 1;
  // The moments start at zero; dividing by what has been seen of the weights removes that bias.
  Tensor seen1 = 1 - pow(o.beta1, next_step), seen2 = 1 - pow(o.beta2, next_step);
  std::vector<Tensor> updates{step.assign(next_step)};
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor &p = parameters[i], &g = gradients[i];
    Tensor m = input(p.name() + ".adamw.m", p.shape()), v = input(p.name() + ".adamw.v", p.shape());
    Tensor next_m = m * o.beta1 + g * (1 - o.beta1);
    Tensor next_v = v * o.beta2 + g * g * (1 - o.beta2);
    Tensor direction = next_m / seen1 / (sqrt(next_v / seen2) + o.epsilon);
    updates.push_back(p.assign(p * (1 - o.lr * o.weight_decay) - direction * o.lr));
    updates.push_back(m.assign(next_m));
    updates.push_back(v.assign(next_v));
  }
  return updates;
}

}  // namespace anneal::optim
