// Derivatives of every op case in f64: reverse mode, twice, and forward mode, against differences
// and against each other. Must not know a case by name.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/dtype.h"
#include "ir/float_formats.h"
#include "op_case_runner.h"
#include "op_cases.h"

using namespace anneal;

namespace {

// Steps reach 2h, less than the grid of inputs keeps values away from kinks and from each other.
constexpr double kStep = 2e-5;

// A differentiable case, built, with a direction of every f64 input.
struct Subject {
  CaseProgram program;
  CaseShapes shapes;
  CaseValues values, directions;  // zero for inputs that are not f64
  std::vector<size_t> moving;     // the f64 inputs

  explicit Subject(const OpCase& op_case)
      : program(build_case(op_case)), shapes(case_shapes(op_case)), values(case_values(op_case)) {
    for (size_t i = 0; i < values.size(); ++i) {
      Draws draws(fmt::format("{}/direction/{}", op_case.name, i));
      directions.push_back(draws.uniforms(values[i].size(), -1, 1));
      if (program.inputs[i].dtype() == DType::F64) moving.push_back(i);
    }
  }

  bool is_differentiable() const { return program.output.dtype() == DType::F64 && !moving.empty(); }

  std::vector<Tensor> inputs() const {
    std::vector<Tensor> result;
    for (size_t i : moving) result.push_back(program.inputs[i]);
    return result;
  }

  // The inputs named in `which`, moved along their directions.
  Bindings moved(const std::vector<size_t>& which, double step) const {
    CaseValues at = values;
    for (size_t i : which) {
      for (size_t k = 0; k < at[i].size(); ++k) at[i][k] += step * directions[i][k];
    }
    return case_bindings(program, shapes, at);
  }

  // The derivative of the tensor's values along the directions, with an error of h^4.
  Array differences(const Tensor& tensor, const std::vector<size_t>& which) const {
    Array result = run(tensor, moved(which, kStep));
    const Array back = run(tensor, moved(which, -kStep));
    const Array far = run(tensor, moved(which, 2 * kStep));
    const Array far_back = run(tensor, moved(which, -2 * kStep));
    for (size_t k = 0; k < result.reals.size(); ++k) {
      const double near = result.reals[k] - back.reals[k];
      result.reals[k] = (8 * near - (far.reals[k] - far_back.reals[k])) / (12 * kStep);
    }
    return result;
  }
};

void for_each_differentiable(void (*function)(const OpCase&, const Subject&)) {
  for_each_case([&](const OpCase& op_case) {
    if (!op_case.options.differentiable) return;
    const Subject subject(op_case);
    if (subject.is_differentiable()) function(op_case, subject);
  });
}

std::vector<int64_t> shape_of(const Tensor& tensor) {
  std::vector<int64_t> shape;
  for (const Dim& size : tensor.shape()) shape.push_back(size.value());
  return shape;
}

// A stored tensor of draws with the shape of `like`.
Tensor drawn_like(const Tensor& like, const std::string& seed) {
  const std::vector<int64_t> shape = shape_of(like);
  const size_t count = static_cast<size_t>(like.size().value());
  return tensor_of(Draws(seed).uniforms(count, -1, 1), shape, DType::F64);
}

Tensor weighted(const Tensor& tensor, const std::string& seed) {
  return sum(tensor * drawn_like(tensor, seed));
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double result = 0;
  for (size_t i = 0; i < a.size(); ++i) result += a[i] * b[i];
  return result;
}

// The sum of |a b|: how large the terms are that may cancel.
double dot_size(const std::vector<double>& a, const std::vector<double>& b) {
  double result = 0;
  for (size_t i = 0; i < a.size(); ++i) result += std::fabs(a[i] * b[i]);
  return result;
}

void check_close(const std::string& what, double got, double expected, double scale,
                 const Tolerance& tolerance) {
  const double allowed =
      tolerance.relative * std::fabs(expected) + tolerance.absolute * std::max(1.0, scale);
  CHECK_MESSAGE(std::fabs(got - expected) <= allowed,
                fmt::format("{} is {}, expected {}: off by {}, where \"{}\" allows {}", what, got,
                            expected, got - expected, tolerance.name, allowed));
}

std::vector<Tensor> gradients(const Tensor& loss, const Subject& subject) {
  return grad(loss, subject.inputs(), {.seed = {}, .allow_unused = true});
}

// The gradient of a scalar with respect to each input against differences along its direction.
void check_gradients(const OpCase& op_case, const Subject& subject, const Tensor& loss,
                     const Tolerance& tolerance) {
  const std::vector<Array> slopes = run(gradients(loss, subject), subject.moved({}, 0));
  const double size = std::fabs(run(loss, subject.moved({}, 0)).reals[0]);
  for (size_t k = 0; k < subject.moving.size(); ++k) {
    const size_t i = subject.moving[k];
    const std::string what = fmt::format("{}: gradient of input {}", op_case.name, i);
    CHECK_MESSAGE(slopes[k].shape == subject.shapes[i], what << " has another shape");
    CHECK_MESSAGE(slopes[k].dtype == DType::F64, what << " has another dtype");
    if (slopes[k].shape != subject.shapes[i]) continue;
    const double expected = subject.differences(loss, {i}).reals[0];
    const double scale = std::max(size, dot_size(slopes[k].reals, subject.directions[i]));
    check_close(what, dot(slopes[k].reals, subject.directions[i]), expected, scale, tolerance);
  }
}

}  // namespace

