// The rule of each optimizer, for one parameter.
#include <cmath>

#include <fmt/format.h>

#include <anneal/optim.h>

#include "tensor/number_checks.h"

namespace anneal::optim {
namespace {

void check_betas(double beta1, double beta2) {
  check_fraction("beta1", beta1);
  check_fraction("beta2", beta2);
}

// 1 - beta^t, as 2 h / (1 + h) with h = tanh(-t ln(beta) / 2): f32 would lose half its digits in
// the difference.
Tensor seen(double beta, const Tensor& t) {
  Tensor h = tanh(t * (-std::log(beta) / 2));
  return 2 * h / (1 + h);
}

// The decay of a weight as part of its gradient.
Tensor with_decay(const Tensor& gradient, const Tensor& value, double weight_decay) {
  return weight_decay == 0 ? gradient : gradient + value * weight_decay;
}

// value * (1 - rate * decay)
Tensor decayed(const Tensor& value, const Tensor& rate, double weight_decay) {
  return weight_decay == 0 ? value : value * (1 - rate * weight_decay);
}

Tensor mix(const Tensor& old, const Tensor& fresh, double beta) {
  return old * beta + fresh * (1 - beta);
}

}  // namespace

Sgd::Sgd(const Parameters& parameters, const SgdOptions& o, Location where)
    : Optimizer("sgd", parameters.list, o.lr, o.weight_decay, o.groups, o.gradients,
                o.momentum > 0 ? std::vector<std::string>{"m"} : std::vector<std::string>{}, where),
      momentum_(o.momentum),
      dampening_(o.dampening),
      nesterov_(o.nesterov) {
  CallScope call("sgd", where);
  check_fraction("momentum", o.momentum);
  check_fraction("dampening", o.dampening);
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0))
    fail(fmt::format("nesterov with momentum {} and dampening {}", o.momentum, o.dampening),
         "it needs a momentum above 0 and no dampening");
}

std::vector<Tensor> Sgd::next_moments(const Values& now, const Tensor& gradient,
                                      const Settings& s) const {
  if (momentum_ == 0) return {};
  Tensor g = with_decay(gradient, now.value, s.weight_decay);
  // The first gradient counts in full, as in PyTorch.
  Tensor fresh = dampening_ == 0 ? g : where(s.count > 1, g * (1 - dampening_), g);
  return {now.moments[0] * momentum_ + fresh};
}

Tensor Sgd::next_value(const Values& now, const Tensor& gradient,
                       const std::vector<Tensor>& moments, const Settings& s) const {
  Tensor g = with_decay(gradient, now.value, s.weight_decay);
  Tensor direction = moments.empty() ? g : nesterov_ ? g + moments[0] * momentum_ : moments[0];
  return now.value - direction * s.rate;
}

Adam::Adam(const Parameters& parameters, const AdamOptions& o, Location where)
    : Optimizer("adam", parameters.list, o.lr, o.weight_decay, o.groups, o.gradients, {"m", "v"},
                where),
      beta1_(o.beta1),
      beta2_(o.beta2),
      epsilon_(o.epsilon),
      decoupled_(false) {
  CallScope call("adam", where);
  check_betas(o.beta1, o.beta2);
  check_not_negative("epsilon", o.epsilon);
}

Adam::Adam(const Parameters& parameters, const AdamWOptions& o, Location where)
    : Optimizer("adamw", parameters.list, o.lr, o.weight_decay, o.groups, o.gradients, {"m", "v"},
                where),
      beta1_(o.beta1),
      beta2_(o.beta2),
      epsilon_(o.epsilon),
      decoupled_(true) {
  CallScope call("adamw", where);
  check_betas(o.beta1, o.beta2);
  check_not_negative("epsilon", o.epsilon);
}

std::vector<Tensor> Adam::next_moments(const Values& now, const Tensor& gradient,
                                       const Settings& s) const {
  Tensor g = decoupled_ ? gradient : with_decay(gradient, now.value, s.weight_decay);
  return {mix(now.moments[0], g, beta1_), mix(now.moments[1], g * g, beta2_)};
}

// The moments start at zero; dividing by what has been seen of the weights removes that bias.
Tensor Adam::next_value(const Values& now, const Tensor&, const std::vector<Tensor>& moments,
                        const Settings& s) const {
  const DType dtype = now.value.dtype();
  Tensor seen1 = cast(seen(beta1_, s.count), dtype), seen2 = cast(seen(beta2_, s.count), dtype);
  Tensor direction = moments[0] / seen1 / (sqrt(moments[1] / seen2) + epsilon_);
  Tensor value = decoupled_ ? decayed(now.value, s.rate, s.weight_decay) : now.value;
  return value - direction * s.rate;
}

Lion::Lion(const Parameters& parameters, const LionOptions& o, Location where)
    : Optimizer("lion", parameters.list, o.lr, o.weight_decay, o.groups, o.gradients, {"m"}, where),
      beta1_(o.beta1),
      beta2_(o.beta2) {
  CallScope call("lion", where);
  check_betas(o.beta1, o.beta2);
}

std::vector<Tensor> Lion::next_moments(const Values& now, const Tensor& gradient,
                                       const Settings&) const {
  return {mix(now.moments[0], gradient, beta2_)};
}

Tensor Lion::next_value(const Values& now, const Tensor& gradient, const std::vector<Tensor>&,
                        const Settings& s) const {
  Tensor direction = sign(mix(now.moments[0], gradient, beta1_));
  return decayed(now.value, s.rate, s.weight_decay) - direction * s.rate;
}

}  // namespace anneal::optim
