// Convolution in any number of spatial axes: sliding windows, one multiplication with the weight
// and one sum over (channel, kernel..), the last axes of [N, groups, O / groups, windows.., C,
// kernel..].
#include <algorithm>
#include <array>

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
};

// The numbers of a text, one after the other.
class TextNumbers {
 public:
  explicit TextNumbers(std::string_view text) : text_(text) {}
  int64_t next() {
    while (!text_.empty() && (text_[0] < '0' || text_[0] > '9')) text_.remove_prefix(1);
    if (text_.empty()) throw InternalError("a convolution's gradient lacks a number");
    int64_t number = 0;
    for (; !text_.empty() && text_[0] >= '0' && text_[0] <= '9'; text_.remove_prefix(1))
      number = number * 10 + (text_[0] - '0');
    return number;
  }

 private:
  std::string_view text_;
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
            options.groups};
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

// x [N, groups * C, space..] is padded already; weight is [groups, O / groups, C, kernel..].
Tensor convolve(const Tensor& x, const Tensor& weight, const std::vector<Window>& windows) {
  size_t space = windows.size();
  NodeRef patches = node_of(sliding_windows(x, windows));  // [N, groups * C, windows.., kernel..]
  NodeRef kernels = node_of(weight);
  NodeRef batch = patches->dim(0), groups = kernels->dim(0), channels = kernels->dim(2);

  // Patches: [N, groups, 1, windows.., C, kernel..]
  std::vector<NodeRef> grouped{batch, groups, channels};
  std::vector<int64_t> order{0, 1};
  for (size_t i = 0; i < 2 * space; ++i) grouped.push_back(patches->dim(2 + i));
  for (size_t i = 0; i < space; ++i) order.push_back(static_cast<int64_t>(3 + i));
  order.push_back(2);
  for (size_t i = 0; i < space; ++i) order.push_back(static_cast<int64_t>(3 + space + i));
  patches = permute_node(reshape_node(patches, grouped), order);
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
  NodeRef product = make(Op::Mul, {broadcast_to(patches, dims), broadcast_to(kernels, dims)});
  std::vector<int64_t> summed;
  for (size_t axis = 3 + space; axis < dims.size(); ++axis)
    summed.push_back(static_cast<int64_t>(axis));
  NodeRef sums = reduce_node(Op::ReduceSum, product, summed);
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

// ---- gradients of convolutions without strides

std::string gradient_symbol(const Conv& c) {
  std::string text = fmt::format("conv {}", c.groups);
  for (const Window& w : c.windows) text += fmt::format(" {} {}", w.padding, w.dilation);
  return text;
}

// A convolution as its symbol says it.
Conv conv_of(NodeRef node) {
  Conv c{wrap(node->source(1)), wrap(node->source(2)), {}, node->source(1)->rank() - 2, {}, {}, 1};
  c.kernel = kernel_of(c.weight);
  TextNumbers numbers(node->arg.symbol->text());
  c.groups = numbers.next();
  for (size_t i = 0; i < c.space; ++i) {
    const int64_t padding = numbers.next();
    c.windows.push_back({c.kernel[i], 1, numbers.next(), padding});
  }
  return c;
}

// Sums over batch and windows of gradient * patch, the form kernels look for:
// [groups, O / groups, C, kernel.., N, windows..].
Tensor weight_gradient(const Conv& c, const Tensor& gradient) {
  NodeRef patches = node_of(sliding_windows(pad_windows(c.x, c.windows), c.windows));
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
  NodeRef product = make(Op::Mul, {broadcast_to(g, dims), broadcast_to(patches, dims)});
  std::vector<int64_t> summed;
  for (size_t axis = 3 + c.space; axis < dims.size(); ++axis)
    summed.push_back(static_cast<int64_t>(axis));
  return wrap(reshape_node(reduce_node(Op::ReduceSum, product, summed),
                           std::vector<NodeRef>(node_of(c.weight)->shape->dims().begin(),
                                                node_of(c.weight)->shape->dims().end())));
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
  Tensor kernels = wrap(reshape_node(node_of(c.weight), grouped_sizes(c)));
  NodeRef y = node_of(convolve(pad_windows(c.x, c.windows), kernels, c.windows));
  // Taken apart, the gradient of x would be a sum over every way a window can lie.
  if (std::ranges::all_of(c.windows, [](const Window& w) { return w.stride == 1; }))
    y = with_named_gradient(y, gradient_symbol(c), {node_of(c.x), node_of(c.weight)});
  return add_bias(wrap(y), c.bias);
}

// ---- transposed

// stride - 1 zeros after each element of the spatial axes.
NodeRef insert_zeros(NodeRef x, const std::vector<Window>& windows) {
  std::vector<NodeRef> apart{x->dim(0), x->dim(1)}, together = apart;
  std::vector<NodeRef> pairs(4, index_const(0));
  for (size_t i = 0; i < windows.size(); ++i) {
    NodeRef size = x->dim(2 + i);
    apart.insert(apart.end(), {size, index_const(1)});
    pairs.insert(pairs.end(), 3, index_const(0));
    pairs.push_back(index_const(windows[i].stride - 1));
    together.push_back(node_of(Dim(size) * windows[i].stride));
  }
  return reshape_node(pad_node(reshape_node(x, apart), pairs), together);
}

// Adds zeros to the spatial axes, or cuts where a number is negative.
NodeRef pad_or_cut(NodeRef x, const std::vector<int64_t>& before,
                   const std::vector<int64_t>& after) {
  std::vector<NodeRef> pads(4, index_const(0)),
      ends{index_const(0), x->dim(0), index_const(0), x->dim(1)};
  for (size_t i = 0; i < before.size(); ++i) {
    int64_t front = std::max<int64_t>(before[i], 0), back = std::max<int64_t>(after[i], 0);
    pads.insert(pads.end(), {index_const(front), index_const(back)});
    int64_t cut = std::min<int64_t>(after[i], 0);
    ends.push_back(index_const(front - before[i]));
    ends.push_back(node_of(Dim(x->dim(2 + i)) + (front + back + cut)));
  }
  return shrink_node(pad_node(x, pads), ends);
}

// [groups * C, O / groups, kernel..] as the weight of the convolution that undoes one: channels and
// results change places, kernels are read backwards.
Tensor transposed_weight(const Conv& c) {
  NodeRef weight =
      reshape_node(node_of(c.weight), grouped_sizes(c));  // [groups, C, O / groups, ..]
  std::vector<int64_t> order{0, 2, 1}, flipped;
  for (size_t i = 0; i < c.space; ++i) {
    order.push_back(static_cast<int64_t>(3 + i));
    flipped.push_back(static_cast<int64_t>(3 + i));
  }
  return wrap(flip_node(permute_node(weight, order), flipped));
}

// The adjoint of a convolution with this stride: put zeros between the elements of x, then slide
// the flipped kernels over it one by one. The result has (n - 1) * stride - 2 * padding + extent +
// output_padding elements.
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

  std::vector<int64_t> before, after;
  for (size_t i = 0; i < space; ++i) {
    Window& w = c.windows[i];
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
    before.push_back(w.extent() - 1 - w.padding);
    // insert_zeros() left stride - 1 zeros after the last element.
    after.push_back(w.extent() - 1 - w.padding + extra[i] - (w.stride - 1));
  }
  Tensor wide = wrap(pad_or_cut(insert_zeros(node_of(c.x), c.windows), before, after));
  std::vector<Window> windows = c.windows;
  for (Window& w : windows) w = {w.kernel, 1, w.dilation, 0};
  return add_bias(convolve(wide, transposed_weight(c), windows), c.bias);
}

// The input whose convolution is x: the kernels turned round slide over what was padded away.
Tensor input_gradient(Conv c, const Tensor& gradient) {
  std::vector<int64_t> around;
  for (const Window& w : c.windows) around.push_back(w.extent() - 1 - w.padding);
  Tensor wide = wrap(pad_or_cut(node_of(gradient), around, around));
  for (Window& w : c.windows) w.padding = 0;
  return convolve(wide, transposed_weight(c), c.windows);
}

}  // namespace

std::vector<Tensor> conv_gradient(NodeRef node, const Tensor& gradient) {
  Conv c = conv_of(node);
  return {input_gradient(c, gradient), weight_gradient(c, gradient)};
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
