// Normalisation with parameters.
#include <fmt/format.h>

#include <anneal/nn.h>
#include <anneal/step.h>

#include "nn/module_call.h"
#include "tensor/lift.h"
#include "tensor/number_checks.h"

namespace anneal::nn {

Norm::Norm(Module* parent, std::string_view name, Kind kind, int64_t width,
           const NormOptions& options, Location where)
    : Module(parent, name, where), kind_(kind), epsilon_(options.epsilon) {
  ModuleCall call("norm", *this, where);
  if (!options.affine) return;
  weight = add_parameter("weight", {width}, init::ones(), options.dtype);
  if (kind == Kind::Layer && options.bias)
    bias = add_parameter("bias", {width}, init::zeros(), options.dtype);
}

Tensor Norm::operator()(const Tensor& x, Location where) const {
  ModuleCall call("norm", *this, where);
  return capture(kind_ == Kind::Layer ? layer_norm(x, 1, weight, bias, epsilon_)
                                      : rms_norm(x, weight, epsilon_));
}

GroupNorm::GroupNorm(Module* parent, std::string_view name, int64_t groups, int64_t channels,
                     const NormOptions& options, Location where)
    : Module(parent, name, where), groups_(groups), epsilon_(options.epsilon) {
  ModuleCall call("group_norm", *this, where);
  if (groups < 1 || channels % groups != 0)
    fail(fmt::format("{} channels do not divide into {} groups", channels, groups),
         "choose a number of groups that divides the channels");
  if (!options.affine) return;
  weight = add_parameter("weight", {channels}, init::ones(), options.dtype);
  if (options.bias) bias = add_parameter("bias", {channels}, init::zeros(), options.dtype);
}

Tensor GroupNorm::operator()(const Tensor& x, Location where) const {
  ModuleCall call("group_norm", *this, where);
  return capture(group_norm(x, groups_, weight, bias, epsilon_));
}

BatchNorm::BatchNorm(Module* parent, std::string_view name, int64_t channels,
                     const BatchNormOptions& options, Location where)
    : Module(parent, name, where), epsilon_(options.epsilon), momentum_(options.momentum) {
  ModuleCall call("batch_norm", *this, where);
  check_part("momentum", momentum_);
  if (options.affine) {
    weight = add_parameter("weight", {channels}, init::ones(), options.dtype);
    bias = add_parameter("bias", {channels}, init::zeros(), options.dtype);
  }
  running_mean = add_buffer("running_mean", {channels}, init::zeros(), options.dtype);
  running_var = add_buffer("running_var", {channels}, init::ones(), options.dtype);
}

namespace {

// The sample's variance of one value is 0 / 0, and running statistics would never forget it.
void check_many(const Dim& values, const Tensor& x) {
  if (values.max() < 2)
    fail(fmt::format("x is {}: {} value{} a channel, which has no variance", to_text(x.shape()),
                     values.text(), values.max() == 1 ? "" : "s"),
         "train on more than one example, or call eval() to use the running statistics");
}

}  // namespace

Tensor BatchNorm::operator()(const Tensor& x, Location where) const {
  ModuleCall call("batch_norm", *this, where);
  if (!training()) return capture(batch_norm(x, running_mean, running_var, weight, bias, epsilon_));
  Tensor y = batch_norm(x, weight, bias, epsilon_);  // checks the shape of x
  std::vector<int64_t> axes{0};
  for (size_t axis = 2; axis < x.rank(); ++axis) axes.push_back(static_cast<int64_t>(axis));
  Dim values = x.dim(0);
  for (size_t axis = 2; axis < x.rank(); ++axis)
    values = values * x.dim(static_cast<int64_t>(axis));
  check_many(values, x);
  auto follow = [&](const Tensor& running, const Tensor& seen) {
    record(running, latest(running) * (1 - momentum_) + cast(seen, running.dtype()) * momentum_);
  };
  follow(running_mean, mean(x, axes));
  // The sample's, where y has the population's. A symbolic batch may turn out to have one value.
  const Tensor seen = var(x, axes);
  follow(running_var,
         values.min() > 1 ? seen : anneal::where(from_dim(values) > 1, seen, latest(running_var)));
  return capture(y);
}

}  // namespace anneal::nn
