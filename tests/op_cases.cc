// Inputs and builders of the op cases; the rows are in op_cases_*.cc, a file a family.
// Must not compute what an op computes.
#include "op_cases.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "ir/dtype.h"
#include "ir/float_formats.h"

namespace anneal {
namespace {

// ---- draws: FNV-1a of "name/input" seeds SplitMix64, whose upper half is the draw

constexpr uint64_t kGridSteps = 1024;  // grid points between two integers

uint64_t seed_of(std::string_view name, size_t input) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : fmt::format("{}/{}", name, input)) {
    hash = (hash ^ static_cast<uint64_t>(static_cast<unsigned char>(c))) * 0x100000001b3;
  }
  return hash;
}

uint64_t draw(uint64_t seed, size_t position) {
  uint64_t z = seed + (static_cast<uint64_t>(position) + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return (z ^ (z >> 31)) >> 32;
}

// Which input it is shifts the grid, so that values of two inputs differ. Exact in double.
double on_grid(int64_t point, size_t input) {
  constexpr int64_t kEighths[4] = {4, 2, 6, 3};
  return static_cast<double>(8 * point + kEighths[input % 4]) / (8.0 * kGridSteps);
}

// Position i holds the rank of its draw among all.
std::vector<size_t> ranks(uint64_t seed, size_t count) {
  std::vector<size_t> order(count), result(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(draw(seed, a), a) < std::pair(draw(seed, b), b);
  });
  for (size_t rank = 0; rank < count; ++rank) result[order[rank]] = rank;
  return result;
}

size_t count_of(const std::vector<int64_t>& shape) {
  size_t count = 1;
  for (int64_t size : shape) count *= static_cast<size_t>(size);
  return count;
}

std::vector<double> input_values(const OpCase& op_case, size_t input,
                                 const std::vector<int64_t>& shape) {
  const InputSpec& spec = op_case.inputs[input];
  if (spec.recipe == Recipe::Listed) return spec.listed;
  const uint64_t seed = seed_of(op_case.name, input);
  const double steps = spec.recipe == Recipe::Integers ? 1 : static_cast<double>(kGridSteps);
  const int64_t low = std::llround(spec.low * steps), high = std::llround(spec.high * steps);
  const size_t count = count_of(shape);
  std::vector<double> values;
  std::vector<size_t> order;
  if (spec.recipe == Recipe::Distinct) order = ranks(seed, count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t span = static_cast<uint64_t>(high - low);
    if (spec.recipe == Recipe::Integers) {
      values.push_back(static_cast<double>(low + static_cast<int64_t>(draw(seed, i) % (span + 1))));
      continue;
    }
    const uint64_t step =
        spec.recipe == Recipe::Distinct ? order[i] * span / count : draw(seed, i) % span;
    values.push_back(on_grid(low + static_cast<int64_t>(step), input));
  }
  return values;
}

std::string_view recipe_name(Recipe recipe) {
  switch (recipe) {
    case Recipe::Uniform: return "uniform";
    case Recipe::Distinct: return "distinct";
    case Recipe::Integers: return "integers";
    case Recipe::Listed: return "listed";
  }
  return "";
}

std::string describe(const InputSpec& spec) {
  std::string text = fmt::format(" ; {} [{}] {}", name(spec.dtype), fmt::join(spec.shape, ","),
                                 recipe_name(spec.recipe));
  if (spec.recipe != Recipe::Listed) return text + fmt::format(" {} {}", spec.low, spec.high);
  for (double value : spec.listed) text += fmt::format(" {}", value);
  return text;
}

InputSpec spec_of(std::vector<int64_t> shape, DType dtype, Recipe recipe, double low, double high) {
  InputSpec spec;
  spec.shape = std::move(shape);
  spec.dtype = dtype;
  spec.recipe = recipe;
  spec.low = low;
  spec.high = high;
  return spec;
}

}  // namespace

const Tolerance& tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::F64: return kClose;
    case DType::F32: return kF32;
    case DType::F16: return kF16;
    case DType::BF16: return kBF16;
    default: return kExact;
  }
}

