// Resizing the space of images. An axis at a time: elements are chosen, or pairs of neighbours
// mixed, by places computed as PyTorch computes them, so that results are the same to the pixel.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <anneal/functional.h>

#include "symbolic/simplify.h"
#include "tensor/movement.h"
#include "tensor/wide.h"

namespace anneal {
namespace {

// One axis of space and what becomes of it.
struct Resized {
  int64_t axis;
  Dim from, to;
  double scale;  // as given; 0: it follows from the sizes
};

Dim scaled_size(const Dim& from, double scale) {
  if (!(scale > 0) || !std::isfinite(scale))
    fail(fmt::format("a scale is {}", scale), "give numbers above 0");
  if (from.is_static())
    return static_cast<int64_t>(std::floor(static_cast<double>(from.value()) * scale));
  if (scale == std::floor(scale)) return from * static_cast<int64_t>(scale);
  if (1 / scale == std::floor(1 / scale)) return from / static_cast<int64_t>(1 / scale);
  fail(fmt::format("the symbolic size {} cannot be scaled by {}", from.text(), scale),
       "scale it by a whole number or a part of one, or give the size");
}

template <typename T>
const T& of_axis(const std::vector<T>& numbers, size_t axis, size_t axes, const char* what) {
  if (numbers.size() != 1 && numbers.size() != axes)
    fail(fmt::format("{} has {} numbers for {} axes of space", what, numbers.size(), axes),
         "give one for all, or one each");
  return numbers[numbers.size() == 1 ? 0 : axis];
}

std::vector<Resized> resized_axes(const Tensor& x, const InterpolateOptions& options) {
  if (x.rank() < 3)
    fail(fmt::format("x is {}", to_text(x.shape())), "give [batch, channels, space..]");
  if (options.size.empty() == options.scale.empty())
    fail(options.size.empty() ? "neither a size nor a scale is given"
                              : "a size and a scale are given",
         "give one of them");
  const size_t axes = x.rank() - 2;
  std::vector<Resized> result;
  for (size_t i = 0; i < axes; ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    Resized resized{axis, x.dim(axis), 0, 0};
    if (options.scale.empty()) {
      resized.to = of_axis(options.size, i, axes, "size");
    } else {
      resized.scale = of_axis(options.scale, i, axes, "scale");
      resized.to = scaled_size(resized.from, resized.scale);
    }
    if (resized.from.min() < 1 || resized.to.min() < 1)
      fail(
          fmt::format("axis {} of {} would become {}", axis, to_text(x.shape()), resized.to.text()),
          "both sizes start at 1");
    result.push_back(resized);
  }
  return result;
}

Tensor number(const Dim& size, DType dtype) { return wrap(spread(node_of(size), dtype, {})); }

// 0, 1, 2.. along the new axis.
Tensor new_positions(const Resized& r, DType dtype) {
  return wrap(make_iota(dtype, std::vector{node_of(r.to)}, 0));
}

// The dtype of products of positions and sizes.
DType whole_dtype(const Resized& r) {
  constexpr int64_t kMost = int64_t{1} << 28;
  return r.from.max() < kMost / r.to.max() ? DType::I32 : DType::I64;
}

// ---- nearest

// Whether element i of the new axis is element place(i, factor) of the old one, for numbers rounded
// to Real.
template <typename Real>
bool places_are(const Resized& r, int64_t (*place)(int64_t i, int64_t factor), int64_t factor) {
  const int64_t from = r.from.value(), to = r.to.value();
  const Real pitch = r.scale > 0 ? static_cast<Real>(1 / r.scale)
                                 : static_cast<Real>(from) / static_cast<Real>(to);
  for (int64_t i = 0; i < to; ++i) {
    const auto at = static_cast<int64_t>(std::floor(static_cast<Real>(i) * pitch));
    if (std::min(at, from - 1) != place(i, factor)) return false;
  }
  return true;
}

// By how much elements are repeated (times) or skipped (every), where that is all there is to do.
struct WholeFactor {
  int64_t times = 0, every = 0;
};
template <typename Real>
WholeFactor whole_factor(const Resized& r) {
  if (!r.from.is_static() || !r.to.is_static()) return {};
  const int64_t from = r.from.value(), to = r.to.value();
  auto repeats = [](int64_t i, int64_t factor) { return i / factor; };
  auto skips = [](int64_t i, int64_t factor) { return i * factor; };
  if (to % from == 0 && places_are<Real>(r, repeats, to / from)) return {.times = to / from};
  if (from % to == 0 && places_are<Real>(r, skips, from / to)) return {.every = from / to};
  return {};
}

// Rounded as PyTorch rounds them where sizes are numbers, else exact.
Tensor nearest_places(const Resized& r, DType dtype) {
  if (r.scale == 0 && !(r.from.is_static() && r.to.is_static())) {
    const DType whole = whole_dtype(r);
    const Tensor place = new_positions(r, whole) * number(r.from, whole);
    return cast(floor_divide(place, number(r.to, whole)), DType::I32);
  }
  const double pitch =
      r.scale > 0 ? 1 / r.scale
                  : static_cast<double>(r.from.value()) / static_cast<double>(r.to.value());
  return cast(floor(new_positions(r, dtype) * wrap(make_const(dtype, pitch))), DType::I32);
}

Tensor nearest(const Tensor& x, const Resized& r) {
  if (r.from == r.to) return x;
  if (r.to == r.from * 2) return repeat(x, 2, r.axis);
  // Whole factors need no look-up.
  const DType dtype = wide_dtype(x.dtype());  // in which PyTorch counts
  const WholeFactor factor = dtype == DType::F64 ? whole_factor<double>(r) : whole_factor<float>(r);
  if (factor.times > 0) return repeat(x, factor.times, r.axis);
  if (factor.every > 0) {
    std::vector<Slice> slices(x.rank());
    slices[static_cast<size_t>(r.axis)].step = factor.every;
    return slice(x, slices);
  }
  const Tensor last = number(r.from - 1, DType::I32);
  return index_select(x, minimum(nearest_places(r, dtype), last), r.axis);
}

// ---- linear

// Between the elements `low` and `low` + 1 of the old axis, so far from the first of them.
struct Between {
  Tensor low, weight;
};

Between split_place(const Tensor& place, const Resized& r) {
  const Tensor whole = minimum(floor(place), number(r.from - 1, place.dtype()));
  return {cast(whole, DType::I32), place - whole};
}

// The centres of elements, or with aligned corners their places, keep their share of the axis. In
// whole numbers, as a place with many digits before the point has few behind it.
Between places_between(const Resized& r, bool align_corners, DType dtype) {
  if (r.scale > 0 && !align_corners)
    return split_place(maximum((new_positions(r, dtype) + 0.5) * (1 / r.scale) - 0.5, 0.0), r);
  const DType whole = whole_dtype(r);
  const Tensor i = new_positions(r, whole), from = number(r.from, whole), to = number(r.to, whole);
  const Tensor above = align_corners ? i * (from - 1) : maximum((i * 2 + 1) * from - to, 0);
  const Tensor below = align_corners ? maximum(to - 1, 1) : to * 2;
  const Tensor low = floor_divide(above, below);
  return {cast(low, DType::I32), cast(above - low * below, dtype) / cast(below, dtype)};
}

Tensor linear(const Tensor& x, const Resized& r, bool align_corners) {
  if (r.from == r.to && (r.scale == 0 || align_corners)) return x;
  const Between place = places_between(r, align_corners, x.dtype());
  const Tensor next = minimum(place.low + 1, number(r.from - 1, DType::I32));
  Sizes sizes(x.rank() - static_cast<size_t>(r.axis), 1);
  sizes[0] = r.to;
  const Tensor weight = reshape(place.weight, sizes);
  return index_select(x, place.low, r.axis) * (1 - weight) + index_select(x, next, r.axis) * weight;
}

}  // namespace

Tensor interpolate(const Operand& x, const InterpolateOptions& options) {
  CallScope call("interpolate", x.where());
  const bool is_nearest = options.mode == Interpolation::Nearest;
  if (is_nearest && options.align_corners)
    fail("nearest elements have no corners to align", "align_corners is for Interpolation::Linear");
  Tensor y = is_nearest ? wrap(node_of(x)) : widen(x);
  for (const Resized& axis : resized_axes(y, options))
    y = is_nearest ? nearest(y, axis) : linear(y, axis, options.align_corners);
  return is_nearest ? y : cast(y, real_dtype(x));
}

}  // namespace anneal
