// Tensors from nothing, from numbers and from memory.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include <anneal/tensor.h>

#include "base/checked.h"
#include "base/traffic.h"
#include "tensor/lift.h"

namespace anneal {
namespace {

std::vector<NodeRef> checked_dims(const Sizes& sizes) {
  std::vector<NodeRef> dims = nodes_of(sizes);
  for (NodeRef dim : dims)
    check_nonnegative(dim, fmt::format("size {} of {}", to_text(dim), text_of(dims)),
                      "sizes start at 0");
  check_sizes(dims);
  return dims;
}

bool is_whole(const Number& number) {
  return number.kind() != Number::Kind::Float && !number.above_i64();
}

// Of a count from `first` to `last`.
void check_counts(const Number& first, const Number& last, DType dtype) {
  if (is_bool(dtype)) fail("bool cannot count", "use an integer or float dtype");
  scalar_of(first, dtype);
  scalar_of(last, dtype);
}

int64_t checked_count(double count, const Number& start, const Number& stop, const Number& step) {
  if (step.real() == 0 || !std::isfinite(count))
    fail(fmt::format("cannot go from {} to {} by {}", start.text(), stop.text(), step.text()),
         "give a step that is not 0");
  if (count > 1e15) fail(fmt::format("{} elements are too many", count), "take a larger step");
  return static_cast<int64_t>(std::max(count, 0.0));
}

// The size that -1 stands for is what `count` elements leave for it.
Sizes with_inferred_size(Sizes sizes, int64_t count) {
  auto is_open = [](const Dim& size) { return size.is_static() && size.value() == -1; };
  auto open = std::ranges::find_if(sizes, is_open);
  if (open == sizes.end()) return sizes;
  int64_t others = 1;
  for (const Dim& size : sizes)
    if (size.is_static() && !is_open(size)) others = checked_mul(others, size.value()).value_or(0);
  if (others < 1 || count % others != 0 || std::ranges::count_if(sizes, is_open) > 1)
    fail(fmt::format("{} values do not tell what -1 in {} is", count, to_text(sizes)),
         "only one size can be -1, and the others must divide the number of values");
  *open = count / others;
  return sizes;
}

}  // namespace

Tensor full(const Sizes& sizes, Number value, DType dtype, Location where) {
  CallScope call("full", where);
  check_storable(dtype);
  return wrap_new(make_const(scalar_of(value, dtype), checked_dims(sizes)));
}

Tensor zeros(const Sizes& sizes, DType dtype, Location where) {
  CallScope call("zeros", where);
  return full(sizes, 0, dtype, where);
}

Tensor ones(const Sizes& sizes, DType dtype, Location where) {
  CallScope call("ones", where);
  return full(sizes, 1, dtype, where);
}

Tensor full_like(const Operand& x, Number value) {
  CallScope call("full_like", x.where());
  NodeRef like = node_of(x);
  return wrap_new(make_const(scalar_of(value, like->dtype), like->shape->dims()));
}
Tensor zeros_like(const Operand& x) {
  CallScope call("zeros_like", x.where());
  return full_like(x, 0);
}
Tensor ones_like(const Operand& x) {
  CallScope call("ones_like", x.where());
  return full_like(x, 1);
}

Tensor arange(const Dim& stop, DType dtype, Location where) {
  CallScope call("arange", where);
  check_storable(dtype);
  std::vector<NodeRef> dims = checked_dims({stop});
  check_counts(0, stop.is_static() ? std::max<int64_t>(stop.value(), 1) - 1 : 0, dtype);
  return wrap_new(make_iota(dtype, dims, 0));
}

Tensor arange(Number start, Number stop, Number step, DType dtype, Location where) {
  CallScope call("arange", where);
  check_storable(dtype);
  const double span = (stop.real() - start.real()) / step.real();
  int64_t count = checked_count(std::ceil(span), start, stop, step);
  Number last = start.real() + static_cast<double>(count - 1) * step.real();
  const bool whole = is_int(dtype) && is_whole(start) && is_whole(stop) && is_whole(step);
  // Integers are counted as integers, as f64 has no room for large ones.
  std::optional<int64_t> back = checked_sub(start.integer(), stop.integer());
  if (whole && back) {
    count = std::max<int64_t>(-floor_div(*back, step.integer()), 0);
    last = start.integer() + (count - 1) * step.integer();
  }
  if (count > 0) check_counts(start, last, dtype);
  // Others in f64 and rounded once, so that neither large steps nor narrow dtypes drift.
  Tensor position = literal_arange(Dim(count), whole ? DType::I64 : DType::F64);
  return wrap_new(node_of(cast(position * Operand(step) + Operand(start), dtype)));
}

Tensor eye(const Dim& rows, const std::optional<Dim>& columns, DType dtype, Location where) {
  CallScope call("eye", where);
  check_storable(dtype);
  std::vector<NodeRef> dims = checked_dims({rows, columns.value_or(rows)});
  Tensor diagonal = wrap(make_iota(DType::I32, dims, 0)) == wrap(make_iota(DType::I32, dims, 1));
  return wrap_new(make_cast(node_of(diagonal), dtype));
}

Tensor from_dim(const Dim& dim, DType dtype, Location where) {
  CallScope call("from_dim", where);
  check_storable(dtype);
  NodeRef node = node_of(dim);
  if (is_static(node)) scalar_of(static_value(node), dtype);  // an error where it does not fit
  return wrap_new(node_of(literal_dim(dim, dtype)));
}

Tensor input(std::string_view name, const Sizes& sizes, DType dtype, Location where) {
  CallScope call("input", where);
  check_storable(dtype);
  if (name.empty()) fail("an input needs a name", "the name is how it is bound and reported");
  return wrap(make_buffer(name, 0, dtype, checked_dims(sizes)));
}

Tensor parameter(std::string_view name, const Operand& initial) {
  CallScope call("parameter", initial.where());
  NodeRef value = node_of(initial);
  if (name.empty()) fail("a parameter needs a name", "the name is how it is saved and reported");
  if (!is_static(*value->shape))
    fail(fmt::format("parameter \"{}\" has the symbolic shape {}", name, shape_text(value)),
         "what is stored needs sizes that are numbers");
  Tensor start = evaluate({wrap(value)}, {}, initial.where())[0];
  NodeRef buffer = make_buffer(name, new_buffer_slot(), value->dtype, value->shape->dims());
  // A copy: the initial value may be memory that something else reads.
  current_graph().store(buffer, std::make_shared<Storage>(*current_graph().stored(node_of(start))));
  return wrap(buffer);
}

Tensor from_bytes(std::span<const std::byte> bytes, const Sizes& sizes, DType dtype,
                  Location where) {
  CallScope call("from_data", where);
  check_storable(dtype);
  const int64_t given = static_cast<int64_t>(bytes.size() / byte_size(dtype));
  std::vector<NodeRef> dims = checked_dims(with_inferred_size(sizes, given));
  std::vector<int64_t> shape;
  for (NodeRef dim : dims) {
    if (!is_static(dim))
      fail(fmt::format("data cannot have the symbolic shape {}", text_of(dims)),
           "make an input() of that shape and bind the data when running");
    shape.push_back(static_value(dim));
  }
  NodeRef buffer = make_buffer("", new_buffer_slot(), dtype, dims);
  int64_t wanted = element_count(*buffer->shape);
  if (given != wanted || bytes.size() % byte_size(dtype) != 0)
    fail(fmt::format("{} values do not fill {}, which has {}", given, shape_text(buffer), wanted),
         "give sizes whose product is the number of values");
  traffic().host_to_device += static_cast<int64_t>(bytes.size());
  current_graph().store(buffer, std::make_shared<Storage>(dtype, std::move(shape), Bytes(bytes)));
  return wrap(buffer);
}

}  // namespace anneal
