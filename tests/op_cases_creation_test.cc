// Every op case with inputs that functions of creation made, all of them alike: values and
// derivatives are those of the same numbers read from memory. Must not know a case by name.
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/device.h>

#include "op_case_runner.h"
#include "op_cases.h"

using namespace anneal;

namespace {

struct Filling {
  std::string_view name;
  Tensor (*make)(const Sizes& sizes);
};

const Filling kFillings[] = {
    {"zeros", [](const Sizes& sizes) { return zeros(sizes, DType::F64); }},
    {"ones", [](const Sizes& sizes) { return ones(sizes, DType::F64); }},
    {"full", [](const Sizes& sizes) { return full(sizes, 0.5, DType::F64); }},
    {"arange",
     [](const Sizes& sizes) {
       Dim count = 1;
       for (const Dim& size : sizes) count = count * size;
       return reshape(arange(count, DType::F64), sizes) * 0.125;
     }},
};

// Values, first and second derivatives and the tangent along ones.
std::vector<Array> results_of(const OpCase& op_case, const std::vector<Tensor>& inputs) {
  const Tensor output = op_case.build(inputs);
  std::vector<Tensor> moving, tangents;
  for (const Tensor& input : inputs)
    if (input.dtype() == DType::F64) moving.push_back(input);
  std::vector<Tensor> results{output};
  if (output.dtype() != DType::F64 || moving.empty()) return run(results, {});
  // Weights that differ, so that no two places of the result count alike.
  const Tensor weights = reshape(arange(output.size(), DType::F64) + 1, output.shape());
  const std::vector<Tensor> slopes =
      grad(sum(output * weights), moving, {.seed = {}, .allow_unused = true});
  Tensor total = zeros({}, DType::F64);
  for (const Tensor& slope : slopes) total = total + sum(sin(slope));
  for (const Tensor& slope : slopes) results.push_back(slope);
  for (const Tensor& slope : grad(total, moving, {.seed = {}, .allow_unused = true}))
    results.push_back(slope);
  for (const Tensor& input : moving) tangents.push_back(ones_like(input));
  results.push_back(jvp({output}, moving, tangents)[0]);
  return run(results, {});
}

}  // namespace

TEST_CASE("op cases: inputs that creation functions made are told apart") {
  const DeviceScope device("interpreter");  // which folds nothing: every bit must be the same
  for (const Filling& filling : kFillings) {
    for_each_case([&](const OpCase& op_case) {
      if (!op_case.options.differentiable || op_case.inputs.empty()) return;
      const CaseShapes shapes = case_shapes(op_case);
      const CaseValues values = case_values(op_case);
      std::vector<Tensor> made, read;
      for (size_t i = 0; i < shapes.size(); ++i) {
        const DType dtype = op_case.inputs[i].dtype;
        const Sizes sizes(shapes[i].begin(), shapes[i].end());
        const bool moves = dtype == DType::F64;  // indices stay what they are
        made.push_back(moves ? filling.make(sizes) : tensor_of(values[i], shapes[i], dtype));
        read.push_back(tensor_of(made[i].to_vector<double>(), shapes[i], dtype));
      }
      const std::vector<Array> got = results_of(op_case, made);
      const std::vector<Array> expected = results_of(op_case, read);
      REQUIRE(got.size() == expected.size());
      for (size_t k = 0; k < got.size(); ++k)
        check_array(fmt::format("{} of {}: result {}", op_case.name, filling.name, k), got[k],
                    expected[k], kExact, true);
    });
  }
}
