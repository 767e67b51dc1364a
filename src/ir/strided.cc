#include "ir/strided.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/call_site.h"
#include "base/checked.h"

namespace anneal::strided {
namespace {

// Of one tensor. Eight bytes an element: 64 GiB, or all that 32 bits of an address reach.
constexpr int64_t kMaxElements = std::min<int64_t>(int64_t{1} << 33, PTRDIFF_MAX / 8);

// The sizes multiplied, with zeros left out: what the strides of an empty tensor must still fit.
std::optional<int64_t> checked_extent(const Sizes& shape) {
  std::optional<int64_t> extent = 1;
  for (int64_t size : shape)
    if (extent && size != 0) extent = checked_mul(*extent, size);
  return extent;
}

}  // namespace

bool is_empty(const Sizes& shape) {
  return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

int64_t count_elements(const Sizes& shape) {
  for (int64_t size : shape)
    if (size < 0) fail(fmt::format("a size is negative: [{}]", fmt::join(shape, ", ")));
  const std::optional<int64_t> extent = checked_extent(shape);
  if (!extent || (*extent > kMaxElements && !is_empty(shape)))
    fail(fmt::format("[{}] has too many elements, at most {}", fmt::join(shape, ", "),
                     kMaxElements));
  return is_empty(shape) ? 0 : *extent;
}

Sizes row_major(const Sizes& shape) {
  Sizes strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= std::max<int64_t>(shape[axis], 1);
  }
  return strides;
}

Fresh allocate(DType dtype, Sizes shape) {
  const int64_t count = count_elements(shape);
  Fresh result{{dtype, shape, row_major(shape), 0, nullptr}, nullptr, count};
  try {
    result.data = std::make_shared_for_overwrite<uint64_t[]>(static_cast<size_t>(count));
  } catch (const std::bad_alloc&) {
    fail(fmt::format("no memory for [{}], {} elements", fmt::join(shape, ", "), count));
  }
  return result;
}

View view_of(const Value& value) {
  if (count_elements(value.shape) != value.size())
    throw InternalError(fmt::format("a value of shape [{}] has {} elements",
                                    fmt::join(value.shape, ", "), value.size()));
  std::shared_ptr<const uint64_t[]> borrowed(std::shared_ptr<void>(), value.payload.data());
  return {value.dtype, value.shape, row_major(value.shape), 0, std::move(borrowed)};
}

View repeated(Scalar value, Sizes shape) {
  count_elements(shape);
  Fresh one = allocate(value.dtype(), {});
  one.elements()[0] = value.bits();
  View view = std::move(one).done();
  view.strides.assign(shape.size(), 0);
  view.shape = std::move(shape);
  return view;
}

int64_t integer(const View& scalar) { return static_cast<int64_t>(scalar.data[scalar.offset]); }

void copy_elements(const View& from, uint64_t* to, const Layout& where) {
  const uint64_t* source = from.data.get();
  walk<2>(from.shape, {layout(from), where}, [=](int64_t count, const auto& at, const auto& step) {
    for (int64_t i = 0; i < count; ++i) to[at[1] + i * step[1]] = source[at[0] + i * step[0]];
  });
}

Fresh copy_of(const View& view) {
  Fresh copy = allocate(view.dtype, view.shape);
  copy_elements(view, copy.data.get(), layout(copy.view));
  return copy;
}

Value value_of(const View& view) {
  Value value{view.dtype, view.shape, {}};
  const size_t count = static_cast<size_t>(count_elements(view.shape));
  const Sizes strides = row_major(view.shape);
  if (count != 0 && view.strides == strides) {
    const uint64_t* first = view.data.get() + view.offset;
    value.payload.assign(first, first + count);
  } else {
    value.payload.resize(count);
    copy_elements(view, value.payload.data(), {strides, 0});
  }
  return value;
}

}  // namespace anneal::strided
