// Normalisation: (x - mean) / sqrt(variance + epsilon) over some axes, then an optional weight and
// bias. Statistics are the population's and are taken in f32 at least.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <anneal/functional.h>

#include "tensor/lift.h"
#include "tensor/wide.h"

namespace anneal {
namespace {

void check_epsilon(double epsilon) {
  if (!(epsilon >= 0 && std::isfinite(epsilon)))
    fail(fmt::format("epsilon is {}", epsilon), "it is added to the variance: give 0 or more");
}

bool same_sizes(const Sizes& a, const Sizes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Dim& one, const Dim& other) { return one == other; });
}

// `what` (a weight, a bias) has the sizes of x's last axes, which it was made for.
void check_last_axes(const char* what, const Tensor& tensor, const Tensor& x, const Sizes& last) {
  if (!tensor.defined() || same_sizes(tensor.shape(), last)) return;
  fail(fmt::format("x is {}, whose last axes are {}, but the {} is for {}", to_text(x.shape()),
                   to_text(last), what, to_text(tensor.shape())),
       fmt::format("give x last axes of {}, or a {} of {}", to_text(tensor.shape()), what,
                   to_text(last)));
}

Tensor centred(const Tensor& x, const Axes& axes) { return x - mean(x, axes, true); }

Tensor scaled(const Tensor& x, const Axes& axes, double epsilon) {
  return x * rsqrt(mean(square(x), axes, true) + epsilon);
}

// x * weight + bias in x's dtype; both broadcast, and either may be empty.
Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Tensor result = x;
  if (weight.defined()) result = result * cast(weight, x.dtype());
  if (bias.defined()) result = result + cast(bias, x.dtype());
  return result;
}

// A value a channel, [C], so that it broadcasts against [N, C, ..].
Tensor along_channels(const char* what, const Tensor& tensor, const Tensor& x) {
  if (!tensor.defined()) return tensor;
  if (tensor.rank() != 1)
    fail(fmt::format("the {} is {}, but needs one value a channel", what, to_text(tensor.shape())),
         fmt::format("give it the shape [{}]", x.dim(1).text()));
  if (!(tensor.dim(0) == x.dim(1)))
    fail(fmt::format("x is {} and has {} channels, but the {} is for {}", to_text(x.shape()),
                     x.dim(1).text(), what, tensor.dim(0).text()),
         fmt::format("give x {} channels, which are its axis 1, or a {} for {}",
                     tensor.dim(0).text(), what, x.dim(1).text()));
  Sizes sizes(x.rank() - 1, 1);
  sizes[0] = x.dim(1);
  return reshape(tensor, sizes);
}

// affine() with a value a channel; the weight is checked first.
Tensor affine_channels(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor scale = along_channels("weight", weight, x);
  return affine(x, scale, along_channels("bias", bias, x));
}

std::vector<int64_t> axes_from(size_t begin, size_t end) {
  std::vector<int64_t> axes;
  for (size_t axis = begin; axis < end; ++axis) axes.push_back(static_cast<int64_t>(axis));
  return axes;
}

void check_has_channels(const Tensor& x) {
  if (x.rank() < 2)
    fail(fmt::format("x is {}, but needs a batch and a channel axis", to_text(x.shape())),
         "give it the shape [batch, channels, ..]");
}

// All but the channels.
std::vector<int64_t> batch_axes(const Tensor& x) {
  std::vector<int64_t> axes = axes_from(2, x.rank());
  axes.insert(axes.begin(), 0);
  return axes;
}

}  // namespace

Tensor layer_norm(const Operand& x, int64_t normalised_axes, const Tensor& weight,
                  const Tensor& bias, double epsilon) {
  CallScope call("layer_norm", x.where());
  DType dtype = real_dtype(x, std::array{&weight, &bias});
  Tensor v = cast(x, wide_dtype(dtype));
  check_epsilon(epsilon);
  size_t rank = v.rank();
  if (normalised_axes < 1 || normalised_axes > static_cast<int64_t>(rank))
    fail(fmt::format("{} axes to normalise, but x is {}", normalised_axes, to_text(v.shape())),
         fmt::format("it counts the last axes: give a number from 1 to {}", rank));
  size_t first = rank - static_cast<size_t>(normalised_axes);
  Sizes sizes = v.shape();
  sizes.erase(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(first));
  check_last_axes("weight", weight, v, sizes);
  check_last_axes("bias", bias, v, sizes);
  Axes axes(axes_from(first, rank));
  return cast(affine(scaled(centred(v, axes), axes, epsilon), weight, bias), dtype);
}

Tensor rms_norm(const Operand& x, const Tensor& weight, double epsilon) {
  CallScope call("rms_norm", x.where());
  DType dtype = real_dtype(x, std::array{&weight});
  Tensor v = cast(x, wide_dtype(dtype));
  check_epsilon(epsilon);
  if (v.rank() == 0) fail("x is a scalar", "give it an axis: its last one is normalised");
  check_last_axes("weight", weight, v, {v.dim(-1)});
  return cast(affine(scaled(v, -1, epsilon), weight, {}), dtype);
}

Tensor group_norm(const Operand& x, int64_t groups, const Tensor& weight, const Tensor& bias,
                  double epsilon) {
  CallScope call("group_norm", x.where());
  DType dtype = real_dtype(x, std::array{&weight, &bias});
  Tensor v = cast(x, wide_dtype(dtype));
  check_epsilon(epsilon);
  check_has_channels(v);
  Dim channels = v.dim(1);
  if (groups < 1) fail(fmt::format("groups is {}", groups), "give at least one group");
  if (!(channels % groups == 0))
    fail(fmt::format("{} channels do not divide into {} groups", channels.text(), groups),
         channels.is_static() ? "choose a number of groups that divides the channels"
                              : "write the size so that it shows, as variable * groups");
  Sizes sizes = v.shape(), grouped = sizes;
  grouped[1] = channels / groups;
  grouped.insert(grouped.begin() + 1, groups);
  Axes axes(axes_from(2, grouped.size()));
  Tensor normal = reshape(scaled(centred(reshape(v, grouped), axes), axes, epsilon), sizes);
  return cast(affine_channels(normal, weight, bias), dtype);
}

Tensor batch_norm(const Operand& x, const Tensor& weight, const Tensor& bias, double epsilon) {
  CallScope call("batch_norm", x.where());
  DType dtype = real_dtype(x, std::array{&weight, &bias});
  Tensor v = cast(x, wide_dtype(dtype));
  check_epsilon(epsilon);
  check_has_channels(v);
  Axes axes(batch_axes(v));
  return cast(affine_channels(scaled(centred(v, axes), axes, epsilon), weight, bias), dtype);
}

Tensor batch_norm(const Operand& x, const Tensor& mean, const Tensor& variance,
                  const Tensor& weight, const Tensor& bias, double epsilon) {
  CallScope call("batch_norm", x.where());
  DType dtype = real_dtype(x, std::array{&mean, &variance, &weight, &bias});
  DType wide = wide_dtype(dtype);
  Tensor v = cast(x, wide);
  check_epsilon(epsilon);
  check_has_channels(v);
  if (!mean.defined() || !variance.defined())
    fail(fmt::format("the {} is empty", mean.defined() ? "variance" : "mean"),
         "leave both out to use the batch's own statistics");
  Tensor centre = cast(along_channels("mean", mean, v), wide);
  Tensor scale = rsqrt(cast(along_channels("variance", variance, v), wide) + epsilon);
  return cast(affine_channels((v - centre) * scale, weight, bias), dtype);
}

}  // namespace anneal
