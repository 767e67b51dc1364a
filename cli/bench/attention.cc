// Attention, forward and backward, written as softmax(Q.K^T).V: how the planned memory grows with
// the number of tokens, and what not storing the scores is worth.
#include <cmath>

#include <fmt/format.h>

#include <anneal/functional.h>
#include <anneal/grad.h>

#include "cli/bench/cases.h"
#include "cli/inspect/programs.h"
#include "codegen/llvm/compile.h"
#include "schedule/work_count.h"
#include "transform/simplify.h"

namespace anneal::cli {
namespace {

constexpr std::string_view kBench = "attention";
constexpr int64_t kHeads = 4, kWidth = 64, kFewTokens = 256, kManyTokens = 8192, kTimed = 1024;

// As models write it. With `plain` the scores and their softmax are stored as they are.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, bool plain) {
  const auto keep = [&](const Tensor& x) { return plain ? contiguous(x) : x; };
  const Tensor scores =
      keep(matmul(q, transpose(k)) * (1 / std::sqrt(static_cast<double>(kWidth))));
  return matmul(keep(softmax(scores)), v);
}

// The result and the gradients of all three.
std::vector<Tensor> forward_and_backward(const Tensor& q, const Tensor& k, const Tensor& v,
                                         const Tensor& seed, bool plain) {
  const Tensor result = attention(q, k, v, plain);
  std::vector<Tensor> all = grad(result, {q, k, v}, {.seed = seed});
  all.insert(all.begin(), result);
  return all;
}

// Bytes beside inputs and results.
double planned_bytes(int64_t tokens, const Capabilities& capabilities) {
  const Sizes sizes{kHeads, tokens, kWidth};
  const std::vector<Tensor> results = forward_and_backward(
      input("q", sizes), input("k", sizes), input("v", sizes), input("g", sizes), false);
  const Schedule schedule =
      schedule_program(simplify_program(nodes_of(results)), {capabilities, {}});
  return static_cast<double>(count_memory(schedule).arena);
}

void bench_memory(const BenchContext& context) {
  double before = 0;
  for (int64_t tokens = kFewTokens; tokens <= kManyTokens; tokens *= 2) {
    const std::string name = fmt::format("T = {}, temporaries", tokens);
    if (!context.begin(kBench, name)) continue;
    const double bytes = planned_bytes(tokens, context.device.capabilities());
    BenchRow row = context.row(kBench, name, "MB");
    row.more_is_better = false;
    row.ours = bytes * 1e-6;
    row.peer = "the scores alone";
    row.peer_value = 4e-6 * static_cast<double>(kHeads * tokens * tokens);
    context.report.add(std::move(row));
    if (before > 0) {
      BenchRow growth = context.row(kBench, fmt::format("T = {}, growth from half", tokens), "T^");
      growth.more_is_better = false;
      growth.ours = std::log2(bytes / before);
      growth.peer = "linear";
      growth.peer_value = 1;
      context.report.add(std::move(growth));
    }
    before = bytes;
  }
}

void bench_time(const BenchContext& context) {
  const std::string name = fmt::format("T = {}, forward and backward", kTimed);
  if (!context.begin(kBench, name)) return;
  const std::vector<int64_t> sizes{kHeads, kTimed, kWidth};
  const Tensor q = filled(sizes, 13), k = filled(sizes, 7), v = filled(sizes, 5),
               seed = filled(sizes, 3);
  Prepared fused(context.device, forward_and_backward(q, k, v, seed, false));
  Prepared plain(context.device, forward_and_backward(q, k, v, seed, true));
  const TimingOfTwo timing =
      time_both(context, [&] { return fused.run(); }, [&] { return plain.run(); });
  BenchRow row = context.row(kBench, name, "ms");
  row.more_is_better = false;
  row.ours = timing.first * 1e3;
  row.peer = "ours, scores stored";
  row.peer_value = timing.second * 1e3;
  context.report.add(std::move(row));
}

}  // namespace

void bench_attention(const BenchContext& context) {
  if (context.first) bench_memory(context);  // the same for every number of threads
  bench_time(context);
}

}  // namespace anneal::cli
