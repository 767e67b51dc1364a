// Every op case on a device against the interpreter: values in every dtype, with symbolic sizes,
// gradients, and on the CPU the same bits for every number of threads. The device is "cpu", or
// $ANNEAL_TEST_DEVICE.
// Must not know a case by name. ANNEAL_CASE=conv2d runs only the cases whose name contains that.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/device.h>

#include "ir/dtype.h"
#include "ir/float_formats.h"
#include "ir/graph.h"
#include "op_case_runner.h"
#include "op_cases.h"

using namespace anneal;

namespace {

// ---- how far the device may be from the interpreter

// Classes of programs by what can make a difference. The interpreter rounds each node once from
// f64; a device computes in f32 (f64 for f64), leaves out roundings in between and sums in another
// order. `roundings` counts units in the last place of the result's dtype, of the result itself and
// of the largest element: cancellation leaves the error of what was subtracted.
struct DeviceRow {
  std::string_view name;
  double roundings;
};
constexpr DeviceRow kMoves{"moves", 0};                // copies, comparisons, maxima: no rounding
constexpr DeviceRow kArithmetic{"arithmetic", 8};      // a few correctly rounded ops in a row
constexpr DeviceRow kFunctions{"functions", 32};       // polynomials of 2 ulp, and what follows
constexpr DeviceRow kSums{"sums", 64};                 // many terms in another order
constexpr DeviceRow kDerivatives{"derivatives", 256};  // all of these, through a backward pass

const DeviceRow& row_of(std::span<const NodeRef> roots) {
  bool arithmetic = false, functions = false, sums = false;
  for (NodeRef node : topological_order(roots)) {
    if (!is_float(node->dtype) && node->op != Op::Lt && node->op != Op::Le) continue;
    functions |= is_libm_function(node->op);
    switch (node->op) {
      case Op::Add:
      case Op::Mul:
      case Op::Div:
      case Op::FloorDiv:
      case Op::Sqrt:
      case Op::Cast: arithmetic = true; break;
      case Op::ReduceSum:
      case Op::ReduceProd:
      case Op::ScatterAdd: sums = true; break;
      default: break;
    }
  }
  return sums ? kSums : functions ? kFunctions : arithmetic ? kArithmetic : kMoves;
}

Tolerance tolerance(const DeviceRow& row, DType dtype) {
  if (!is_float(dtype)) return kExact;
  const double unit = std::ldexp(1, -1 - format_of(dtype).mantissa_bits);
  return {row.name, row.roundings * unit, row.roundings * unit};
}

// ---- runs

std::vector<Array> run_on(std::string_view device, const std::vector<Tensor>& tensors,
                          const Bindings& bindings) {
  DeviceScope scope(device);
  return run(tensors, bindings);
}

bool same_bits(const Array& a, const Array& b) {
  auto same = [](double x, double y) {
    return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y);
  };
  return a.dtype == b.dtype && a.shape == b.shape && a.integers == b.integers &&
         std::ranges::equal(a.reals, b.reals, same);
}

class ThreadsScope {
 public:
  explicit ThreadsScope(int count) : before_(threads()) { set_threads(count); }
  ~ThreadsScope() { set_threads(before_); }
  ThreadsScope(const ThreadsScope&) = delete;
  ThreadsScope& operator=(const ThreadsScope&) = delete;

 private:
  int before_;
};

std::string tested_device() {
  const char* name = std::getenv("ANNEAL_TEST_DEVICE");
  return name ? name : "cpu";
}

// GPUs have no f64: the runtime sends what needs it to the CPU. So that this is seen, each test
// says how many programs it ran, and of how many that is true.
struct ProgramCounts {
  int all = 0, with_f64 = 0;

  void add(std::span<const NodeRef> roots) {
    ++all;
    with_f64 += std::ranges::any_of(topological_order(roots),
                                    [](NodeRef node) { return node->dtype == DType::F64; });
  }
  ~ProgramCounts() {
    MESSAGE(fmt::format("{} programs on {}, of which {} have f64{}", all, tested_device(), with_f64,
                        tested_device() == "webgpu" ? " and run on the CPU" : ""));
  }
};

// Runs tensors on both devices, on the CPU with 1, 2 and 5 threads.
void compare(ProgramCounts& counts, const std::string& what, const std::vector<Tensor>& tensors,
             const Bindings& bindings, const DeviceRow* row, bool special) {
  std::vector<NodeRef> roots;
  for (const Tensor& tensor : tensors) roots.push_back(tensor.node());
  counts.add(roots);
  const DeviceRow& allowed = row ? *row : row_of(roots);
  const std::vector<Array> expected = run_on("interpreter", tensors, bindings);
  std::vector<Array> first;
  const std::string device = tested_device();
  for (int count : device == "cpu" ? std::vector{1, 2, 5} : std::vector{1}) {
    ThreadsScope scope(count);
    const std::vector<Array> got = run_on(device, tensors, bindings);
    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const std::string name = fmt::format("{}, result {} with {} threads", what, i, count);
      check_array(name, got[i], expected[i], tolerance(allowed, expected[i].dtype), special);
      if (!first.empty())
        CHECK_MESSAGE(same_bits(got[i], first[i]), name << " has other bits than with one thread");
    }
    first = got;
  }
}

// ---- values of the inputs

bool has_f64_input(const OpCase& op_case) {
  return std::ranges::any_of(op_case.inputs,
                             [](const InputSpec& spec) { return spec.dtype == DType::F64; });
}

