// Work bound by memory, over 16 million floats, against PyTorch and against copying.
#include <fmt/format.h>

#include <anneal/functional.h>

#include "bench_cases.h"
#include "memory_copy.h"

namespace anneal::cli {
namespace {

constexpr std::string_view kBench = "rows", kUnit = "GB/s";
constexpr int64_t kRows = 4096, kColumns = 4096;
constexpr double kTensorBytes = 4.0 * kRows * kColumns;

struct Operation {
  std::string_view name;
  double tensors;     // read and written, of the full size
  bool against_copy;  // shown as a fraction of copying too
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

}  // namespace

void bench_rows(const BenchContext& context) {
  MemoryCopy copy(context.threads);
  if (context.begin(kBench, "memcpy"))
    add_rates(context, context.row(kBench, "memcpy", kUnit),
              time_against(
                  context, [&] { return copy.run(); }, PeerKind::PyTorch,
                  fmt::format("rows copy {} {}", kRows, kColumns)),
              MemoryCopy::gigabytes());
  const Tensor x = filled({kRows, kColumns}, 13), y = filled({kRows, kColumns}, 7);
  for (const Operation& operation : kOperations) {
    if (!context.begin(kBench, operation.name)) continue;
    Prepared ours(context.device, {operation.build(x, y)});
    const double gigabytes = operation.tensors * kTensorBytes * 1e-9;
    const Timing timing = time_against(
        context, [&] { return ours.run(); }, PeerKind::PyTorch,
        fmt::format("rows {} {} {}", operation.name, kRows, kColumns));
    add_rates(context, context.row(kBench, operation.name, kUnit), timing, gigabytes);
    if (!operation.against_copy) continue;

    const TimingOfTwo both =
        time_both(context, [&] { return ours.run(); }, [&] { return copy.run(); });
    BenchRow fraction =
        context.row(kBench, fmt::format("{} beside copying", operation.name), kUnit);
    fraction.ours = gigabytes / both.first;
    fraction.peer = "memcpy";
    fraction.peer_value = MemoryCopy::gigabytes() / both.second;
    context.report.add(std::move(fraction));
  }
}

}  // namespace anneal::cli
