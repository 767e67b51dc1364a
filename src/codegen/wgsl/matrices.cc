#include "codegen/wgsl/matrices.h"

#include <fmt/format.h>

#include <anneal/error.h>

namespace anneal::wgsl {

Matrices::Matrices(const Program& program, Arithmetic& arithmetic)
    : program_(program),
      arithmetic_(arithmetic),
      units_(program.matrix_unit && !program.emulates_matrices),
      unit_(program.matrix_unit.value_or(kMatrixUnit)) {
  const int elements = elements_of_lane();
  const bool fits = elements > 0 && unit_.columns % elements == 0 &&
                    elements * unit_.lanes == unit_.rows * unit_.columns;
  if (program.emulates_matrices &&
      (!fits || unit_.operands != DType::F16 || unit_.sums != DType::F32))
    throw InternalError("such a matrix unit is not emulated");
}

// Threads of a subgroup follow each other in a group of one row, which no rule of WGSL says.
std::string Matrices::enabled() const {
  if (!units_) return "";
  return "enable f16;\nenable subgroups;\nenable chromium_experimental_subgroup_matrix;\n"
         "diagnostic(off, chromium.subgroup_matrix_uniformity);\n"
         "diagnostic(off, subgroup_uniformity);\n";
}

std::string Matrices::functions() const {
  std::string text;
  for (const auto& [name, function] : functions_) text += function;
  return text;
}

int64_t Matrices::stride(const Instruction& matrix, size_t operand) const {
  return static_cast<int64_t>(program_.code[static_cast<size_t>(matrix.operands[operand])].bits);
}

const char* Matrices::element_type(DType dtype) {
  if (dtype == DType::F16) return "f16";
  if (dtype == DType::F32) return "f32";
  throw InternalError(fmt::format("WGSL has no matrices of {}", name(dtype)));
}

std::string Matrices::zero() const {
  if (units_)
    return fmt::format("subgroup_matrix_result<{}, {}, {}>()", element_type(unit_.sums),
                       unit_.columns, unit_.rows);
  return fmt::format("array<f32, {}>()", elements_of_lane());
}

// Emulated, a matrix is the place where it lies.
std::string Matrices::load(const Instruction& matrix, const std::string& buffer,
                           const std::string& place) const {
  if (!units_) return place;
  const bool by_rows = stride(matrix, 2) == 1, left = matrix.code == Code::MatrixLeft;
  return fmt::format("subgroupMatrixLoad<subgroup_matrix_{}<{}, {}, {}>, {}>(&{}, {}, {}u)",
                     left ? "left" : "right", element_type(unit_.operands),
                     left ? unit_.depth : unit_.columns, left ? unit_.rows : unit_.depth,
                     by_rows ? "row_major" : "col_major", buffer, place,
                     stride(matrix, by_rows ? 1 : 2));
}

std::string Matrices::multiply_add(const Instruction& multiply, const std::string& left,
                                   const std::string& right, const std::string& sum) {
  if (units_) return fmt::format("subgroupMatrixMultiplyAccumulate({}, {}, {})", left, right, sum);
  auto loaded = [&](size_t i) -> const Instruction& {
    return program_.code[static_cast<size_t>(multiply.operands[i])];
  };
  return fmt::format("{}({}, {}, {}, lane)", emulated_multiply(loaded(0), loaded(1)), left, right,
                     sum);
}

// A thread has neighbours of one row.
std::string Matrices::emulated_multiply(const Instruction& left, const Instruction& right) {
  const size_t buffers = program_.buffers.size();
  const std::string name = fmt::format("multiply_{}_{}", left.bits - buffers, right.bits - buffers);
  auto element = [&](const Instruction& matrix, const char* first, const char* row,
                     const char* column) {
    return arithmetic_.call(
        "widen_f16", {fmt::format("local{}[{} + {} * {}u + {} * {}u]", matrix.bits - buffers, first,
                                  row, stride(matrix, 1), column, stride(matrix, 2))});
  };
  functions_[name] = fmt::format(
      R"(
fn {0}(left: u32, right: u32, sum: array<f32, {1}>, lane: u32) -> array<f32, {1}> {{
  var result = sum;
  let row = (lane % {2}u) / {6}u;
  let first = (lane % {6}u) * {1}u;
  for (var k = 0u; k < {3}u; k++) {{
    let a = {4};
    for (var i = 0u; i < {1}u; i++) {{
      result[i] += a * {5};
    }}
  }}
  return result;
}}
)",
      name, elements_of_lane(), unit_.lanes, unit_.depth, element(left, "left", "row", "k"),
      element(right, "right", "k", "(first + i)"), lanes_of_row());
  return name;
}

std::string Matrices::store(const Instruction& matrix, const std::string& buffer,
                            const std::string& place, const std::string& value) {
  if (units_)
    return fmt::format("subgroupMatrixStore<row_major>(&{}, {}, {}, {}u);", buffer, place, value,
                       stride(matrix, 1));
  const std::string name = fmt::format("store_matrix_{}", buffer);
  functions_[name] = fmt::format(
      R"(
fn {0}(place: u32, matrix: array<f32, {1}>, lane: u32) {{
  var elements = matrix;
  let first = place + (lane % {2}u) / {5}u * {3}u + (lane % {5}u) * {1}u;
  for (var i = 0u; i < {1}u; i++) {{
    {4}[first + i] = elements[i];
  }}
}}
)",
      name, elements_of_lane(), unit_.lanes, stride(matrix, 1), buffer, lanes_of_row());
  return fmt::format("{}({}, {}, lane);", name, place, value);
}

}  // namespace anneal::wgsl
