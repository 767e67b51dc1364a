// Convolution in any number of spatial axes: sliding windows, one multiplication with the weight
// and one sum over (channel, kernel..), the last axes of [N, groups, O / groups, windows.., C,
// kernel..].
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include <anneal/functional.h>

#include "tensor/movement.h"
#include "tensor/named_gradient.h"
#include "tensor/windows.h"

namespace anneal {
namespace {

// What both kinds of convolution are made of, checked and of one dtype.
struct Conv {
  Tensor x, weight, bias;
  size_t space;  // how many spatial axes
  std::vector<int64_t> kernel;
  std::vector<Window> windows;
  int64_t groups;
  bool winograd;  // whether that may be used
};

void check_rank(const char* what, const Tensor& tensor, size_t space, const char* layout) {
  if (tensor.rank() != space + 2)
    fail(fmt::format("{} is {}, but needs {} axes", what, to_text(tensor.shape()), space + 2),
         fmt::format("with {} spatial {}, the layout of {} is {}", space,
                     space == 1 ? "axis" : "axes", what, layout));
}

// The spatial sizes of the weight, which must be numbers.
std::vector<int64_t> kernel_of(const Tensor& weight) {
  std::vector<int64_t> kernel;
  Sizes sizes = weight.shape();
  for (size_t axis = 2; axis < sizes.size(); ++axis) {
    if (!sizes[axis].is_static())
      fail(fmt::format("the kernel size {} of weight {} is symbolic", sizes[axis].text(),
                       to_text(sizes)),
           "the spatial sizes of a weight must be numbers");
    kernel.push_back(sizes[axis].value());
  }
  return kernel;
}

Conv checked_conv(const Operand& x, const Operand& weight, const Tensor& bias,
                  const ConvOptions& options, size_t space, const char* weight_layout) {
  std::vector<const Operand*> operands{&x, &weight};
  Operand bias_operand = bias;
  if (bias.defined()) operands.push_back(&bias_operand);
  DType dtype = meeting_dtype(operands);
  if (is_bool(dtype)) dtype = DType::I32;
  Conv conv{wrap(lift(x, dtype)),
            wrap(lift(weight, dtype)),
            bias.defined() ? cast(bias, dtype) : bias,
            space,
            {},
            {},
            options.groups,
            options.winograd};
  check_rank("x", conv.x, space, "[batch, channels, space..]");
  check_rank("weight", conv.weight, space, weight_layout);
  conv.kernel = kernel_of(conv.weight);
  conv.windows = checked_windows(conv.kernel, one_for_each("stride", options.stride, space, 1),
                                 options.dilation, options.padding);
  if (conv.groups < 1) fail(fmt::format("groups is {}", conv.groups), "give at least one group");
  return conv;
}

void check_bias(const Conv& conv, const Dim& channels) {
  if (!conv.bias.defined()) return;
  if (conv.bias.rank() != 1 || !(conv.bias.dim(0) == channels))
    fail(fmt::format("bias is {}, but the result has {} channels", to_text(conv.bias.shape()),
                     channels.text()),
         fmt::format("give a bias of shape [{}]", channels.text()));
}

void check_groups(const Dim& channels, int64_t groups) {
  if (groups > 1 && !(channels % groups == 0))
    fail(fmt::format("the {} channels of weight do not divide into {} groups", channels.text(),
                     groups),
         "its first size must be a multiple of groups");
}

enum class Order : uint8_t { Forwards, Backwards };  // in which a window meets the weight

// x [N, groups * C, space..] is padded already; weight is [groups, O / groups, C, kernel..].
Tensor convolve(const Tensor& x, const Tensor& weight, const std::vector<Window>& windows,
                Order order = Order::Forwards) {
  size_t space = windows.size();
  NodeRef patches = node_of(sliding_windows(x, windows));  // [N, groups * C, windows.., kernel..]
  std::vector<int64_t> backwards;
  for (size_t i = 0; order == Order::Backwards && i < space; ++i)
    backwards.push_back(static_cast<int64_t>(2 + space + i));
  patches = flip_node(patches, backwards);
  NodeRef kernels = node_of(weight);
  NodeRef batch = patches->dim(0), groups = kernels->dim(0), channels = kernels->dim(2);

  // Patches: [N, groups, 1, windows.., C, kernel..]
  std::vector<NodeRef> grouped{batch, groups, channels};
  std::vector<int64_t> axes{0, 1};
  for (size_t i = 0; i < 2 * space; ++i) grouped.push_back(patches->dim(2 + i));
  for (size_t i = 0; i < space; ++i) axes.push_back(static_cast<int64_t>(3 + i));
  axes.push_back(2);
  for (size_t i = 0; i < space; ++i) axes.push_back(static_cast<int64_t>(3 + space + i));
  patches = permute_node(reshape_node(patches, grouped), axes);
  std::vector<NodeRef> left(patches->shape->dims().begin(), patches->shape->dims().end());
  left.insert(left.begin() + 2, index_const(1));
  patches = reshape_node(patches, left);

  // Kernels: [1, groups, O / groups, 1.., C, kernel..]
  std::vector<NodeRef> right{index_const(1), groups, kernels->dim(1)};
  right.insert(right.end(), space, index_const(1));
  for (size_t i = 0; i <= space; ++i) right.push_back(kernels->dim(2 + i));
  kernels = reshape_node(kernels, right);

  std::vector<NodeRef> dims = left;
  dims[2] = right[2];
  check_sizes(dims);
  std::vector<int64_t> summed;
  for (size_t axis = 3 + space; axis < dims.size(); ++axis)
    summed.push_back(static_cast<int64_t>(axis));
  NodeRef sums = sum_of_products(patches, kernels, dims, summed);
  std::vector<NodeRef> result{batch, node_of(Dim(groups) * Dim(dims[2]))};
  for (size_t i = 0; i < space; ++i) result.push_back(dims[3 + i]);
  return wrap(reshape_node(sums, result));
}

Tensor add_bias(const Tensor& y, const Tensor& bias) {
  if (!bias.defined()) return y;
  std::vector<NodeRef> dims(y.rank() - 1, index_const(1));
  dims[0] = node_of(y)->dim(1);
  return y + wrap(reshape_node(node_of(bias), dims));
}

// The weight's sizes with groups apart: [groups, first / groups, second, kernel..].
std::vector<NodeRef> grouped_sizes(const Conv& conv) {
  NodeRef weight = node_of(conv.weight);
  std::vector<NodeRef> dims{index_const(conv.groups), node_of(Dim(weight->dim(0)) / conv.groups)};
  for (size_t axis = 1; axis < weight->rank(); ++axis) dims.push_back(weight->dim(axis));
  return dims;
}

// ---- gradients

ConvNumbers numbers_of(const Conv& c) {
  ConvNumbers numbers{c.groups};
  for (const Window& w : c.windows)
    numbers.insert(numbers.end(), {w.stride, w.padding, w.dilation});
  if (!c.winograd) numbers.push_back(1);
  return numbers;
}

Conv conv_of(const ConvNumbers& numbers, const Tensor& x, const Tensor& weight) {
  const size_t space = x.rank() - 2, count = 1 + 3 * space;
  if (numbers.size() < count) throw InternalError("a convolution's gradient lacks a number");
  Conv c{x, weight, {}, space, kernel_of(weight), {}, numbers[0], numbers.size() == count};
  for (size_t i = 0; i < space; ++i) {
    const int64_t* w = &numbers[1 + 3 * i];
    c.windows.push_back({c.kernel[i], w[0], w[2], w[1]});
  }
  return c;
}

// Whether a gradient is marked, too, so that Winograd's way can be chosen for it.
bool has_other_ways(const Conv& c) {
  return c.winograd && c.space == 2 && c.groups == 1 &&
         std::ranges::all_of(c.windows, [](const Window& w) {
           return w.kernel == 3 && w.stride == 1 && w.dilation == 1;
         });
}

// Sums over batch and windows of gradient * patch, the form kernels look for:
// [groups, O / groups, C, kernel.., N, windows..].
Tensor weight_gradient(const Conv& c, const Tensor& x, const Tensor& gradient) {
  NodeRef patches = node_of(sliding_windows(pad_windows(x, c.windows), c.windows));
  NodeRef g = node_of(gradient);
  std::vector<NodeRef> weight = grouped_sizes(c);  // [groups, O / groups, C, kernel..]
  NodeRef batch = patches->dim(0), one = index_const(1);

  // [N, groups * C, windows.., kernel..] -> [groups, 1, C, kernel.., N, windows..]
  std::vector<NodeRef> apart{batch, weight[0], weight[2]}, left{weight[0], one, weight[2]};
  std::vector<int64_t> order{1, 2};
  for (size_t i = 0; i < 2 * c.space; ++i) apart.push_back(patches->dim(2 + i));
  for (size_t i = 0; i < c.space; ++i) order.push_back(static_cast<int64_t>(3 + c.space + i));
  order.push_back(0);
  for (size_t i = 0; i < c.space; ++i) order.push_back(static_cast<int64_t>(3 + i));
  patches = permute_node(reshape_node(patches, apart), order);
  left.insert(left.end(), patches->shape->dims().begin() + 2, patches->shape->dims().end());
  patches = reshape_node(patches, left);

  // [N, groups * (O / groups), windows..] -> [groups, O / groups, 1, 1.., N, windows..]
  std::vector<NodeRef> split{batch, weight[0], weight[1]}, right{weight[0], weight[1], one};
  std::vector<int64_t> turned{1, 2, 0};
  for (size_t i = 0; i < c.space; ++i) {
    split.push_back(g->dim(2 + i));
    turned.push_back(static_cast<int64_t>(3 + i));
  }
  right.insert(right.end(), c.space, one);
  right.push_back(batch);
  for (size_t i = 0; i < c.space; ++i) right.push_back(g->dim(2 + i));
  g = reshape_node(permute_node(reshape_node(g, split), turned), right);

  std::vector<NodeRef> dims = left;
  dims[1] = right[1];
  std::vector<int64_t> summed;
  for (size_t axis = 3 + c.space; axis < dims.size(); ++axis)
    summed.push_back(static_cast<int64_t>(axis));
  Tensor sums =
      wrap(reshape_node(sum_of_products(g, patches, dims, summed), dims_of(node_of(c.weight))));
  if (!has_other_ways(c)) return sums;
  return with_named_gradient(sums, "conv_weights", numbers_of(c), {x, gradient});
}

// Of what was checked, without a bias.
Tensor apply(const Conv& c, const Tensor& x) {
  Tensor kernels = wrap(reshape_node(node_of(c.weight), grouped_sizes(c)));
  return convolve(pad_windows(x, c.windows), kernels, c.windows);
}

Tensor conv(const char* name, const Operand& x, const Operand& weight, const Tensor& bias,
            const ConvOptions& options, size_t space) {
  CallScope call(name, x.where());
  Conv c =
      checked_conv(x, weight, bias, options, space, "[out channels, channels / groups, kernel..]");
  for (int64_t extra : options.output_padding)
    if (extra != 0)
      fail(fmt::format("output_padding is {}", extra), "only a transposed convolution has one");
  if (!(c.x.dim(1) == c.weight.dim(1) * c.groups))
    fail(fmt::format("channels differ: x is {}, weight is {}{}", to_text(c.x.shape()),
                     to_text(c.weight.shape()),
                     c.groups == 1 ? "" : fmt::format(" with {} groups", c.groups)),
         fmt::format("x needs {} channels", (c.weight.dim(1) * c.groups).text()));
  check_groups(c.weight.dim(0), c.groups);
  check_bias(c, c.weight.dim(0));
  // Taken apart, the gradient of x would be a sum over every way a window can lie.
  return add_bias(with_named_gradient(apply(c, c.x), "conv", numbers_of(c), {c.x, c.weight}),
                  c.bias);
}

// ---- transposed

// The adjoint of windows along one axis, y[o] = sum of w[j] x[o * stride + j * dilation - padding],
// by residues of x's positions modulo the stride. Those of one residue meet some of the weights
// only, `taps` of them, and are a convolution of y without a stride:
//   x[u * stride + residue] = sum of w[first + t * step] y[u + dilation * (taps - 1 - t) - before]
struct Phase {
  int64_t first, step, taps, dilation, before;
};

Phase phase_of(const Window& w, int64_t residue) {
  const int64_t common = std::gcd(w.stride, w.dilation), step = w.stride / common;
  const int64_t position = residue + w.padding;
  int64_t first = 0;
  while (first < step && (first * w.dilation - position) % w.stride != 0) ++first;
  if (first == step || first >= w.kernel) return {0, step, 0, 1, 0};
  const int64_t taps = (w.kernel - 1 - first) / step + 1, dilation = w.dilation / common;
  const int64_t ahead = (position - first * w.dilation) / w.stride;
  return {first, step, taps, dilation, (taps - 1) * dilation - ahead};
}

// `taps` elements of an axis from `first` on, `step` apart.
NodeRef cut_taps(NodeRef x, size_t axis, const Phase& phase) {
  const int64_t used = (phase.taps - 1) * phase.step + 1;
  x = cut(x, axis, index_const(phase.first), index_const(used));
  if (phase.step == 1) return x;
  std::vector<NodeRef> pairs(2 * x->rank(), index_const(0)), dims = dims_of(x);
  pairs[2 * axis + 1] = index_const(phase.step - 1);
  x = pad_node(x, pairs);
  dims[axis] = index_const(phase.taps);
  std::vector<NodeRef> together = dims;
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, index_const(phase.step));
  x = cut(reshape_node(x, dims), axis + 1, index_const(0), index_const(1));
  return reshape_node(x, together);
}

// `size` elements of an axis, from `before` zeros in front of it on and with zeros after its end.
NodeRef pad_to(NodeRef x, size_t axis, int64_t before, const Dim& size) {
  const int64_t front = std::max<int64_t>(before, 0), begin = front - before;
  const int64_t missing = (size + begin - front - Dim(x->dim(axis))).max();
  std::vector<NodeRef> pairs(2 * x->rank(), index_const(0));
  pairs[2 * axis] = index_const(front);
  pairs[2 * axis + 1] = index_const(std::max<int64_t>(missing, 0));
  return cut(pad_node(x, pairs), axis, index_const(begin), node_of(size));
}

// [groups, C, O / groups, kernel..]: as the weight of the convolution that undoes this one.
NodeRef transposed_weight(const Conv& c) {
  NodeRef weight = reshape_node(node_of(c.weight), grouped_sizes(c));
  std::vector<int64_t> order{0, 2, 1};
  for (size_t i = 0; i < c.space; ++i) order.push_back(static_cast<int64_t>(3 + i));
  return permute_node(weight, order);
}

// The positions of these residues in the adjoint of a convolution: `sizes` of them on each axis.
NodeRef adjoint_phase(const Conv& c, NodeRef y, const std::vector<Phase>& phases,
                      const Sizes& sizes) {
  NodeRef weight = transposed_weight(c);
  std::vector<Window> windows;
  for (size_t i = 0; i < c.space; ++i) {
    const Phase& phase = phases[i];
    if (phase.taps == 0) {
      std::vector<NodeRef> dims{y->dim(0), node_of(Dim(weight->dim(0)) * Dim(weight->dim(1)))};
      for (const Dim& size : sizes) dims.push_back(node_of(size));
      return make_const(Scalar::of_int(y->dtype, 0), dims);
    }
    weight = cut_taps(weight, 3 + i, phase);
    y = pad_to(y, 2 + i, phase.before, sizes[i] + (phase.taps - 1) * phase.dilation);
    windows.push_back({phase.taps, 1, phase.dilation, 0});
  }
  return node_of(convolve(wrap(y), wrap(weight), windows, Order::Backwards));
}

// The adjoint of a convolution, whose x has these sizes in space.
Tensor adjoint(const Conv& c, const Tensor& y, const Sizes& sizes) {
  Sizes steps;
  int64_t count = 1;
  for (size_t i = 0; i < c.space; ++i) {
    steps.push_back((sizes[i] + (c.windows[i].stride - 1)) / c.windows[i].stride);
    count *= c.windows[i].stride;
  }
  std::vector<NodeRef> pieces;
  for (int64_t number = 0; number < count; ++number) {
    std::vector<Phase> phases(c.space);
    int64_t rest = number;
    for (size_t i = c.space; i-- > 0; rest /= c.windows[i].stride)
      phases[i] = phase_of(c.windows[i], rest % c.windows[i].stride);
    NodeRef piece = adjoint_phase(c, node_of(y), phases, steps);
    std::vector<NodeRef> dims = dims_of(piece);
    dims.insert(dims.begin(), index_const(1));
    pieces.push_back(reshape_node(piece, dims));
  }

  // [residues, N, C, steps..] -> [N, C, (steps, residues)..]
  NodeRef x = join(pieces, 0);
  std::vector<NodeRef> apart, together{x->dim(1), x->dim(2)};
  std::vector<int64_t> order;
  const auto space = static_cast<int64_t>(c.space);
  for (const Window& w : c.windows) apart.push_back(index_const(w.stride));
  for (size_t axis = 1; axis < x->rank(); ++axis) apart.push_back(x->dim(axis));
  order.insert(order.end(), {space, space + 1});
  for (int64_t i = 0; i < space; ++i) order.insert(order.end(), {space + 2 + i, i});
  for (size_t i = 0; i < c.space; ++i) together.push_back(node_of(steps[i] * c.windows[i].stride));
  x = reshape_node(permute_node(reshape_node(x, apart), order), together);
  for (size_t i = 0; i < c.space; ++i) x = cut(x, 2 + i, index_const(0), node_of(sizes[i]));
  return wrap(x);
}

// The adjoint of a convolution with this stride. The result has (n - 1) * stride - 2 * padding +
// extent + output_padding elements.
Tensor conv_transpose(const char* name, const Operand& x, const Operand& weight, const Tensor& bias,
                      const ConvOptions& options, size_t space) {
  CallScope call(name, x.where());
  Conv c =
      checked_conv(x, weight, bias, options, space, "[channels, out channels / groups, kernel..]");
  std::vector<int64_t> extra = one_for_each("output_padding", options.output_padding, space, 0);
  std::vector<int64_t> dilation = one_for_each("dilation", options.dilation, space, 1);
  if (!(c.x.dim(1) == c.weight.dim(0)))
    fail(fmt::format("channels differ: x is {}, weight is {}", to_text(c.x.shape()),
                     to_text(c.weight.shape())),
         fmt::format("the first size of a transposed weight is x's channels, {}",
                     c.x.dim(1).text()));
  check_groups(c.weight.dim(0), c.groups);
  check_bias(c, c.weight.dim(1) * c.groups);

  Sizes sizes;
  for (size_t i = 0; i < space; ++i) {
    const Window& w = c.windows[i];
    if (extra[i] >= std::max(w.stride, dilation[i]))
      fail(fmt::format("output_padding is {}, stride is {} and dilation is {}", extra[i], w.stride,
                       dilation[i]),
           "it must be smaller than one of them");
    Dim size = c.x.dim(static_cast<int64_t>(2 + i));
    Dim result = (size - 1) * w.stride + (w.extent() + extra[i] - 2 * w.padding);
    if (size.min() < 1 || result.min() < 1)
      fail(fmt::format("the result would have the size {} on axis {}: x is {}, padding is {}",
                       result.is_static() ? result.text() : fmt::format("{} or less", result.min()),
                       2 + i, to_text(c.x.shape()), w.padding),
           "pad less, or give x more elements");
    sizes.push_back(result);
  }
  return add_bias(
      with_named_gradient(adjoint(c, c.x, sizes), "conv_transpose", numbers_of(c), {c.x, c.weight}),
      c.bias);
}

Sizes space_of(const Tensor& x) {
  Sizes sizes = x.shape();
  sizes.erase(sizes.begin(), sizes.begin() + 2);
  return sizes;
}

}  // namespace

