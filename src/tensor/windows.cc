#include "tensor/windows.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tensor/movement.h"

namespace anneal {
namespace {

// How one axis of size n is read. y[o, j] = x[o * stride + j * dilation] comes from one of two
// arrangements of what the windows use of the axis:
//
// Windows that do not overlap are pieces of a row: `padded` = windows * stride elements, cut into
// [windows, stride], of which the first `kernel` columns are the windows. One row, `kernel`
// columns.
//
// Other windows come from copies of the row. Written one after another and cut again at a pitch
// that is `dilation` longer, row j begins j * dilation further on; one row for each element of the
// kernel, one column for its first element:
//
//   x = a b c d, dilation 1   a b c d a b c d a b c d   cut at pitch 5   a b c d a
//                                                                        b c d a b
//
// What wraps round lies beyond the windows. The row is padded so that kernel + 1 copies suffice and
// so that the pitch has room for `windows` strides.
struct Plan {
  Dim windows, used, padded, pitch;
  int64_t added = 0;             // zeros after what is used
  int64_t copies = 1, rows = 1;  // rows * columns is the kernel
  int64_t columns = 1, stride = 1;
};

Plan plan(const Dim& size, const Window& w) {
  int64_t extent = w.extent();
  Dim windows = (size - extent) / w.stride + 1;
  Dim used = (windows - 1) * w.stride + extent;
  if (extent == w.kernel && w.kernel <= w.stride) {
    int64_t added = w.stride - w.kernel;
    Dim padded = used + added;
    return {windows, used, padded, padded, added, 1, 1, w.kernel, w.stride};
  }
  int64_t added = std::max(w.kernel * w.dilation, w.stride - w.dilation) - extent;
  Dim padded = used + added;
  return {windows, used, padded, padded + w.dilation, added, w.kernel + 1, w.kernel, 1, w.stride};
}

void check_fits(const Tensor& x, size_t axis, const Window& w) {
  Dim size = x.dim(static_cast<int64_t>(axis));
  if (size.min() >= w.extent()) return;
  std::string padded = w.padding ? fmt::format(" with its padding of {}", w.padding) : "";
  if (size.is_static())
    fail(fmt::format("a window spans {}, but axis {} has {} elements{}", w.extent(), axis,
                     size.value(), padded),
         "use a smaller kernel or dilation, or pad more");
  fail(fmt::format("a window spans {}, but axis {} of size {} can have as few as {} elements{}",
                   w.extent(), axis, size.text(), std::max<int64_t>(size.min(), 0), padded),
       "give the variable a larger minimum, or pad more");
}

// The leading sizes of `node`, then for each plan the sizes that `each` appends.
template <typename Each>
std::vector<NodeRef> dims_with(NodeRef node, size_t lead, const std::vector<Plan>& plans,
                               Each each) {
  std::vector<NodeRef> dims(node->shape->dims().begin(),
                            node->shape->dims().begin() + static_cast<std::ptrdiff_t>(lead));
  for (const Plan& p : plans)
    for (const Dim& dim : each(p)) dims.push_back(node_of(dim));
  return dims;
}

// Keeps the first elements of the axes after `lead`.
template <typename Each>
NodeRef shrink_to(NodeRef node, size_t lead, const std::vector<Plan>& plans, Each each) {
  std::vector<NodeRef> pairs;
  for (NodeRef end : dims_with(node, lead, plans, each)) {
    pairs.push_back(index_const(0));
    pairs.push_back(end);
  }
  return shrink_node(node, pairs);
}

NodeRef pad_after(NodeRef node, size_t lead, const std::vector<Plan>& plans) {
  std::vector<NodeRef> pairs(2 * lead, index_const(0));
  for (const Plan& p : plans) {
    pairs.push_back(index_const(0));
    pairs.push_back(index_const(p.added));
  }
  return pad_node(node, pairs);
}

NodeRef pad_both(NodeRef node, const std::vector<Window>& windows) {
  std::vector<NodeRef> pairs(2 * (node->rank() - windows.size()), index_const(0));
  for (const Window& w : windows) pairs.insert(pairs.end(), 2, index_const(w.padding));
  return pad_node(node, pairs);
}

}  // namespace

std::vector<int64_t> one_for_each(const char* what, const std::vector<int64_t>& numbers,
                                  size_t axes, int64_t least) {
  if (numbers.size() != 1 && numbers.size() != axes)
    fail(fmt::format("{} has {} numbers for {} spatial axes", what, numbers.size(), axes),
         "give one number for all axes, or one for each");
  for (int64_t number : numbers)
    if (number < least)
      fail(fmt::format("{} is [{}]", what, fmt::join(numbers, ", ")),
           fmt::format("{} starts at {}", what, least));
  return numbers.size() == axes ? numbers : std::vector<int64_t>(axes, numbers[0]);
}

std::vector<Window> checked_windows(const std::vector<int64_t>& kernel,
                                    const std::vector<int64_t>& stride,
                                    const std::vector<int64_t>& dilation,
                                    const std::vector<int64_t>& padding) {
  size_t axes = kernel.size();
  one_for_each("kernel", kernel, axes, 1);
  std::vector<int64_t> strides = stride.empty() ? kernel : one_for_each("stride", stride, axes, 1);
  std::vector<int64_t> dilations = one_for_each("dilation", dilation, axes, 1);
  std::vector<int64_t> paddings = one_for_each("padding", padding, axes, 0);
  std::vector<Window> windows;
  // A single element has no distance to a next one.
  for (size_t i = 0; i < axes; ++i)
    windows.push_back({kernel[i], strides[i], kernel[i] == 1 ? 1 : dilations[i], paddings[i]});
  return windows;
}

Tensor pad_windows(const Tensor& x, const std::vector<Window>& windows) {
  return wrap(pad_both(node_of(x), windows));
}

Tensor pad_windows_lowest(const Tensor& x, const std::vector<Window>& windows) {
  NodeRef node = node_of(x), padded = pad_both(node, windows);
  if (padded == node) return x;
  NodeRef inside =
      pad_both(make_const(Scalar::of_int(DType::Bool, 1), node->shape->dims()), windows);
  NodeRef outside = make_const(lowest(node->dtype), padded->shape->dims());
  return wrap(make(Op::Where, {inside, padded, outside}));
}

Tensor sliding_windows(const Tensor& x, const std::vector<Window>& windows) {
  NodeRef node = node_of(x);
  size_t lead = node->rank() - windows.size();
  std::vector<Plan> plans;
  for (size_t i = 0; i < windows.size(); ++i) {
    check_fits(x, lead + i, windows[i]);
    plans.push_back(plan(Dim(node->dim(lead + i)), windows[i]));
  }
  auto reshape_to = [&](auto each) {
    node = reshape_node(node, dims_with(node, lead, plans, each));
  };

  check_sizes(
      dims_with(node, lead, plans, [](const Plan& p) { return Sizes{p.copies, p.padded}; }));
  node = shrink_to(node, lead, plans, [](const Plan& p) { return Sizes{p.used}; });
  node = pad_after(node, lead, plans);
  // Copies of the row, cut again at another pitch.
  reshape_to([](const Plan& p) { return Sizes{1, p.padded}; });
  node = expand_node(
      node, dims_with(node, lead, plans, [](const Plan& p) { return Sizes{p.copies, p.padded}; }));
  reshape_to([](const Plan& p) { return Sizes{p.padded * p.copies}; });
  node = shrink_to(node, lead, plans, [](const Plan& p) { return Sizes{p.pitch * p.rows}; });
  reshape_to([](const Plan& p) { return Sizes{p.rows, p.pitch}; });
  // Where the windows begin, and what of each stride they read.
  node = shrink_to(node, lead, plans,
                   [](const Plan& p) { return Sizes{p.rows, p.windows * p.stride}; });
  reshape_to([](const Plan& p) { return Sizes{p.rows, p.windows, p.stride}; });
  node = shrink_to(node, lead, plans,
                   [](const Plan& p) { return Sizes{p.rows, p.windows, p.columns}; });

  // [.., (rows, windows, columns)..] becomes [.., windows.., kernel..].
  std::vector<int64_t> order;
  for (size_t axis = 0; axis < lead; ++axis) order.push_back(static_cast<int64_t>(axis));
  for (size_t i = 0; i < plans.size(); ++i) order.push_back(static_cast<int64_t>(lead + 3 * i + 1));
  for (size_t i = 0; i < plans.size(); ++i) {
    order.push_back(static_cast<int64_t>(lead + 3 * i));
    order.push_back(static_cast<int64_t>(lead + 3 * i + 2));
  }
  node = permute_node(node, order);
  std::vector<NodeRef> dims =
      dims_with(node, lead, plans, [](const Plan& p) { return Sizes{p.windows}; });
  for (const Window& w : windows) dims.push_back(index_const(w.kernel));
  return wrap(reshape_node(node, dims));
}

}  // namespace anneal
