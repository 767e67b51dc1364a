// What all optimizers share: state, gradients (accumulated, scaled, clipped, checked), recording.
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include <anneal/grad.h>
#include <anneal/optim.h>
#include <anneal/step.h>

#include "ir/dtype.h"
#include "ir/graph.h"
#include "ir/node_map.h"
#include "nn/structure.h"
#include "optim/gradients.h"
#include "optim/listed.h"
#include "tensor/lift.h"
#include "tensor/number_checks.h"
#include "tensor/wide.h"

namespace anneal::optim {
namespace {

void check_options(const GradientOptions& options) {
  check_not_negative("clip_norm", options.clip_norm);
  if (!options.loss_scale) return;
  const LossScale& scale = *options.loss_scale;
  check_above_zero("the initial loss scale", scale.initial);
  check_above_zero("the growth of the loss scale", scale.growth);
  check_above_zero("the backoff of the loss scale", scale.backoff);
  if (scale.growth < 1 || scale.backoff > 1)
    fail(fmt::format("the loss scale grows by {} and backs off by {}", scale.growth, scale.backoff),
         "the growth is 1 or more, the backoff 1 or less");
  if (scale.patience < 1)
    fail(fmt::format("the patience of the loss scale is {}", scale.patience), "give 1 or more");
}

void check_groups(const std::vector<Group>& groups) {
  for (const Group& group : groups) {
    check_not_negative("the rate of a group", group.rate);
    if (group.weight_decay) check_not_negative("the weight decay of a group", *group.weight_decay);
  }
}

// A parameter that nothing is learned about: grad() would offer an option of its own.
void check_depends(const Tensor& loss, const std::vector<nn::Parameter>& parameters) {
  const NodeRef root = node_of(loss);
  NodeMap<char> reached;
  for (NodeRef node : topological_order({&root, 1})) reached[node] = 1;
  for (const nn::Parameter& p : parameters)
    if (!reached.contains(node_of(p.tensor)))
      fail(fmt::format("the loss does not depend on parameter \"{}\"", p.path),
           "use it in the model, freeze() it, or give the optimizer a list without it");
}

}  // namespace

void check_listed_once(const std::vector<nn::Parameter>& parameters) {
  std::unordered_map<std::string, const Node*> named;
  std::unordered_map<const Node*, std::string> listed;
  for (const nn::Parameter& p : parameters) {
    NodeRef node = node_of(p.tensor);
    if (node->op != Op::Buffer)
      fail(fmt::format("\"{}\" {} is computed, and cannot be changed", p.path, shape_text(node)),
           "list tensors that parameter() made");
    if (auto [first, is_new] = listed.emplace(node, p.path); !is_new)
      fail(fmt::format(
               "parameter \"{}\" is listed twice{}", p.path,
               first->second == p.path ? "" : fmt::format(", also as \"{}\"", first->second)),
           "list each parameter once");
    if (!named.emplace(p.path, node).second)
      fail(fmt::format("two parameters have the name \"{}\"", p.path),
           "names tell their state apart: give each a name of its own");
  }
}

bool is_vector(const nn::Parameter& parameter) { return parameter.tensor.rank() < 2; }

Parameters::Parameters(const nn::Module& module)
    : list(module.parameters([](const nn::Parameter& p) { return !p.frozen; })) {}

Parameters::Parameters(std::vector<nn::Parameter> parameters) : list(std::move(parameters)) {}

Parameters::Parameters(const std::vector<Tensor>& parameters) {
  for (const Tensor& tensor : parameters) list.push_back({tensor.name(), tensor});
}

Optimizer::~Optimizer() = default;

Optimizer::Optimizer(std::string name, std::vector<nn::Parameter> parameters, Schedule rate,
                     double weight_decay, std::vector<Group> groups,
                     const GradientOptions& gradients, const std::vector<std::string>& moments,
                     Location where)
    : name_(std::move(name)),
      parameters_(std::move(parameters)),
      rate_(std::move(rate)),
      options_(gradients),
      scalars_(DType::F32) {
  CallScope call(name_.c_str(), where);
  if (parameters_.empty()) fail("there is nothing to train", "give a module with parameters");
  check_listed_once(parameters_);
  check_not_negative("the weight decay", weight_decay);
  check_groups(groups);
  check_options(options_);
  if (options_.loss_scale) options_.skip_non_finite = true;
  for (const nn::Parameter& p : parameters_) {
    if (!is_float(p.tensor.dtype()))
      fail(fmt::format("parameter \"{}\" is {}", p.path, anneal::name(p.tensor.dtype())),
           "only floats can be trained: freeze it, or make it a buffer");
    if (p.tensor.dtype() == DType::F64) scalars_ = DType::F64;
  }

  steps_ = add_scalar("step", 0, DType::I32);
  if (options_.skip_non_finite) skipped_ = add_scalar("skipped", 0, DType::I32);
  if (options_.loss_scale) {
    scale_ = add_scalar("scale", options_.loss_scale->initial, DType::F32);
    good_steps_ = add_scalar("good_steps", 0, DType::I32);
  }
  if (options_.accumulate) kept_count_ = add_scalar("kept_count", 0, DType::I32);
  for (const nn::Parameter& p : parameters_) {
    const DType dtype = p.tensor.dtype(), wide = wide_dtype(dtype);
    const Sizes sizes = p.tensor.shape();
    Slot slot{p.tensor, {}, {}, 1, weight_decay};
    auto add = [&](const std::string& what, const nn::Init& init) {
      return add_state(fmt::format("{}.{}.{}", p.path, name_, what), sizes, init, wide);
    };
    if (wide != dtype)
      slot.master = add("master", [&](const Sizes&, DType) { return cast(p.tensor, wide); });
    for (const std::string& moment : moments)
      slot.moments.push_back(add(moment, nn::init::zeros()));
    if (options_.accumulate) slot.kept = add("kept", nn::init::zeros());
    auto group =
        std::ranges::find_if(groups, [&](const Group& g) { return !g.filter || g.filter(p); });
    if (group != groups.end()) {
      slot.rate = group->rate;
      slot.weight_decay = group->weight_decay.value_or(weight_decay);
    }
    slots_.push_back(std::move(slot));
  }
}

Tensor Optimizer::add_state(std::string path, const Sizes& sizes, const nn::Init& init,
                            DType dtype) {
  Tensor tensor = nn::make_state(path, sizes, init, dtype);
  state_.emplace_back(std::move(path), tensor);
  return tensor;
}

Tensor Optimizer::add_scalar(const char* name, double value, DType dtype) {
  return add_state(fmt::format("{}.{}", name_, name), {}, nn::init::constant(value), dtype);
}

Tensor Optimizer::learning_rate(Location where) const {
  CallScope call("learning_rate", where);
  return rate_(cast(steps_, scalars_));
}

void Optimizer::load(const State& from, const LoadOptions& options, Location where) {
  CallScope call("load", where);
  load_state(state_, from, options, where);
  may_have_kept_ = true;
}

// Of the scaled loss, if losses are scaled.
std::vector<Tensor> Optimizer::gradients_of(const Tensor& loss) const {
  check_depends(loss, parameters_);
  std::vector<Tensor> tensors;
  for (const nn::Parameter& p : parameters_) tensors.push_back(p.tensor);
  return grad(scale_.defined() ? widen(loss) * cast(scale_, wide_dtype(loss.dtype())) : loss,
              tensors);
}

void Optimizer::update(const Tensor& loss, Location where) {
  CallScope call("update", where);
  LayerScope layer(name_);
  record_update(gradients_of(loss), scale_.defined() ? 1 / scale_ : Tensor());
}

std::vector<Tensor> Optimizer::updates(const Tensor& loss, Location where) {
  CallScope call("updates", where);
  Step step;
  update(loss, where);
  return step.updates(where);
}

void Optimizer::apply(const std::vector<Tensor>& gradients, Location where) {
  CallScope call("apply", where);
  LayerScope layer(name_);
  if (gradients.size() != parameters_.size())
    fail(fmt::format("{} gradients for {} parameters", gradients.size(), parameters_.size()),
         "give one for each of parameters(), in their order");
  record_update(gradients, {});
}

void Optimizer::accumulate(const Tensor& loss, Location where) {
  CallScope call("accumulate", where);
  LayerScope layer(name_);
  if (!options_.accumulate)
    fail("the optimizer keeps no gradients", "make it with .gradients = {.accumulate = true}");
  may_have_kept_ = true;
  std::vector<Tensor> gradients = gradients_of(loss);
  for (size_t i = 0; i < slots_.size(); ++i) {
    Tensor gradient = widen(gradients[i]);
    if (scale_.defined()) gradient = gradient * cast(1 / scale_, gradient.dtype());
    record(slots_[i].kept, latest(slots_[i].kept) + gradient);
  }
  record(kept_count_, latest(kept_count_) + 1);
}

void Optimizer::update_accumulated(Location where) {
  CallScope call("update_accumulated", where);
  LayerScope layer(name_);
  if (!options_.accumulate)
    fail("the optimizer keeps no gradients", "make it with .gradients = {.accumulate = true}");
  if (!may_have_kept_)
    fail("nothing was accumulated", "call accumulate(loss) first, at least once for each update");
  std::vector<Tensor> gradients;
  for (const Slot& slot : slots_) gradients.push_back(latest(slot.kept));
  const Tensor count = latest(kept_count_);
  record_update(gradients, 1 / cast(maximum(count, 1), scalars_), count > 0);
  for (const Slot& slot : slots_) record(slot.kept, literal_like(slot.kept, 0));
  record(kept_count_, literal_like(kept_count_, 0));
}

// Gradients times `factor` (none where it is empty), clipped, go through the rule; where they are
// not finite, or `some` says that there are none, every value stays as it was.
void Optimizer::record_update(const std::vector<Tensor>& gradients, Tensor factor,
                              const Tensor& some) {
  Tensor finite;
  if (options_.clip_norm > 0 || options_.skip_non_finite) {
    const Tensor squares = square_sum(gradients);
    if (options_.skip_non_finite) finite = is_finite(squares);
    if (options_.clip_norm > 0) {
      Tensor norm = factor.defined() ? sqrt(squares) * factor : sqrt(squares);
      Tensor clip = clip_factor(norm, options_.clip_norm);
      factor = factor.defined() ? factor * clip : clip;
    }
  }
  const Tensor counts = !some.defined() ? finite : finite.defined() ? finite & some : some;
  auto record_if_finite = [&](const Tensor& parameter, const Tensor& value) {
    Tensor stored = counts.defined() ? where(counts, value, latest(parameter)) : value;
    record(parameter, stored);
    return stored;
  };

  const Tensor done = latest(steps_), rate = rate_(cast(done, scalars_));
  const Tensor count = cast(done, scalars_) + 1;
  record_if_finite(steps_, done + 1);
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    const DType wide = slot.master.dtype();
    Tensor gradient = cast(gradients[i], wide);
    if (factor.defined()) gradient = gradient * cast(factor, wide);
    const Tensor own_rate = slot.rate == 1 ? rate : rate * slot.rate;
    Values now{latest(slot.master), {}};
    for (const Tensor& moment : slot.moments) now.moments.push_back(latest(moment));
    const Settings settings{cast(own_rate, wide), count, slot.weight_decay};
    std::vector<Tensor> moments = next_moments(now, gradient, settings);
    for (size_t m = 0; m < moments.size(); ++m)
      moments[m] = record_if_finite(slot.moments[m], moments[m]);
    const Tensor value =
        record_if_finite(slot.master, next_value(now, gradient, moments, settings));
    const Tensor& parameter = parameters_[i].tensor;
    if (parameter.dtype() != wide) record_if_finite(parameter, cast(value, parameter.dtype()));
  }
  if (skipped_.defined()) record(skipped_, latest(skipped_) + cast(!finite, DType::I32));
  if (scale_.defined()) record_scale(finite);
}

void Optimizer::record_scale(const Tensor& finite) {
  const LossScale& o = *options_.loss_scale;
  const Tensor scale = latest(scale_), good = where(finite, latest(good_steps_) + 1, 0),
               grows = good >= o.patience;
  const Tensor smaller = maximum(scale * o.backoff, 1),
               larger = where(grows, scale * o.growth, scale);
  record(scale_, where(finite, larger, smaller));
  record(good_steps_, where(grows, 0, good));
}

}  // namespace anneal::optim
