// Running averages of parameters, with the buffers of a model beside them.
#include <unordered_set>

#include <anneal/optim.h>
#include <anneal/step.h>

#include "ir/dtype.h"
#include "nn/structure.h"
#include "optim/listed.h"
#include "tensor/number_checks.h"

namespace anneal::optim {

Ema::Ema(const nn::Module& model, double decay, const EmaOptions& options, Location where)
    : decay_(decay) {
  CallScope call("ema", where);
  check_part("the decay", decay);
  std::unordered_set<const Node*> parameters;
  for (const nn::Parameter& p : model.parameters()) parameters.insert(p.tensor.node());
  for (const auto& [path, tensor] : model.state())
    add(path, tensor,
        parameters.contains(tensor.node()) ||
            (options.average_buffers && is_float(tensor.dtype())));
}

Ema::Ema(const Parameters& parameters, double decay, Location where) : decay_(decay) {
  CallScope call("ema", where);
  check_part("the decay", decay);
  check_listed_once(parameters.list);
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
