// Op cases: tensors made from nothing, sizes as values, gradient barriers, parameters, random bits.
// Rows only; the order of a row is name, inputs, program, options.
#include "op_cases.h"

namespace anneal {
namespace {

InputSpec matrix() { return reals({3, 4}, -2, 2).symbolic(0); }

constexpr CaseOptions kWhole{.tolerance = kExact, .differentiable = false, .any_float = false};
constexpr CaseOptions kOwnGradient{.differentiable = false};  // is not the values' derivative

}  // namespace

std::vector<OpCase> structure_cases() {
  return {
      // ---- made from nothing
      {"zeros", {}, [](Args) { return zeros({2, 3}); }, kWhole},
      {"ones", {}, [](Args) { return ones({2, 3}, DType::I16); }, kWhole},
      {"full", {}, [](Args) { return full({2, 2}, 2.5, DType::F64); }, kWhole},
      {"full_bool", {}, [](Args) { return full({2}, 1, DType::Bool); }, kWhole},
      {"zeros_like",
       {matrix()},
       [](Args x) { return zeros_like(x[0]); },
       {.tolerance = kExact, .any_integer = true}},
      {"ones_like",
       {matrix()},
       [](Args x) { return ones_like(x[0]) * x[0]; },
       {.tolerance = kExact, .any_integer = true}},
      {"full_like",
       {matrix()},
       [](Args x) { return full_like(x[0], 3); },
       {.tolerance = kExact, .any_integer = true}},
      {"arange", {}, [](Args) { return arange(5); }, kWhole},
      {"arange_f64", {}, [](Args) { return arange(4, DType::F64) * 0.5; }, kWhole},
      {"arange_step", {}, [](Args) { return arange(1, 8, 2.5, DType::F64); }, kWhole},
      {"arange_down", {}, [](Args) { return arange(3, -3, -2, DType::I64); }, kWhole},
      {"arange_to_variable",
       {matrix()},
       [](Args x) { return reshape(arange(x[0].dim(0), DType::F64), {-1, 1}) * x[0]; },
       {.any_float = false}},
      {"eye", {}, [](Args) { return eye(3); }, kWhole},
      {"eye_wide", {}, [](Args) { return eye(2, Dim(4), DType::F64); }, kWhole},
      {"eye_variable",
       {matrix()},
       [](Args x) { return matmul(eye(x[0].dim(0), {}, x[0].dtype()) * 2, x[0]); },
       {.any_integer = true}},
      {"from_dim",
       {matrix()},
       [](Args x) { return from_dim(x[0].dim(0) * 2 + 1); },
       {.tolerance = kExact}},
      {"from_dim_f64",
       {matrix()},
       [](Args x) { return sum(x[0], 0) / from_dim(x[0].dim(0), x[0].dtype()); }},
      {"from_data",
       {},
       [](Args) { return from_data(std::vector<double>{1, 2, 3, 4, 5, 6}, {2, 3}) * 2; },
       kWhole},
      {"tensor", {}, [](Args) { return tensor({1, -2, 3, 4}, {2, 2}) + tensor({10, 20}); }, kWhole},

      // ---- gradients of their own
      {"stop_gradient",
       {matrix()},
       [](Args x) { return stop_gradient(x[0]) * x[0]; },
       kOwnGradient},
      {"named",
       {matrix()},
       [](Args x) {
         Tensor left = named(exp(x[0])), right = named(exp(x[0]), "right");
         return left * right;
       }},
      {"custom_gradient",
       {matrix()},
       [](Args x) {
         Tensor y = exp(x[0]);
         return custom_gradient(y, {x[0]},
                                [y](const Tensor& g) { return std::vector<Tensor>{g * y}; });
       }},
      {"custom_gradient_two",
       {matrix(), matrix()},
       [](Args x) {
         Tensor a = x[0], b = x[1];
         return custom_gradient(
                    a * b, {a, b},
                    [a, b](const Tensor& g) { return std::vector<Tensor>{g * b, g * a}; }) *
                2;
       }},

      // ---- parameters
      {"parameter",
       {},
       [](Args) { return parameter("weight", full({2, 3}, 1.5, DType::F64)) * 2; },
       kWhole},
      {"assign",
       {reals({2, 3}, -2, 2)},
       [](Args x) { return parameter("state", zeros({2, 3}, x[0].dtype())).assign(x[0] * 2); }},

      // ---- random: the counters are the meaning, so values are exact
      {"random_bits", {}, [](Args) { return Generator(42).bits({2, 5}); }, kWhole},
      {"random_bits_draw",
       {},
       [](Args) { return Generator(0x123456789abcdef0, 7).bits({5}); },
       kWhole},
      {"random_uniform",
       {},
       [](Args) { return Generator(1).uniform({2, 5}, -1, 3, DType::F64); },
       {.differentiable = false, .any_float = false}},
      {"random_uniform_f32",
       {},
       [](Args) { return Generator(2).uniform({7}); },
       {.tolerance = kF32, .differentiable = false, .any_float = false}},
      {"random_normal",
       {},
       [](Args) { return Generator(3).normal({3, 3}, 1, 2, DType::F64); },
       {.differentiable = false, .any_float = false}},
      {"random_integers", {}, [](Args) { return Generator(4).integers({12}, -3, 5); }, kWhole},
      {"random_rand",
       {},
       [](Args) {
         seed(5);
         return rand({2, 3}, DType::F64);
       },
       {.differentiable = false, .any_float = false}},
      {"random_randn",
       {},
       [](Args) {
         seed(6);
         return randn({4}, DType::F64);
       },
       {.differentiable = false, .any_float = false}},
      {"random_uniform_thread",
       {},
       [](Args) {
         seed(7);
         return uniform({4}, 2, 3, DType::F64);
       },
       {.differentiable = false, .any_float = false}},
      {"random_randint",
       {},
       [](Args) {
         seed(8);
         return randint({6}, 10, 100, DType::U8);
       },
       kWhole},
      {"random_second_draw",
       {},
       [](Args) {
         Generator g(9);
         Tensor first = g.bits({4});
         return first ^ g.bits({4});
       },
       kWhole},
      {"random_keyed_bits",
       {},
       [](Args) {
         Generator g(0x123456789abcdef0, 0x500000007);
         return random_bits({2, 3}, g.key());
       },
       kWhole},
      {"random_keyed_uniform",
       {},
       [](Args) {
         seed(10);
         return random_uniform({5}, generator().key(), -1, 3, DType::F64);
       },
       {.differentiable = false, .any_float = false}},
      {"random_keyed_normal",
       {},
       [](Args) { return random_normal({4}, Generator(11).key(), 1, 2, DType::F64); },
       {.differentiable = false, .any_float = false}},
      {"random_split", {}, [](Args) { return Generator(12, 3).split().bits({3}); }, kWhole},
  };
}

}  // namespace anneal