Tensor conv_forward(const ConvNumbers& numbers, const Tensor& x, const Tensor& weight) {
  const Conv c = conv_of(numbers, x, weight);
  Tensor y = apply(c, x);
  return has_other_ways(c) ? with_named_gradient(y, "conv", numbers, {x, weight}) : y;
}

Tensor conv_adjoint(const ConvNumbers& numbers, const Tensor& x, const Tensor& weight,
                    const Tensor& y) {
  const Conv c = conv_of(numbers, x, weight);
  Tensor of_y = adjoint(c, y, space_of(x));
  if (!has_other_ways(c)) return of_y;
  return with_named_gradient(of_y, "conv_transpose", numbers, {y, weight});
}

Tensor conv_weight_gradient(const ConvNumbers& numbers, const Tensor& x, const Tensor& weight,
                            const Tensor& y) {
  return weight_gradient(conv_of(numbers, x, weight), x, y);
}

// With much output padding, more windows lie on the result than x has elements.
Tensor conv_transpose_adjoint(const ConvNumbers& numbers, const Tensor& x, const Tensor& weight,
                              const Tensor& y) {
  NodeRef of_x = node_of(conv_forward(numbers, y, weight));
  for (size_t axis = 2; axis < x.rank(); ++axis)
    of_x = cut(of_x, axis, index_const(0), node_of(x)->dim(axis));
  return wrap(of_x);
}

