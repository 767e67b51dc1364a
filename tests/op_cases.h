// The table of op cases: one small program a row. The oracle, every backend, gradients, forward
// mode, print/parse, dtypes and symbolic sizes are tested by walking it. See docs/testing.md.
//
//   for (const OpCase& op_case : op_cases()) {
//     CaseProgram program = build_case(op_case);
//     Bindings bindings = case_bindings(program, case_values(op_case));
//     std::vector<double> result = evaluate({program.output}, bindings)[0].to_vector<double>();
//   }
//
// Must not hold expectations: those are goldens/op_cases.txt, made by goldens/make_goldens.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <anneal/anneal.h>

namespace anneal {

// How far a result may be from its expectation: |a - b| <= relative * |b| + absolute * scale, where
// scale is the largest finite |b| of the tensor, or 1 where that is less. NaN is never close.
struct Tolerance {
  std::string_view name;
  double relative, absolute;
};
inline constexpr Tolerance kExact{"exact", 0, 0};
inline constexpr Tolerance kClose{"close", 1e-12, 1e-13};        // f64 arithmetic
inline constexpr Tolerance kF32{"f32", 2e-5, 4e-6};              // a chain of roundings to f32
inline constexpr Tolerance kF16{"f16", 2e-2, 1e-2};              // ... to f16
inline constexpr Tolerance kBF16{"bf16", 1e-1, 6e-2};            // ... to bf16
inline constexpr Tolerance kGradient{"gradient", 1e-6, 1e-8};    // against differences
inline constexpr Tolerance kSecond{"second order", 1e-5, 1e-7};  // differences of gradients
inline constexpr Tolerance kIdentity{"identity", 1e-10, 1e-10};  // <jvp v, w> = <v, vjp w>

// The row for results computed in a float dtype.
const Tolerance& tolerance_of(DType dtype);

// Values follow from the case's name, the input's number and the element's position alone, by
// integer arithmetic that goldens/recipe.py repeats.
enum class Recipe : uint8_t {
  Uniform,   // in (low, high), on a grid that avoids multiples of 1/1024 and other inputs' values
  Distinct,  // the same without ties: for max, sort and their gradients
  Integers,  // low..high
  Listed,    // as written
};

struct InputSpec {
  std::vector<int64_t> shape;
  DType dtype = DType::F64;
  Recipe recipe = Recipe::Uniform;
  double low = 0, high = 0;
  std::vector<double> listed = {};
  int64_t symbolic_axis = -1;  // may become a Variable, one for all inputs of the case

  InputSpec symbolic(int64_t axis) const {
    InputSpec result = *this;
    result.symbolic_axis = axis;
    return result;
  }
};

InputSpec reals(std::vector<int64_t> shape, double low, double high, DType dtype = DType::F64);
InputSpec distinct(std::vector<int64_t> shape, double low, double high, DType dtype = DType::F64);
InputSpec integers(std::vector<int64_t> shape, int64_t low, int64_t high, DType dtype = DType::I64);
InputSpec booleans(std::vector<int64_t> shape);
InputSpec listed(std::vector<int64_t> shape, std::vector<double> values, DType dtype = DType::F64);

using Args = const std::vector<Tensor>&;

struct CaseOptions {
  Tolerance tolerance = kClose;  // in f64, against the golden
  // Where an input and the result are floats: the derivative of the values is that of the graph.
  bool differentiable = true;
  // Float inputs may have another float dtype; the result then has it too.
  bool any_float = true;
  bool widens_floats = false;  // of these, narrow ones give f32: losses
  // Float inputs may be integers of any width. Sums and products wrap, so that the result is the
  // one of i64, wrapped.
  bool any_integer = false;
  // Of these, narrow ones give 32 bits: sums and products over axes.
  bool widens_integers = false;
  bool special = false;  // the golden may hold NaN, and NaN is expected there
};

struct OpCase {
  std::string_view name;  // what it calls first: "matmul_batched"
  std::vector<InputSpec> inputs;
  Tensor (*build)(Args inputs);
  CaseOptions options = {};

  bool is_symbolic() const;       // whether an input has a symbolic axis
  int64_t symbolic_size() const;  // its size when static
};

const std::vector<OpCase>& op_cases();

// The families, one file each.
std::vector<OpCase> elementwise_cases();
std::vector<OpCase> integer_cases();
std::vector<OpCase> reduce_cases();
std::vector<OpCase> movement_cases();
std::vector<OpCase> indexing_cases();
std::vector<OpCase> product_cases();
std::vector<OpCase> functional_cases();
std::vector<OpCase> structure_cases();
std::vector<OpCase> search_cases();
std::vector<OpCase> loss_cases();

// ---- Building and running a case

struct CaseProgram {
  std::vector<Tensor> inputs;  // named "x0", "x1", ..
  Tensor output;
};

// `size`, where given, replaces the symbolic axes. `dtype`, where given, replaces f64 inputs.
using CaseShapes = std::vector<std::vector<int64_t>>;
CaseShapes case_shapes(const OpCase& op_case, std::optional<int64_t> size = {});
CaseProgram build_case(const OpCase& op_case, std::optional<DType> dtype = {},
                       std::optional<Dim> size = {});

// The elements of every input in row-major order.
using CaseValues = std::vector<std::vector<double>>;
CaseValues case_values(const OpCase& op_case, std::optional<int64_t> size = {});

// Contents for the inputs: the values, rounded to each input's dtype.
Bindings case_bindings(const CaseProgram& program, const CaseShapes& shapes,
                       const CaseValues& values);
// A stored tensor that holds the values, rounded to the dtype as a cast would.
Tensor tensor_of(const std::vector<double>& values, const std::vector<int64_t>& shape, DType dtype);

// The inputs of every case as text, for goldens/make_goldens.py.
std::string describe_inputs();

}  // namespace anneal
