// Pools and unfold: a reduction over sliding windows, or over the uneven parts of an axis.
#include <algorithm>

#include <fmt/format.h>

#include <anneal/functional.h>

#include "tensor/lift.h"
#include "tensor/wide.h"
#include "tensor/windows.h"

namespace anneal {
namespace {

std::vector<int64_t> last_axes(size_t rank, size_t count) {
  std::vector<int64_t> axes;
  for (size_t axis = rank - count; axis < rank; ++axis) axes.push_back(static_cast<int64_t>(axis));
  return axes;
}

void check_space(const Tensor& x, size_t axes, const char* what) {
  if (axes == 0)
    fail(fmt::format("{} is empty", what), fmt::format("give {} one number an axis", what));
  if (x.rank() < axes)
    fail(fmt::format("{} has {} numbers, but x is {}", what, axes, to_text(x.shape())),
         "it must have at most one number an axis: the last axes are pooled");
}

std::vector<Window> pool_windows(const Tensor& x, const std::vector<int64_t>& kernel,
                                 const PoolOptions& options) {
  check_space(x, kernel.size(), "kernel");
  return checked_windows(kernel, options.stride, options.dilation, options.padding);
}

// With more, a window could lie in the padding alone.
void check_half(const std::vector<Window>& windows) {
  for (const Window& w : windows)
    if (2 * w.padding > w.extent())
      fail(fmt::format("padding is {}, but a window spans {}", w.padding, w.extent()),
           "pad by at most half a window");
}

// ---- adaptive

// An axis of n elements in `parts` parts: part i goes from floor(i n / parts) up to
// ceil((i + 1) n / parts). The axis becomes [parts, n], and `mask` says what belongs to a part:
// t >= floor(i n / parts) is (t + 1) parts > i n, and t < ceil((i + 1) n / parts) is t parts < (i +
// 1) n.
Tensor part_mask(const Dim& size, int64_t parts) {
  Tensor n = literal_dim(size, DType::I64), i = unsqueeze(literal_arange(parts, DType::I64), 1);
  Tensor t = literal_arange(size, DType::I64);
  return ((t + 1) * parts > i * n) & (t * parts < (i + 1) * n);
}

struct Adaptive {
  // Reduces axes of a tensor. A mask, where there is one, says what counts along the last axis.
  Tensor (*even)(const Tensor& x, const Axes& axes);
  Tensor (*uneven)(const Tensor& x, const Tensor& mask);
};

// Parts of equal size are one reshape and one reduction; the other axes follow one by one.
Tensor adaptive(Tensor x, const std::vector<int64_t>& sizes, const Adaptive& kind) {
  check_space(x, sizes.size(), "sizes");
  size_t lead = x.rank() - sizes.size();
  Sizes split = x.shape();
  split.erase(split.begin() + static_cast<std::ptrdiff_t>(lead), split.end());
  std::vector<int64_t> even, uneven;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1) fail(fmt::format("a size is {}", sizes[i]), "sizes start at 1");
    int64_t axis = static_cast<int64_t>(lead + i);
    Dim size = x.dim(axis);
    if (size.min() < 1)
      fail(fmt::format("axis {} of {} can be empty", axis, to_text(x.shape())),
           "an empty axis has nothing to pool");
    bool divides = size % sizes[i] == 0;
    split.push_back(divides ? Dim(sizes[i]) : size);
    if (divides) {
      even.push_back(static_cast<int64_t>(split.size()));
      split.push_back(size / sizes[i]);
    } else {
      uneven.push_back(axis);
    }
  }
  if (!even.empty()) x = kind.even(reshape(x, split), Axes(even));
  for (int64_t axis : uneven) {
    Tensor last = transpose(x, axis, -1);
    Tensor mask = part_mask(last.dim(-1), sizes[static_cast<size_t>(axis) - lead]);
    x = transpose(kind.uneven(unsqueeze(last, -2), mask), axis, -1);
  }
  return x;
}

Tensor masked_mean(const Tensor& x, const Tensor& mask) {
  return sum(where(mask, x, 0), -1) / sum(cast(mask, x.dtype()), -1);
}

Tensor masked_max(const Tensor& x, const Tensor& mask) {
  return max(where(mask, x, wrap(make_const(lowest(x.dtype())))), -1);
}

}  // namespace

Tensor max_pool(const Operand& x, const std::vector<int64_t>& kernel, const PoolOptions& options) {
  CallScope call("max_pool", x.where());
  Tensor v = wrap(as_number(node_of(x)));
  std::vector<Window> windows = pool_windows(v, kernel, options);
  check_half(windows);
  Tensor patches = sliding_windows(pad_windows_lowest(v, windows), windows);
  return max(patches, Axes(last_axes(patches.rank(), kernel.size())));
}

Tensor avg_pool(const Operand& x, const std::vector<int64_t>& kernel, const PoolOptions& options) {
  CallScope call("avg_pool", x.where());
  Tensor v = widen(x);
  std::vector<Window> windows = pool_windows(v, kernel, options);
  check_half(windows);
  auto sums = [&](const Tensor& values) {
    Tensor patches = sliding_windows(pad_windows(values, windows), windows);
    return sum(patches, Axes(last_axes(patches.rank(), kernel.size())));
  };
  bool padded =
      std::any_of(windows.begin(), windows.end(), [](const Window& w) { return w.padding > 0; });
  if (padded && !options.count_padding) {
    Sizes space = v.shape();
    space.erase(space.begin(), space.end() - static_cast<std::ptrdiff_t>(kernel.size()));
    return cast(sums(v) / sums(literal(v.dtype(), 1, space)), real_dtype(x));
  }
  double count = 1;
  for (int64_t k : kernel) count *= static_cast<double>(k);
  return cast(sums(v) / count, real_dtype(x));
}

Tensor adaptive_avg_pool(const Operand& x, const std::vector<int64_t>& sizes) {
  CallScope call("adaptive_avg_pool", x.where());
  auto even = [](const Tensor& v, const Axes& axes) { return mean(v, axes); };
  return cast(adaptive(widen(x), sizes, {even, masked_mean}), real_dtype(x));
}

Tensor adaptive_max_pool(const Operand& x, const std::vector<int64_t>& sizes) {
  CallScope call("adaptive_max_pool", x.where());
  auto even = [](const Tensor& v, const Axes& axes) { return max(v, axes); };
  return adaptive(wrap(as_number(node_of(x))), sizes, {even, masked_max});
}

Tensor unfold(const Operand& x, const std::vector<int64_t>& kernel, const PoolOptions& options) {
  CallScope call("unfold", x.where());
  Tensor v = wrap(node_of(x));
  size_t space = kernel.size();
  if (v.rank() != space + 2 || space == 0)
    fail(fmt::format("x is {}, but a kernel of {} numbers needs {} axes", to_text(v.shape()), space,
                     space + 2),
         "the layout of x is [batch, channels, space..], with one number of the kernel a spatial "
         "axis");
  std::vector<Window> windows = pool_windows(v, kernel, options);
  Tensor patches = sliding_windows(pad_windows(v, windows), windows);
  Dim columns = 1, rows = v.dim(1);
  std::vector<int64_t> order{0, 1};
  for (size_t i = 0; i < space; ++i) {
    order.push_back(static_cast<int64_t>(2 + space + i));
    columns = columns * patches.dim(static_cast<int64_t>(2 + i));
    rows = rows * kernel[i];
  }
  for (size_t i = 0; i < space; ++i) order.push_back(static_cast<int64_t>(2 + i));
  return reshape(permute(patches, order), {v.dim(0), rows, columns});
}

}  // namespace anneal
