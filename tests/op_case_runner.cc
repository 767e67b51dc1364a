// Runs programs of op cases and compares their results.
// Must not know any case.
#include "op_case_runner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "ir/dtype.h"

namespace anneal {
namespace {

std::string position_text(size_t position, const std::vector<int64_t>& shape) {
  std::vector<int64_t> coordinates(shape.size());
  int64_t rest = static_cast<int64_t>(position);
  for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) {
    coordinates[axis] = rest % shape[axis];
  }
  return fmt::format("[{}]", fmt::join(coordinates, ", "));
}

// How far beyond the tolerance, from 1; infinite for a NaN or an infinity that is not expected.
double excess(double got, double expected, double scale, const Tolerance& tolerance, bool special) {
  if (got == expected) return 0;
  if (special && std::isnan(got) && std::isnan(expected)) return 0;
  if (!std::isfinite(got) || !std::isfinite(expected)) {
    return std::numeric_limits<double>::infinity();
  }
  const double allowed = tolerance.relative * std::fabs(expected) + tolerance.absolute * scale;
  const double error = std::fabs(got - expected);
  return error <= allowed ? 0 : error / std::max(allowed, std::numeric_limits<double>::min());
}

}  // namespace

double Array::largest() const {
  double result = 0;
  for (double value : reals) {
    if (std::isfinite(value)) result = std::max(result, std::fabs(value));
  }
  return result;
}

std::vector<Array> run(const std::vector<Tensor>& tensors, const Bindings& bindings) {
  std::vector<Array> arrays;
  for (const Tensor& tensor : evaluate(tensors, bindings)) {
    Array array;
    array.dtype = tensor.dtype();
    for (const Dim& size : tensor.shape()) array.shape.push_back(size.value());
    if (is_int(array.dtype)) {
      array.integers = tensor.to_vector<int64_t>();
    } else {
      array.reals = tensor.to_vector<double>();
    }
    arrays.push_back(std::move(array));
  }
  return arrays;
}

Array run(const Tensor& tensor, const Bindings& bindings) {
  return run(std::vector<Tensor>{tensor}, bindings)[0];
}

std::string difference(const Array& got, const Array& expected, const Tolerance& tolerance,
                       bool special) {
  if (got.dtype != expected.dtype || got.shape != expected.shape) {
    return fmt::format("is {}[{}], expected {}[{}]", name(got.dtype), fmt::join(got.shape, ", "),
                       name(expected.dtype), fmt::join(expected.shape, ", "));
  }
  if (got.reals.size() != expected.reals.size() ||
      got.integers.size() != expected.integers.size()) {
    return fmt::format("has {} elements, expected {}", got.size(), expected.size());
  }
  for (size_t i = 0; i < got.integers.size(); ++i) {
    if (got.integers[i] != expected.integers[i]) {
      return fmt::format("is {} at {}, expected {}", got.integers[i], position_text(i, got.shape),
                         expected.integers[i]);
    }
  }
  const double scale = std::max(1.0, expected.largest());
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < got.reals.size(); ++i) {
    const double beyond = excess(got.reals[i], expected.reals[i], scale, tolerance, special);
    if (beyond > worst) {
      worst = beyond;
      where = i;
    }
  }
  if (worst == 0) return "";
  return fmt::format("is {} at {}, expected {}: off by {}, {:.3} times what \"{}\" allows",
                     got.reals[where], position_text(where, got.shape), expected.reals[where],
                     got.reals[where] - expected.reals[where], worst, tolerance.name);
}

void check_array(std::string_view what, const Array& got, const Array& expected,
                 const Tolerance& tolerance, bool special) {
  const std::string text = difference(got, expected, tolerance, special);
  CHECK_MESSAGE(text.empty(), what << " " << text);
}

Draws::Draws(std::string_view seed) : state_(0xcbf29ce484222325) {
  for (char c : seed) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
}

double Draws::uniform(double low, double high) {
  state_ = state_ * 6364136223846793005 + 1442695040888963407;
  const uint64_t mixed = (state_ ^ (state_ >> 29)) * 0xbf58476d1ce4e5b9;
  return low + (high - low) * static_cast<double>(mixed >> 44) * 0x1p-20;
}

std::vector<double> Draws::uniforms(size_t count, double low, double high) {
  std::vector<double> values(count);
  for (double& value : values) value = uniform(low, high);
  return values;
}

Variable symbolic_size() { return Variable("n", 3, 64); }

std::vector<int64_t> symbolic_bindings(const OpCase& op_case) {
  const int64_t size = std::max<int64_t>(3, op_case.symbolic_size());
  return {size, size + 2};
}

}  // namespace anneal
