// Work bound by memory, over 16 million floats or 64 on a large GPU, against PyTorch and against
// copying.
#include <memory>

#include <fmt/format.h>

#include <anneal/functional.h>

#include "cli/bench/cases.h"
#include "cli/doctor/memory_copy.h"

namespace anneal::cli {
namespace {

constexpr std::string_view kBench = "rows", kUnit = "GB/s";
constexpr int64_t kRows = 4096, kLargeRows = 16384, kColumns = 4096;

struct Operation {
  std::string_view name;
  double tensors;     // read and written, of the full size
  bool against_copy;  // shown as a fraction of copying too; on a GPU all are
  Tensor (*build)(const Tensor& x, const Tensor& y);
};

const Operation kOperations[] = {
    {"add", 3, false, [](const Tensor& x, const Tensor& y) { return x + y; }},
    {"exp", 2, false, [](const Tensor& x, const Tensor&) { return exp(x); }},
    {"gelu", 2, false, [](const Tensor& x, const Tensor&) { return gelu(x); }},
    {"softmax", 2, true, [](const Tensor& x, const Tensor&) { return softmax(x); }},
    {"layernorm", 2, true,
     [](const Tensor& x, const Tensor&) {
       return layer_norm(x, 1, filled({kColumns}, 5), filled({kColumns}, 3));
     }},
    {"sum", 1, true, [](const Tensor& x, const Tensor&) { return sum(x); }},
    {"transpose", 2, false,
     [](const Tensor& x, const Tensor&) { return contiguous(transpose(x)); }},
};
const Operation kOnGpu = {"2x+1", 2, true,
                          [](const Tensor& x, const Tensor&) { return x * 2 + 1; }};

// What the others are compared with: a CPU's memory copied by its library, a GPU's by a kernel.
struct Copy {
  std::string_view name;
  double gigabytes;  // read and written by a run
  Run run;
};

Copy make_copy(const BenchContext& context, const Tensor& x, double tensor_gigabytes) {
  if (context.device.runs_beside_host()) {
    auto copy = std::make_shared<Prepared>(context.device, std::vector{contiguous(x)});
    return {"device copy", 2 * tensor_gigabytes, [=] { return copy->run(); }};
  }
  auto copy = std::make_shared<MemoryCopy>(context.threads);
  return {"memcpy", MemoryCopy::gigabytes(), [=] { return copy->run(); }};
}

}  // namespace

void bench_rows(const BenchContext& context) {
  const int64_t rows = context.device.takes_thousands_of_threads() ? kLargeRows : kRows;
  const Tensor x = filled({rows, kColumns}, 13), y = filled({rows, kColumns}, 7);
  const double tensor_gigabytes = 4e-9 * static_cast<double>(rows * kColumns);
  const Copy copy = make_copy(context, x, tensor_gigabytes);
  const auto add = [&](std::string_view name, const Run& run, std::string_view peer_name,
                       double gigabytes) {
    const Timing timing = time_against(context, run, PeerKind::PyTorch,
                                       fmt::format("rows {} {} {}", peer_name, rows, kColumns));
    add_rates(context, context.row(kBench, name, kUnit), timing, gigabytes);
  };
  if (context.begin(kBench, copy.name)) add(copy.name, copy.run, "copy", copy.gigabytes);

  std::vector<Operation> operations(std::begin(kOperations), std::end(kOperations));
  if (context.device.runs_beside_host()) operations.push_back(kOnGpu);
  for (const Operation& operation : operations) {
    const std::string fraction_name = fmt::format("{} beside copying", operation.name);
    if (!context.asked_for(operation.name) && !context.asked_for(fraction_name)) continue;
    Prepared ours(context.device, {operation.build(x, y)});
    const Run run = [&] { return ours.run(); };
    const double gigabytes = operation.tensors * tensor_gigabytes;
    if (context.begin(kBench, operation.name)) add(operation.name, run, operation.name, gigabytes);

    const bool against_copy = operation.against_copy || context.device.runs_beside_host();
    if (!against_copy || !context.begin(kBench, fraction_name)) continue;
    const TimingOfTwo both = time_both(context, run, copy.run);
    BenchRow fraction = context.row(kBench, fraction_name, kUnit);
    fraction.ours = gigabytes / both.first;
    fraction.peer = copy.name;
    fraction.peer_value = copy.gigabytes / both.second;
    context.report.add(std::move(fraction));
  }
}

}  // namespace anneal::cli
