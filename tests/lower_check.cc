#include "lower_check.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "body_interpreter.h"
#include "ir/interpreter.h"
#include "kernel/gpu/passes.h"
#include "kernel/lower.h"
#include "kernel/program/program_content.h"
#include "program_interpreter.h"

namespace anneal {
namespace {

// Sums in another order round otherwise; integers are exact.
constexpr double kTolerance = 1e-4;

bool close(const Scalar& a, const Scalar& b) {
  if (!is_float(a.dtype())) return a == b;
  const double x = a.as_double(), y = b.as_double();
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (x == y) return true;
  const double tolerance = byte_size(a.dtype()) < 4 ? 0.05 : kTolerance;
  return std::fabs(x - y) <= tolerance * std::max({1.0, std::fabs(x), std::fabs(y)});
}

// The sizes a device may have, as they matter to lowering.
Capabilities narrow_device() {
  Capabilities capabilities;
  capabilities.vector_bytes = 16;
  capabilities.vector_registers = 16;
  capabilities.nearest_memory_bytes = 1 << 10;
  capabilities.fast_memory_bytes = 1 << 12;
  capabilities.tile_memory_bytes = 1 << 10;
  capabilities.scale_instruction = true;
  capabilities.streaming_bytes = 1 << 12;
  return capabilities;
}

}  // namespace

Value random_value(DType dtype, int64_t elements, std::mt19937_64& random) {
  Value value{dtype, {elements}, {}};
  for (int64_t i = 0; i < elements; ++i) {
    const int64_t number = static_cast<int64_t>(random() % 17) - 8;
    // No zeros: divided by one, what a mask leaves out would be NaN (kernel/body/masked_range.h).
    const double real = (static_cast<double>(number) + 0.5) / 4;
    const Scalar scalar = is_float(dtype) ? Scalar::of(dtype, real) : Scalar::of_int(dtype, number);
    value.payload.push_back(scalar.bits());
  }
  return value;
}

Capabilities matrix_device() {
  Capabilities capabilities;
  capabilities.workgroup_threads = 128;
  capabilities.most_workgroup_threads = 256;
  capabilities.parallel_threads = 1024;
  capabilities.vector_bytes = 4 * 128;
  capabilities.vector_registers = 64;
  capabilities.fast_memory_bytes = 48 << 10;
  capabilities.matrix_element_bytes = 2;
  return capabilities;
}

std::vector<Program> programs_of(const Schedule& schedule, const Capabilities& capabilities) {
  GraphScope scope(*schedule.graph);
  std::vector<Program> programs;
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase)
        programs.push_back(
            lower(part.body, {.capabilities = capabilities, .disabled = {}}).program);
  return programs;
}

void check_lowering(const KernelBody& body, const std::vector<int64_t>& sizes, uint64_t seed) {
  auto variable = [&](NodeRef node) -> int64_t {
    for (size_t i = 0; i < body.variables.size(); ++i)
      if (body.variables[i] == node) return sizes[i];
    throw InternalError("unknown variable");
  };
  std::mt19937_64 random(seed);
  std::vector<Value> before;
  for (NodeRef buffer : body.buffers)
    before.push_back(
        random_value(buffer->dtype, interpret_index(buffer->dim(0), variable), random));
  auto pointers = [](std::vector<Value>& values) {
    std::vector<Value*> result;
    for (Value& value : values) result.push_back(&value);
    return result;
  };
  std::vector<Value> expected = before;
  run_body(body, pointers(expected), variable);

  std::vector<LowerOptions> ways(15);
  ways[1].disabled = {"merge-axes", "split-axes"};
  ways[2].disabled = {"vectorise"};
  ways[3].disabled = {"unroll"};
  ways[4].disabled = {"tile"};
  ways[5].disabled = {"stage"};
  ways[6].disabled = {"merge-axes", "split-axes", "vectorise", "unroll", "tile", "stage"};
  ways[7].capabilities = narrow_device();
  ways[8].capabilities = narrow_device();
  ways[8].disabled = {"vectorise"};
  ways[9].capabilities = narrow_device();
  ways[9].disabled = {"online-reduction"};
  ways[10].capabilities = narrow_device();
  ways[10].disabled = {"stage"};
  ways[11].disabled = {"masked-range"};
  ways[12].disabled = {"unswitch-axes"};
  ways[13].capabilities = matrix_device();
  ways[14].capabilities = matrix_device();
  ways[14].capabilities.fast_memory_bytes = 1 << 15;  // for smaller rectangles
  for (size_t way = 0; way < ways.size(); ++way) {
    const LoweredBody lowered = lower(body, ways[way]);
    const std::string problem = verify(lowered.program);
    CAPTURE(way);
    CAPTURE(to_text(lowered.program));
    REQUIRE(problem == "");
    const auto read = parse_program(to_text(lowered.program));
    REQUIRE(std::holds_alternative<Program>(read));
    CHECK(content(std::get<Program>(read)) == content(lowered.program));
    std::vector<Value> values = before;
    const int64_t cells = interpret_index(lowered.cells, variable);
    try {
      Program program = lowered.program;
      if (ways[way].capabilities.workgroup_threads > 0) {
        program = gpu_program(program);
        REQUIRE(verify(program) == "");
      }
      run_program(program, pointers(values), sizes, cells, way % 2 == 1);
    } catch (const std::exception& error) {
      FAIL_CHECK(std::string(error.what()));
      return;
    }
    for (size_t i = 0; i < values.size(); ++i)
      for (int64_t at = 0;
           std::ranges::count(body.tiles, body.buffers[i]) == 0 && at < values[i].size(); ++at)
        if (!close(values[i].at(at), expected[i].at(at))) {
          FAIL_CHECK(fmt::format("buffer {} element {} is {}, wanted {}", i, at,
                                 to_text(values[i].at(at)), to_text(expected[i].at(at))));
          return;
        }
  }
}

}  // namespace anneal
