// The functions of tensor/inverse_functions.cc, which are formulas over ops: their error in f32
// over all numbers, as kernels compute them, and their derivatives where formulas are delicate.
#include <functional>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/anneal.h>
#include <anneal/device.h>

#include "ir/build.h"
#include "kernel/body/math_rules.h"
#include "transform/simplify.h"
#include "ulp.h"

using namespace anneal;
using namespace anneal::testing;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Composed {
  std::string_view name;
  Tensor (*function)(const Operand& x);
  double (*exact)(double);
  double ulp;  // at most
};

const Composed kComposed[] = {
    {"asin", asin, std::asin, 3.5},    {"acos", acos, std::acos, 2.5},
    {"atan", atan, std::atan, 1.4},    {"acosh", acosh, std::acosh, 2.2},
    {"atanh", atanh, std::atanh, 2.0},
};

// As a kernel computes it: simplified, with its functions as arithmetic.
NodeRef lowered(const Tensor& value) {
  const NodeRef root = value.node();
  const std::vector<NodeRef> simple = simplify_program({&root, 1});
  return lower_math(simple)[0];
}

double first_gradient(Tensor (*function)(const Operand&), double at) {
  Tensor x = full({}, at, DType::F64);
  return grad(function(x), {x})[0].item<double>();
}
double first_tangent(Tensor (*function)(const Operand&), double at) {
  Tensor x = full({}, at, DType::F64);
  return jvp({function(x)}, {x}, {full({}, 1.0, DType::F64)})[0].item<double>();
}

}  // namespace

TEST_CASE("inverse functions: error over all f32") {
  std::string report;
  for (const Composed& row : kComposed) {
    const Tensor x = input("x", {});
    VectorMachine machine(lowered(row.function(x)), {x.node()});
    const Worst worst = sweep(machine, row.exact);
    report += fmt::format("\n  {}: at most {:.3f} ulp (at {})", row.name, worst.ulp, worst.a);
    CAPTURE(std::string(row.name));
    INFO("worst at " << worst.a << ": " << worst.got << " instead of " << worst.exact);
    CHECK(worst.ulp <= row.ulp);
    CHECK(worst.ulp > 0.49);
  }
  MESSAGE(report);
}

TEST_CASE("inverse functions: derivatives at zero and at the ends") {
  struct Row {
    Tensor (*function)(const Operand&);
    double at, slope;
  };
  const Row rows[] = {
      {asin, 0, 1},           {asin, -0.0, 1},        {asin, 1, kInfinity},  {acos, 0, -1},
      {acos, -1, -kInfinity}, {atan, 0, 1},           {atan, kInfinity, 0},  {asinh, 0, 1},
      {acosh, 1, kInfinity},  {atanh, 0, 1},          {atanh, 1, kInfinity}, {atanh, -1, kInfinity},
      {log1p, 0, 1},          {log1p, -1, kInfinity}, {expm1, 0, 1},         {expm1, -kInfinity, 0},
      {sinh, 0, 1},           {cosh, 0, 0},           {erfc, kInfinity, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.at);
    CAPTURE(&row - rows);
    CHECK(first_gradient(row.function, row.at) == row.slope);
    CHECK(first_tangent(row.function, row.at) == row.slope);
  }
}

TEST_CASE("inverse functions: logaddexp of equal and of infinite numbers") {
  struct Row {
    double a, b, value, slope;  // with respect to a
  };
  const Row rows[] = {
      {0, 0, std::log(2.0), 0.5},
      {1e308, 1e308, 1e308, 0.5},
      {kInfinity, kInfinity, kInfinity, 1},  // as if the first were larger
      {-kInfinity, -kInfinity, -kInfinity, 1},
      {kInfinity, -kInfinity, kInfinity, 1},
      {-kInfinity, 3, 3, 0},
      {1e308, -1e308, 1e308, 1},
      {-800, 0, 0, 0},
      {0, -40, std::log1p(std::exp(-40.0)), 1 / (1 + std::exp(-40.0))},
  };
  for (const Row& row : rows) {
    Tensor a = full({}, row.a, DType::F64), b = full({}, row.b, DType::F64);
    Tensor y = logaddexp(a, b);
    CAPTURE(row.a);
    CAPTURE(row.b);
    CHECK(y.item<double>() == row.value);
    CHECK(grad(y, {a})[0].item<double>() == doctest::Approx(row.slope));
  }
  // The second derivative at a tie is that of the function, 1/4.
  Tensor a = full({}, 1.0, DType::F64), b = full({}, 1.0, DType::F64);
  Tensor slope = grad(logaddexp(a, b), {a})[0];
  CHECK(grad(slope, {a})[0].item<double>() == doctest::Approx(0.25));
}

TEST_CASE("inverse functions: integers give f32, narrow floats themselves") {
  using Function = Tensor (*)(const Operand&);
  for (Function function : {Function(asin), Function(acos), Function(atan), Function(acosh),
                            Function(atanh), Function(log1p), Function(log10), Function(erfc)}) {
    CHECK(function(tensor({1, 1})).dtype() == DType::F32);
    CHECK(function(ones({2}, DType::BF16)).dtype() == DType::BF16);
  }
  CHECK(atan2(tensor({1}), tensor({2})).dtype() == DType::F32);
  CHECK(logaddexp(tensor({1}), tensor({2})).dtype() == DType::F32);
  CHECK(logaddexp(ones({2}, DType::F16), 0).dtype() == DType::F16);
}