InputSpec reals(std::vector<int64_t> shape, double low, double high, DType dtype) {
  return spec_of(std::move(shape), dtype, Recipe::Uniform, low, high);
}
InputSpec distinct(std::vector<int64_t> shape, double low, double high, DType dtype) {
  return spec_of(std::move(shape), dtype, Recipe::Distinct, low, high);
}
InputSpec integers(std::vector<int64_t> shape, int64_t low, int64_t high, DType dtype) {
  return spec_of(std::move(shape), dtype, Recipe::Integers, static_cast<double>(low),
                 static_cast<double>(high));
}
InputSpec booleans(std::vector<int64_t> shape) {
  return spec_of(std::move(shape), DType::Bool, Recipe::Integers, 0, 1);
}
InputSpec listed(std::vector<int64_t> shape, std::vector<double> values, DType dtype) {
  InputSpec spec = spec_of(std::move(shape), dtype, Recipe::Listed, 0, 0);
  spec.listed = std::move(values);
  return spec;
}

bool OpCase::is_symbolic() const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const InputSpec& spec) { return spec.symbolic_axis >= 0; });
}

int64_t OpCase::symbolic_size() const {
  for (const InputSpec& spec : inputs) {
    if (spec.symbolic_axis >= 0) return spec.shape[static_cast<size_t>(spec.symbolic_axis)];
  }
  return 0;
}

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> all;
    for (auto family :
         {elementwise_cases, integer_cases, reduce_cases, movement_cases, indexing_cases,
          product_cases, functional_cases, structure_cases, search_cases, loss_cases}) {
      std::vector<OpCase> rows = family();
      std::move(rows.begin(), rows.end(), std::back_inserter(all));
    }
    return all;
  }();
  return cases;
}

CaseShapes case_shapes(const OpCase& op_case, std::optional<int64_t> size) {
  CaseShapes shapes;
  for (const InputSpec& spec : op_case.inputs) {
    shapes.push_back(spec.shape);
    if (size && spec.symbolic_axis >= 0) {
      shapes.back()[static_cast<size_t>(spec.symbolic_axis)] = *size;
    }
  }
  return shapes;
}

CaseProgram build_case(const OpCase& op_case, std::optional<DType> dtype, std::optional<Dim> size) {
  CaseProgram program;
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    const InputSpec& spec = op_case.inputs[i];
    Sizes sizes(spec.shape.begin(), spec.shape.end());
    if (size && spec.symbolic_axis >= 0) sizes[static_cast<size_t>(spec.symbolic_axis)] = *size;
    const DType type = dtype && spec.dtype == DType::F64 ? *dtype : spec.dtype;
    program.inputs.push_back(input(fmt::format("x{}", i), sizes, type));
  }
  program.output = op_case.build(program.inputs);
  return program;
}

CaseValues case_values(const OpCase& op_case, std::optional<int64_t> size) {
  const CaseShapes shapes = case_shapes(op_case, size);
  CaseValues values;
  for (size_t i = 0; i < shapes.size(); ++i) values.push_back(input_values(op_case, i, shapes[i]));
  return values;
}

Bindings case_bindings(const CaseProgram& program, const CaseShapes& shapes,
                       const CaseValues& values) {
  Bindings bindings;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Tensor& place = program.inputs[i];
    bindings.inputs.emplace_back(place, tensor_of(values[i], shapes[i], place.dtype()));
  }
  return bindings;
}

Tensor tensor_of(const std::vector<double>& values, const std::vector<int64_t>& shape,
                 DType dtype) {
  const size_t width = byte_size(dtype);
  std::vector<std::byte> bytes(values.size() * width);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t code = is_float(dtype) ? encode(dtype, values[i])
                          : values[i] < 0 ? static_cast<uint64_t>(static_cast<int64_t>(values[i]))
                                          : static_cast<uint64_t>(values[i]);
    for (size_t byte = 0; byte < width; ++byte) {
      bytes[i * width + byte] = static_cast<std::byte>(code >> (8 * byte) & 0xff);
    }
  }
  return from_bytes(bytes, Sizes(shape.begin(), shape.end()), dtype);
}

std::string describe_inputs() {
  std::string text;
  for (const OpCase& op_case : op_cases()) {
    text += op_case.name;
    for (const InputSpec& spec : op_case.inputs) text += describe(spec);
    text += '\n';
  }
  return text;
}

}  // namespace anneal
