// Running averages of parameters.
#include <fmt/format.h>

#include <anneal/optim.h>
#include <anneal/step.h>

#include "base/call_site.h"
#include "nn/structure.h"

namespace anneal::optim {

Ema::Ema(const Parameters& parameters, double decay, Location where)
    : parameters_(parameters.list), decay_(decay) {
  CallScope call("ema", where);
  if (!(decay >= 0 && decay <= 1)) fail(fmt::format("the decay is {}", decay), "give 0 to 1");
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
