// Running averages of parameters.
#include <anneal/optim.h>
#include <anneal/step.h>

#include "nn/structure.h"
#include "optim/listed.h"
#include "tensor/number_checks.h"

namespace anneal::optim {

Ema::Ema(const Parameters& parameters, double decay, Location where)
    : parameters_(parameters.list), decay_(decay) {
  CallScope call("ema", where);
  check_part("the decay", decay);
  check_listed_once(parameters_);
  for (const nn::Parameter& p : parameters_) {
    auto start = [&](const Sizes&, DType) { return p.tensor; };
    averages_.emplace_back(
        p.path, nn::make_state(p.path + ".ema", p.tensor.shape(), start, p.tensor.dtype()));
  }
}

void Ema::update(Location where) {
  CallScope call("ema", where);
  LayerScope layer("ema");
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& average = averages_[i].second;
    record(average, latest(average) * decay_ + latest(parameters_[i].tensor) * (1 - decay_));
  }
}

}  // namespace anneal::optim
