// Numbers in a row and the grids they span.
#include <cmath>

#include <fmt/format.h>

#include <anneal/tensor.h>

#include "tensor/movement.h"

namespace anneal {
namespace {

// In f64. Each half counts from its own end, so that both ends are exact.
Tensor spaced(double start, double stop, int64_t count) {
  if (count < 0) fail(fmt::format("the count is {}", count), "ask for 0 numbers or more");
  if (!std::isfinite(start) || !std::isfinite(stop))
    fail(fmt::format("cannot go from {} to {}", start, stop), "give two finite numbers");
  const double last = static_cast<double>(count - 1), step = count > 1 ? (stop - start) / last : 0;
  Tensor place = wrap(make_iota(DType::F64, static_dims({{count}}), 0));
  const int64_t half = count / 2;
  return where(place < static_cast<double>(half), place * step + start,
               stop - (last - place) * step);
}

}  // namespace

Tensor linspace(double start, double stop, int64_t count, DType dtype, Location where) {
  CallScope call("linspace", where);
  return wrap_new(node_of(cast(spaced(start, count == 1 ? start : stop, count), dtype)));
}

Tensor logspace(double start, double stop, int64_t count, double base, DType dtype,
                Location where) {
  CallScope call("logspace", where);
  if (!(base > 0)) fail(fmt::format("the base is {}", base), "give one above 0");
  Tensor powers = pow(base, spaced(start, count == 1 ? start : stop, count));
  return wrap_new(node_of(cast(powers, dtype)));
}

// The first tensor varies along the first axis, as "ij" does in NumPy and PyTorch.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, Location where) {
  CallScope call("meshgrid", where);
  std::vector<NodeRef> dims;
  for (size_t i = 0; i < axes.size(); ++i) {
    NodeRef axis = node_of(axes[i]);
    if (axis->rank() > 1)
      fail(fmt::format("tensor {} is {}", i, shape_text(axis)),
           "give tensors of one axis, or scalars; flatten() makes one axis");
    dims.push_back(axis->rank() == 0 ? index_const(1) : axis->dim(0));
  }
  check_sizes(dims);
  std::vector<Tensor> grids;
  for (size_t i = 0; i < axes.size(); ++i) {
    std::vector<NodeRef> line(dims.size(), index_const(1));
    line[i] = dims[i];
    grids.push_back(wrap(expand_node(reshape_node(node_of(axes[i]), line), dims)));
  }
  return grids;
}

}  // namespace anneal