TEST_CASE("op cases: gradients are what differences say") {
  for_each_differentiable([](const OpCase& op_case, const Subject& subject) {
    check_gradients(op_case, subject, weighted(subject.program.output, "weights"), kGradient);
  });
}

TEST_CASE("op cases: gradients of gradients are what differences say") {
  for_each_differentiable([](const OpCase& op_case, const Subject& subject) {
    const Tensor loss = weighted(subject.program.output, "weights");
    Tensor total;
    for (const Tensor& slope : gradients(loss, subject)) {
      const Tensor part = weighted(slope, fmt::format("second/{}", total.defined()));
      total = total.defined() ? total + part : part;
    }
    check_gradients(op_case, subject, total, kSecond);
  });
}

TEST_CASE("op cases: forward mode is what differences say and the transpose of reverse mode") {
  for_each_differentiable([](const OpCase& op_case, const Subject& subject) {
    const Tensor& output = subject.program.output;
    std::vector<Tensor> tangents;
    for (size_t i : subject.moving) {
      tangents.push_back(tensor_of(subject.directions[i], subject.shapes[i], DType::F64));
    }
    const Tensor weights = drawn_like(output, "weights");
    std::vector<Tensor> results =
        grad(output, subject.inputs(), {.seed = weights, .allow_unused = true});
    results.push_back(weights);
    results.push_back(jvp({output}, subject.inputs(), tangents)[0]);
    const std::vector<Array> values = run(results, subject.moved({}, 0));

    const Array& forward = values.back();
    const std::vector<double>& w = values[values.size() - 2].reals;
    check_array(fmt::format("{}: tangent", op_case.name), forward,
                subject.differences(output, subject.moving), kGradient);
    double backward = 0, scale = dot_size(forward.reals, w);
    for (size_t k = 0; k < subject.moving.size(); ++k) {
      backward += dot(values[k].reals, subject.directions[subject.moving[k]]);
      scale = std::max(scale, dot_size(values[k].reals, subject.directions[subject.moving[k]]));
    }
    check_close(fmt::format("{}: <jvp(v), w>", op_case.name), dot(forward.reals, w), backward,
                scale, kIdentity);
  });
}

