// Training steps against PyTorch: forward, backward and AdamW, until the loss is known. Both sides
// have the same models and keep their batch; what is timed is a call of a compiled function.
#include <chrono>

#include <fmt/format.h>

#include <anneal/compile.h>
#include <anneal/optim.h>
#include <anneal/random.h>

#include "bench/training_models.h"
#include "cli/bench/cases.h"

namespace anneal::cli {
namespace {

constexpr std::string_view kBench = "train";

// Tensors that stay where they are, as those of a training loop that writes its batches to them.
struct Batch {
  Tensor x, y;
  Batch(const Tensor& xs, const Tensor& ys) : x(parameter("x", xs)), y(parameter("y", ys)) {}
};

Batch images(const Sizes& sizes) { return {rand(sizes), randint({sizes[0]}, 0, 10)}; }

Batch text(int64_t batch, int64_t block) {
  const int64_t vocabulary = bench::CharGpt::kVocabulary;
  return {randint({batch, block}, 0, vocabulary), randint({batch, block}, 0, vocabulary)};
}

template <typename Model>
void bench_model(const BenchContext& context, std::string_view name, const Model& model,
                 const Batch& batch, std::string_view peer_case) {
  optim::AdamW adamw(model);
  auto step = compile([&](const Tensor& x, const Tensor& y) {
    Tensor loss = model.loss(x, y);
    adamw.update(loss);
    return loss;
  });
  const auto run = [&] {
    const auto start = std::chrono::steady_clock::now();
    step(batch.x, batch.y).item();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  run();  // compiles
  const Timing timing = time_against(context, run, PeerKind::PyTorch, peer_case);
  BenchRow row = context.row(kBench, name, "ms");
  row.more_is_better = false;
  row.ours = timing.ours * 1e3;
  if (timing.peer.name.empty()) {
    row.note = timing.peer.reason;
  } else {
    row.peer = timing.peer.name;
    row.peer_value = timing.peer.seconds * 1e3;
  }
  context.report.add(std::move(row));
}

void bench_gpt(const BenchContext& context, const bench::GptSizes& sizes, int64_t batch) {
  const auto [block, layers, heads, width] = sizes;
  const std::string name =
      fmt::format("char GPT {} x {}, {} x {} tokens", layers, width, batch, block);
  if (context.begin(kBench, name))
    bench_model(context, name, bench::CharGpt(sizes), text(batch, block),
                fmt::format("train gpt {} {} {} {} {}", batch, block, layers, heads, width));
}

}  // namespace

void bench_train(const BenchContext& context) {
  seed(1);
  if (constexpr std::string_view kName = "MLP 784-512-512-10, 128 images";
      context.begin(kBench, kName))
    bench_model(context, kName, bench::Mlp(), images({128, 784}), "train mlp 128");
  if (constexpr std::string_view kName = "conv 1>32>64, pool, linear, 64 images";
      context.begin(kBench, kName))
    bench_model(context, kName, bench::ConvNet(), images({64, 1, 28, 28}), "train conv 64");
  bench_gpt(context, {.block = 64}, 16);
  bench_gpt(context, {.block = 256}, 8);
  if (!context.device.takes_thousands_of_threads()) return;
  bench_gpt(context, {.block = 256, .layers = 6, .heads = 6, .width = 384}, 64);
  bench_gpt(context, {.block = 1024, .layers = 12, .heads = 12, .width = 768}, 8);
}

}  // namespace anneal::cli