// The values of f64 inputs rounded to a float dtype, or whole numbers for an integer one.
CaseValues values_in(const OpCase& op_case, DType dtype, std::optional<int64_t> size = {}) {
  CaseValues values = case_values(op_case, size);
  for (size_t i = 0; i < values.size(); ++i) {
    if (op_case.inputs[i].dtype != DType::F64) continue;
    Draws draws(fmt::format("{}/whole/{}", op_case.name, i));
    for (double& value : values[i])
      value = is_float(dtype) ? round_to(dtype, value)
                              : std::floor(draws.uniform(is_signed(dtype) ? -100 : 0, 100));
  }
  return values;
}

void compare_case(ProgramCounts& counts, const OpCase& op_case, DType dtype) {
  const CaseProgram program = build_case(op_case, dtype);
  compare(counts, fmt::format("{} in {}", op_case.name, name(dtype)), {program.output},
          case_bindings(program, case_shapes(op_case), values_in(op_case, dtype)), nullptr,
          op_case.options.special);
}

std::vector<Tensor> gradients(const CaseProgram& program) {
  std::vector<Tensor> inputs;
  for (const Tensor& each : program.inputs)
    if (is_float(each.dtype())) inputs.push_back(each);
  if (inputs.empty() || !is_float(program.output.dtype())) return {};
  return grad(sum(sin(program.output)), inputs, {.seed = {}, .allow_unused = true});
}

constexpr DType kComputedFloats[] = {DType::F64, DType::F32, DType::F16, DType::BF16};

}  // namespace

TEST_CASE("device cases: values in f64, f32, f16 and bf16") {
  ProgramCounts counts;
  for_each_case([&](const OpCase& op_case) {
    for (DType dtype : kComputedFloats) {
      const bool applies = op_case.options.any_float && has_f64_input(op_case);
      if (dtype == DType::F64 || applies) compare_case(counts, op_case, dtype);
    }
  });
}

TEST_CASE("device cases: remainders of floats are exact") {
  ProgramCounts counts;
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> values{0, 1, 1.5, 3, 7, 0.1, 16777216, 1e8, 65504, 1e30, 3e38, 1e300, inf};
  for (double tiny : {1e-3, 6e-8, 1e-30, 1e-40, 1e-45, 1e-300}) values.push_back(tiny);
  for (size_t i = values.size(); i-- > 0;) values.push_back(-values[i]);
  values.push_back(std::numeric_limits<double>::quiet_NaN());
  const auto count = static_cast<int64_t>(values.size());
  for (DType dtype :
       {DType::F64, DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2}) {
    const Tensor a = input("a", {count, 1}, dtype), b = input("b", {count}, dtype);
    const Tensor rest = a % b;
    counts.add(std::array{rest.node()});
    const Bindings bindings{.inputs = {{a, tensor_of(values, {count, 1}, dtype)},
                                       {b, tensor_of(values, {count}, dtype)}}};
    const Array expected = run_on("interpreter", {rest}, bindings)[0];
    const Array got = run_on(tested_device(), {rest}, bindings)[0];
    for (size_t i = 0; i < got.reals.size(); ++i) {
      const double x = values[i / values.size()], y = values[i % values.size()];
      const bool same =
          std::bit_cast<uint64_t>(got.reals[i]) == std::bit_cast<uint64_t>(expected.reals[i]);
      const bool both_nan = std::isnan(got.reals[i]) && std::isnan(expected.reals[i]);
      CHECK_MESSAGE((same || both_nan), fmt::format("{} % {} in {} is {}, expected {}", x, y,
                                                    name(dtype), got.reals[i], expected.reals[i]));
    }
  }
}

TEST_CASE("device cases: integers of every width") {
  ProgramCounts counts;
  for_each_case([&](const OpCase& op_case) {
    if (!op_case.options.any_integer || !has_f64_input(op_case)) return;
    for (DType dtype : kAllDTypes)
      if (is_int(dtype)) compare_case(counts, op_case, dtype);
  });
}

TEST_CASE("device cases: one program for every binding of a symbolic size") {
  ProgramCounts counts;
  const Variable n = symbolic_size();
  for_each_case([&](const OpCase& op_case) {
    if (!op_case.is_symbolic()) return;
    const DType dtype = op_case.options.any_float ? DType::F32 : DType::F64;
    const CaseProgram program = build_case(op_case, dtype, n);
    std::vector<int64_t> sizes = symbolic_bindings(op_case);
    sizes.push_back(17);
    for (int64_t size : sizes) {
      Bindings bindings =
          case_bindings(program, case_shapes(op_case, size), values_in(op_case, dtype, size));
      bindings.sizes.emplace_back(n, size);
      compare(counts, fmt::format("{} with n = {}", op_case.name, size), {program.output}, bindings,
              nullptr, op_case.options.special);
    }
  });
}

TEST_CASE("device cases: gradients in f64, f32, f16 and bf16") {
  ProgramCounts counts;
  for_each_case([&](const OpCase& op_case) {
    if (!op_case.options.differentiable) return;
    for (DType dtype : kComputedFloats) {
      if (dtype != DType::F64 && !op_case.options.any_float) continue;
      const CaseProgram program = build_case(op_case, dtype);
      const std::vector<Tensor> slopes = gradients(program);
      if (slopes.empty()) continue;
      compare(counts, fmt::format("{} in {}: gradients", op_case.name, name(dtype)), slopes,
              case_bindings(program, case_shapes(op_case), values_in(op_case, dtype)),
              &kDerivatives, op_case.options.special);
    }
  });
}