Tensor conv_transpose_weight_gradient(const ConvNumbers& numbers, const Tensor& x,
                                      const Tensor& weight, const Tensor& y) {
  NodeRef padded = node_of(x), of_x = node_of(conv_forward(numbers, y, weight));
  for (size_t axis = 2; axis < x.rank(); ++axis)
    padded = pad_to(padded, axis, 0, Dim(of_x->dim(axis)));
  return weight_gradient(conv_of(numbers, x, weight), y, wrap(padded));
}

Tensor conv1d(const Operand& x, const Operand& weight, const Tensor& bias,
              const ConvOptions& options) {
  return conv("conv1d", x, weight, bias, options, 1);
}
Tensor conv2d(const Operand& x, const Operand& weight, const Tensor& bias,
              const ConvOptions& options) {
  return conv("conv2d", x, weight, bias, options, 2);
}
Tensor conv3d(const Operand& x, const Operand& weight, const Tensor& bias,
              const ConvOptions& options) {
  return conv("conv3d", x, weight, bias, options, 3);
}
Tensor conv_transpose1d(const Operand& x, const Operand& weight, const Tensor& bias,
                        const ConvOptions& options) {
  return conv_transpose("conv_transpose1d", x, weight, bias, options, 1);
}
Tensor conv_transpose2d(const Operand& x, const Operand& weight, const Tensor& bias,
                        const ConvOptions& options) {
  return conv_transpose("conv_transpose2d", x, weight, bias, options, 2);
}
Tensor conv_transpose3d(const Operand& x, const Operand& weight, const Tensor& bias,
                        const ConvOptions& options) {
  return conv_transpose("conv_transpose3d", x, weight, bias, options, 3);
}

}  // namespace anneal
