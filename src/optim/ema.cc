// Running averages of parameters, with the buffers of a model beside them.
#include <unordered_set>

#include <fmt/format.h>

#include <anneal/optim.h>
#include <anneal/step.h>

#include "base/call_site.h"
#include "ir/dtype.h"
#include "nn/structure.h"

namespace anneal::optim {
namespace {

double checked_decay(double decay) {
  if (!(decay >= 0 && decay <= 1)) fail(fmt::format("the decay is {}", decay), "give 0 to 1");
  return decay;
}

}  // namespace

Ema::Ema(const nn::Module& model, double decay, const EmaOptions& options, Location where) {
  CallScope call("ema", where);
  decay_ = checked_decay(decay);
  std::unordered_set<const Node*> parameters;
  for (const nn::Parameter& p : model.parameters()) parameters.insert(p.tensor.node());
  for (const auto& [path, tensor] : model.state())
    add(path, tensor,
        parameters.contains(tensor.node()) ||
            (options.average_buffers && is_float(tensor.dtype())));
}

Ema::Ema(const Parameters& parameters, double decay, Location where) {
  CallScope call("ema", where);
  decay_ = checked_decay(decay);
  for (const nn::Parameter& p : parameters.list) add(p.path, p.tensor, /*averaged=*/true);
}

void Ema::add(const std::string& path, const Tensor& tensor, bool averaged) {
  auto start = [&](const Sizes&, DType) { return tensor; };
  sources_.push_back({tensor, averaged});
  averages_.emplace_back(path,
                         nn::make_state(path + ".ema", tensor.shape(), start, tensor.dtype()));
}

void Ema::update(Location where) {
  CallScope call("ema", where);
  LayerScope layer("ema");
  for (size_t i = 0; i < sources_.size(); ++i) {
    const Tensor& average = averages_[i].second;
    const Tensor value = latest(sources_[i].tensor);
    record(average, sources_[i].averaged ? latest(average) * decay_ + value * (1 - decay_) : value);
  }
}

}  // namespace anneal::optim
