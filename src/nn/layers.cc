// Linear maps, convolutions, embeddings and dropout.
#include <cmath>

#include <fmt/format.h>

#include <anneal/nn.h>
#include <anneal/random.h>
#include <anneal/step.h>

#include "nn/module_call.h"
#include "tensor/lift.h"
#include "tensor/number_checks.h"

namespace anneal::nn {
namespace {

void check_positive(std::string_view what, int64_t value) {
  if (value < 1) fail(fmt::format("{} is {}", what, value), "give 1 or more");
}

// PyTorch's default for weights and biases of linear maps and convolutions.
Init within_fan_in(const Sizes& weight) {
  const double bound = 1 / std::sqrt(static_cast<double>(fans(weight).in));
  return init::uniform(-bound, bound);
}

}  // namespace

Linear::Linear(Module* parent, std::string_view name, int64_t in, int64_t out,
               const LinearOptions& options, Location where)
    : Module(parent, name, where) {
  ModuleCall call("linear", *this, where);
  check_positive("the width of the input", in);
  check_positive("the width of the result", out);
  const Sizes sizes{out, in};
  const Init standard = within_fan_in(sizes);
  if (options.tied_weight.defined()) {
    weight = add_tied("weight", options.tied_weight);
    if (weight.rank() != 2 || !(weight.dim(0) == out) || !(weight.dim(1) == in))
      fail(fmt::format("the tied weight is {}, but {} is needed", to_text(weight.shape()),
                       to_text(sizes)),
           "the rows of a weight are the results");
  } else {
    weight = add_parameter("weight", sizes, options.weight_init ? options.weight_init : standard,
                           options.dtype);
  }
  if (options.bias)
    bias = add_parameter("bias", {out}, options.bias_init ? options.bias_init : standard,
                         options.dtype);
}

Tensor Linear::operator()(const Tensor& x, Location where) const {
  ModuleCall call("linear", *this, where);
  Tensor y = matmul(for_compute(x), transpose(for_compute(weight)));
  return capture(bias.defined() ? y + for_compute(bias) : y);
}

Conv::Conv(Module* parent, std::string_view name, int64_t in, int64_t out,
           const std::vector<int64_t>& kernel, const ConvLayerOptions& options, Location where)
    : Module(parent, name, where),
      options_{.stride = options.stride,
               .padding = options.padding,
               .dilation = options.dilation,
               .groups = options.groups,
               .winograd = options.winograd},
      space_(kernel.size()) {
  ModuleCall call("conv", *this, where);
  check_positive("the number of input channels", in);
  check_positive("the number of output channels", out);
  check_positive("groups", options.groups);
  for (int64_t size : kernel) check_positive("a size of the kernel", size);
  if (in % options.groups != 0 || out % options.groups != 0)
    fail(fmt::format("{} to {} channels do not divide into {} groups", in, out, options.groups),
         "choose a number of groups that divides both");
  Sizes sizes{out, in / options.groups};
  sizes.insert(sizes.end(), kernel.begin(), kernel.end());
  const Init standard = within_fan_in(sizes);
  weight = add_parameter("weight", sizes, options.weight_init ? options.weight_init : standard,
                         options.dtype);
  if (options.bias)
    bias = add_parameter("bias", {out}, options.bias_init ? options.bias_init : standard,
                         options.dtype);
}

Tensor Conv::operator()(const Tensor& x, Location where) const {
  ModuleCall call("conv", *this, where);
  const auto conv = space_ == 1 ? conv1d : conv2d;
  return capture(conv(for_compute(x), for_compute(weight), for_compute(bias), options_));
}

Embedding::Embedding(Module* parent, std::string_view name, int64_t count, int64_t width,
                     const EmbeddingOptions& options, Location where)
    : Module(parent, name, where) {
  ModuleCall call("embedding", *this, where);
  check_positive("the number of rows", count);
  check_positive("the width", width);
  weight = add_parameter("weight", {count, width}, options.weight_init, options.dtype);
}

Tensor Embedding::operator()(const Tensor& index, Location where) const {
  ModuleCall call("embedding", *this, where);
  return capture(index_select(weight, index));
}

Dropout::Dropout(Module* parent, std::string_view name, double rate, Location where)
    : Module(parent, name, where), rate_(rate) {
  ModuleCall call("dropout", *this, where);
  check_fraction("the rate", rate);
  if (rate > 0) {
    auto own_stream = [](const Sizes&, DType) { return generator().split().key(); };
    random = add_buffer("random", {3}, own_stream, DType::U32);
  }
}

Tensor Dropout::operator()(const Tensor& x, Location where) const {
  ModuleCall call("dropout", *this, where);
  if (!training() || rate_ == 0) return capture(x);
  const Tensor key = latest(random);
  record(random, key + cast(literal_arange(3) == 2, DType::U32));
  const Tensor bits = random_bits(x.shape(), key);
  const auto dropped = static_cast<uint32_t>(rate_ * 4294967296.0);  // of all words
  return capture(anneal::where(bits >= dropped, x * (1 / (1 - rate_)), 0));
}

}  // namespace anneal::nn
