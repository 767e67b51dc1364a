// What parameters start as. Values are computed when the parameter is made, by programs that hold
// the draw as data: parameters of one shape share a kernel.
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include <anneal/nn.h>
#include <anneal/random.h>

#include "ir/dtype.h"
#include "tensor/lift.h"
#include "tensor/number_checks.h"

namespace anneal::nn {
namespace {

// erf(result) = x for -1 < x < 1: Giles' polynomials in w = -log(1 - x^2), right to f32, then
// Newton's method in f64: erf' (y) = 2 / sqrt(pi) exp(-y^2).
Tensor inverse_erf(const Tensor& x) {
  auto polynomial = [](const Tensor& w, std::initializer_list<double> coefficients) {
    Tensor sum = zeros_like(w);
    for (double coefficient : coefficients) sum = sum * w + coefficient;
    return sum;
  };
  const Tensor w = -log((1 - x) * (1 + x));
  Tensor central =
      polynomial(w - 2.5, {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                           0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941});
  Tensor tail = polynomial(
      sqrt(w) - 3.0, {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                      -0.0076224613, 0.00943887047, 1.00167406, 2.83297682});
  Tensor y = where(w < 5, central, tail) * x;
  for (int i = 0; i < 2; ++i) y = y - (erf(y) - x) * exp(y * y) * (std::sqrt(std::numbers::pi) / 2);
  return y;
}

double kaiming_deviation(const Sizes& sizes, const init::Kaiming& o) {
  const Fans fan = fans(sizes);
  const double count = static_cast<double>(o.fan == init::Fan::In ? fan.in : fan.out);
  return std::sqrt(2 / (1 + o.slope * o.slope) / count);
}

double xavier_deviation(const Sizes& sizes, double gain) {
  const Fans fan = fans(sizes);
  return gain * std::sqrt(2.0 / static_cast<double>(fan.in + fan.out));
}

Tensor symmetric(const Sizes& sizes, double bound, DType dtype) {
  return random_uniform(sizes, generator().key(), -bound, bound, dtype);
}

// Two draws: the generator must not give the second one to anyone else.
Tensor gaussian(const Sizes& sizes, double mean, double deviation, DType dtype) {
  const Tensor key = generator().key();
  generator().key();
  return random_normal(sizes, key, mean, deviation, dtype);
}

}  // namespace

Fans fans(const Sizes& weight, Location where) {
  CallScope call("fans", where);
  if (weight.size() < 2)
    fail(fmt::format("a weight {} has no fans", to_text(weight)),
         "fans are of weights [out, in, space..]; give another init to vectors");
  int64_t space = 1;
  for (size_t i = 2; i < weight.size(); ++i) space *= weight[i].value();
  return {weight[1].value() * space, weight[0].value() * space};
}

namespace init {

Init constant(double value) {
  return [value](const Sizes& sizes, DType dtype) { return full(sizes, value, dtype); };
}
Init zeros() { return constant(0); }
Init ones() { return constant(1); }

Init literal(Tensor value) {
  return [value = std::move(value)](const Sizes& sizes, DType dtype) {
    Sizes given = value.shape();
    if (to_text(given) != to_text(sizes))
      fail(fmt::format("the literal is {}, the parameter {}", to_text(given), to_text(sizes)),
           "give a value of the parameter's shape");
    return cast(value, dtype);
  };
}

Init uniform(double low, double high) {
  return [=](const Sizes& sizes, DType dtype) {
    return random_uniform(sizes, generator().key(), low, high, dtype);
  };
}

Init normal(double mean, double deviation) {
  return [=](const Sizes& sizes, DType dtype) { return gaussian(sizes, mean, deviation, dtype); };
}

// The inverse of the distribution function, at a uniform between its values at the ends.
Init trunc_normal(double mean, double deviation, double low, double high) {
  check_finite("the mean", mean);
  check_above_zero("the deviation", deviation);
  return [=](const Sizes& sizes, DType dtype) {
    auto place = [&](double end) {  // in -1..1
      return std::erf((end - mean) / deviation / std::numbers::sqrt2);
    };
    Tensor x = random_uniform(sizes, generator().key(), place(low), place(high), DType::F64);
    Tensor value = inverse_erf(x) * (deviation * std::numbers::sqrt2) + mean;
    return cast(clamp(value, low, high), dtype);
  };
}

Init kaiming_uniform(const Kaiming& o) {
  check_finite("the slope", o.slope);
  return [o](const Sizes& sizes, DType dtype) {
    return symmetric(sizes, std::sqrt(3.0) * kaiming_deviation(sizes, o), dtype);
  };
}
Init kaiming_normal(const Kaiming& o) {
  check_finite("the slope", o.slope);
  return [o](const Sizes& sizes, DType dtype) {
    return gaussian(sizes, 0, kaiming_deviation(sizes, o), dtype);
  };
}
Init xavier_uniform(double gain) {
  check_not_negative("the gain", gain);
  return [gain](const Sizes& sizes, DType dtype) {
    return symmetric(sizes, std::sqrt(3.0) * xavier_deviation(sizes, gain), dtype);
  };
}
Init xavier_normal(double gain) {
  check_not_negative("the gain", gain);
  return [gain](const Sizes& sizes, DType dtype) {
    return gaussian(sizes, 0, xavier_deviation(sizes, gain), dtype);
  };
}

}  // namespace init
}  // namespace anneal::nn