TEST_CASE("op cases: gradients with a symbolic size are those of the number") {
  const Variable n = symbolic_size();
  for_each_case([&](const OpCase& op_case) {
    if (!op_case.is_symbolic() || !op_case.options.differentiable) return;
    const CaseProgram symbolic = build_case(op_case, {}, n);
    const Subject original(op_case);
    if (!original.is_differentiable()) return;
    auto slopes_of = [&](const CaseProgram& program) {
      std::vector<Tensor> inputs;
      for (size_t i : original.moving) inputs.push_back(program.inputs[i]);
      return grad(sum(sin(program.output)), inputs, {.seed = {}, .allow_unused = true});
    };
    const std::vector<Tensor> slopes = slopes_of(symbolic);
    for (int64_t size : symbolic_bindings(op_case)) {
      const CaseShapes shapes = case_shapes(op_case, size);
      const CaseValues values = case_values(op_case, size);
      Bindings bindings = case_bindings(symbolic, shapes, values);
      bindings.sizes.emplace_back(n, size);
      const CaseProgram fixed = build_case(op_case, {}, Dim(size));
      const std::vector<Array> got = run(slopes, bindings);
      const std::vector<Array> expected =
          run(slopes_of(fixed), case_bindings(fixed, shapes, values));
      for (size_t k = 0; k < got.size(); ++k) {
        check_array(fmt::format("{} with n = {}: gradient of input {}", op_case.name, size,
                                original.moving[k]),
                    got[k], expected[k], kClose);
      }
    }
  });
}

TEST_CASE("op cases: gradients have the dtype of their input and its precision") {
  for (DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    for_each_case([&](const OpCase& op_case) {
      if (!op_case.options.any_float || !op_case.options.differentiable) return;
      const CaseShapes shapes = case_shapes(op_case);
      CaseValues values = case_values(op_case);
      auto slopes_in = [&](DType type) {
        const CaseProgram program = build_case(op_case, type);
        std::vector<Tensor> inputs;
        for (const Tensor& each : program.inputs) {
          if (is_float(each.dtype())) inputs.push_back(each);
        }
        if (inputs.empty() || !is_float(program.output.dtype())) return std::vector<Array>{};
        const std::vector<double> weights =
            Draws("weights").uniforms(static_cast<size_t>(program.output.size().value()), -1, 1);
        const Tensor loss = sum(
            program.output * tensor_of(weights, shape_of(program.output), program.output.dtype()));
        return run(grad(loss, inputs, {.seed = {}, .allow_unused = true}),
                   case_bindings(program, shapes, values));
      };
      for (size_t i = 0; i < values.size(); ++i) {
        if (op_case.inputs[i].dtype != DType::F64) continue;
        for (double& value : values[i]) value = round_to(dtype, value);
      }
      const std::vector<Array> got = slopes_in(dtype);
      std::vector<Array> expected = slopes_in(DType::F64);
      REQUIRE(got.size() == expected.size());
      for (size_t k = 0; k < got.size(); ++k) {
        if (expected[k].dtype == DType::F64) expected[k].dtype = dtype;
        check_array(fmt::format("{} in {}: gradient {}", op_case.name, name(dtype), k), got[k],
                    expected[k], tolerance_of(dtype));
      }
    });
  }
}

// Differences see only the steps of a narrow dtype; the derivative of rounding is taken to be 1.
TEST_CASE("op cases: casts between floats pass derivatives on") {
  const std::vector<double> weights{1, -2, 0.5, 0.25};  // exact in every float dtype
  for (DType dtype : {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2}) {
    const Tensor x = tensor_of({0.1, 0.2, -0.3, 1.7}, {4}, DType::F64);
    const Tensor w = tensor_of(weights, {4}, DType::F64);
    const Tensor there_and_back = cast(cast(x, dtype), DType::F64);
    CHECK(grad(sum(there_and_back * w), {x})[0].to_vector<double>() == weights);
    CHECK(jvp({there_and_back}, {x}, {w})[0].to_vector<double>() == weights);
  }
  // An integer moves in steps: nothing passes it.
  const Tensor x = tensor_of({0.1, 1.7}, {2}, DType::F64);
  const Tensor slope = grad(sum(x * cast(cast(x, DType::I32), DType::F64)), {x})[0];
  CHECK(slope.to_vector<double>() == std::vector<double>{0, 1});
}
