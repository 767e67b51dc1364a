// Tensors in the interpreter's memory: strided views, and loops over them in row-major order.
// Knows shapes and memory, not ops.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "ir/interpreter.h"

namespace anneal::strided {

using Sizes = std::vector<int64_t>;

// Elements somewhere in memory: the one at coordinates c is data[offset + sum of c * strides].
// A stride of 0 repeats, a negative one reads backwards. Views share memory; none writes to it.
struct View {
  DType dtype = DType::F32;
  Sizes shape, strides;
  int64_t offset = 0;
  std::shared_ptr<const uint64_t[]> data;
};

// A view that is still being written: row-major, all its own.
struct Fresh {
  View view;
  std::shared_ptr<uint64_t[]> data;
  int64_t count = 0;

  std::span<uint64_t> elements() const { return {data.get(), static_cast<size_t>(count)}; }
  View done() && {
    view.data = std::move(data);
    return std::move(view);
  }
};

bool is_empty(const Sizes& shape);
// An error for negative sizes and for more elements than memory could hold.
int64_t count_elements(const Sizes& shape);
Sizes row_major(const Sizes& shape);  // strides, of a shape that was counted

Fresh allocate(DType dtype, Sizes shape);
View view_of(const Value& value);          // shares the value's memory
View repeated(Scalar value, Sizes shape);  // one element, everywhere in the shape
Value value_of(const View& view);
int64_t integer(const View& scalar);

struct Layout {
  const Sizes& strides;
  int64_t offset;
};

inline Layout layout(const View& view) { return {view.strides, view.offset}; }

// Visits a shape in row-major order with N operands, each at its own place. Calls
// row(count, places, steps) for runs of elements that are evenly spaced in every operand; axes that
// all operands cross evenly are one run.
template <size_t N, typename Row>
void walk(const Sizes& shape, const std::array<Layout, N>& operands, Row row) {
  struct Axis {
    int64_t size;
    std::array<int64_t, N> steps;
  };
  if (is_empty(shape)) return;
  std::vector<Axis> axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    Axis axis{shape[i], {}};
    bool even = !axes.empty();
    for (size_t k = 0; k < N; ++k) {
      axis.steps[k] = operands[k].strides[i];
      even = even && axes.back().steps[k] == axis.steps[k] * axis.size;
    }
    if (even) {
      axis.size *= axes.back().size;
      axes.back() = axis;
    } else {
      axes.push_back(axis);
    }
  }
  Axis inner{1, {}};
  if (!axes.empty()) {
    inner = axes.back();
    axes.pop_back();
  }
  std::array<int64_t, N> places;
  for (size_t k = 0; k < N; ++k) places[k] = operands[k].offset;
  Sizes counters(axes.size(), 0);
  for (;;) {
    row(inner.size, places, inner.steps);
    size_t axis = axes.size();
    for (; axis > 0; --axis) {
      const Axis& outer = axes[axis - 1];
      const bool more = ++counters[axis - 1] < outer.size;
      const int64_t times = more ? 1 : 1 - outer.size;  // one forward, or back to the start
      for (size_t k = 0; k < N; ++k) places[k] += outer.steps[k] * times;
      if (more) break;
      counters[axis - 1] = 0;
    }
    if (axis == 0) return;
  }
}

// Copies a view's elements to places given by strides.
void copy_elements(const View& from, uint64_t* to, const Layout& where);
Fresh copy_of(const View& view);

}  // namespace anneal::strided
