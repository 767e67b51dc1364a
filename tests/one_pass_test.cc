// Softmax and what is made of it in one pass over blocks of a row, from plain tensor programs.
#include <cmath>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "kernel/body/hoist_prologue.h"
#include "kernel/body/online_reduction.h"
#include "lower_check.h"
#include "schedule/schedule.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What is too large to be stored is computed in tiles, whatever its size.
Schedule schedule_in_tiles(const std::vector<Tensor>& results) {
  std::vector<NodeRef> roots;
  for (const Tensor& result : results) roots.push_back(result.node());
  ScheduleOptions options;
  options.capabilities.tiles = true;
  options.threshold_scale = 1 << 20;
  return schedule_program(simplify_program(roots), options);
}

// Memory for blocks of 8 elements.
Capabilities little_memory() {
  Capabilities capabilities;
  capabilities.vector_bytes = 16;
  capabilities.nearest_memory_bytes = 1 << 10;
  capabilities.tile_memory_bytes = 1 << 10;
  return capabilities;
}

struct Passes {
  size_t kernels = 0;           // with tiles
  std::vector<size_t> loops{};  // over blocks, of each
  int64_t largest = 0;          // elements a tile has for a row
};

Passes passes_of(const std::vector<Tensor>& results, const Capabilities& capabilities) {
  Passes passes;
  const Schedule schedule = schedule_in_tiles(results);
  GraphScope scope(*schedule.graph);
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase) {
        if (part.body.tiles.empty()) continue;
        ++passes.kernels;
        const KernelBody body = online_reductions(hoist_prologues(part.body), capabilities);
        passes.loops.push_back(body.block_axes.size());
        for (NodeRef tile : body.tiles)
          passes.largest = std::max(passes.largest, static_value(tile->dim(0)));
        check_lowering(part.body);
      }
  return passes;
}

struct Inputs {
  explicit Inputs(int64_t tokens)
      : q(input("q", {2, tokens, 4})),
        k(input("k", {2, tokens, 4})),
        v(input("v", {2, tokens, 6})) {}
  Tensor scores() const { return matmul(q, transpose(k)) * 0.5; }
  Tensor q, k, v;
};

Tensor below_diagonal(int64_t tokens) { return tril(ones({tokens, tokens}, DType::Bool)); }

}  // namespace

TEST_CASE("one pass: attention in any form that softmax is written in") {
  for (const int64_t tokens : {21, 24}) {
    Graph graph;
    GraphScope scope(graph);
    const Inputs in(tokens);
    const Tensor s = in.scores(), top = s.max({-1}, true);
    const Tensor masked = where(below_diagonal(tokens), s, -kInfinity);
    const Tensor total = log(sum(exp(s - top), {-1}, true)) + top;
    const Tensor dropped = where(input("kept", {2, tokens, tokens}, DType::Bool), softmax(s), 0.0);
    const std::vector<std::pair<std::string, Tensor>> forms{
        {"softmax", matmul(softmax(s), in.v)},
        {"masked", matmul(softmax(masked), in.v)},
        {"quotient after the product", matmul(exp(s - top), in.v) / sum(exp(s - top), {-1}, true)},
        {"logsumexp", matmul(exp(s - total), in.v)},
        {"dropout", matmul(dropped * 1.25, in.v)},
        {"bias", matmul(softmax(s + input("bias", {1, tokens})), in.v)},
    };
    for (const auto& [name, form] : forms) {
      CAPTURE(name);
      CAPTURE(tokens);
      const Passes passes = passes_of({form}, little_memory());
      CHECK(passes.kernels == 1);
      CHECK(passes.loops == std::vector<size_t>{1});
      CHECK(passes.largest <= 8);
    }
  }
}

TEST_CASE("one pass: attention with a mask or a bias that is given") {
  constexpr int64_t kTokens = 24;
  Graph graph;
  GraphScope scope(graph);
  const Tensor q = input("q", {2, 4, kTokens, 4}), k = input("k", {2, 4, kTokens, 4}),
               v = input("v", {2, 4, kTokens, 6});
  const std::vector<std::pair<std::string, Tensor>> masks{
      {"keys", input("keys", {2, 1, 1, kTokens}, DType::Bool)},
      {"tokens and keys", input("both", {kTokens, kTokens}, DType::Bool)},
      {"bias of heads", input("bias", {4, kTokens, kTokens})},
      {"bias of keys", input("key_bias", {kTokens})},
  };
  for (const auto& [name, mask] : masks)
    for (const bool causal : {false, true})
      for (const bool shared : {false, true}) {
        CAPTURE(name);
        CAPTURE(causal);
        CAPTURE(shared);
        auto heads = [&](const Tensor& t) { return shared ? slice(t, {{}, {.end = 2}}) : t; };
        const Tensor mixed = nn::attention(q, heads(k), heads(v), causal, mask);
        const Passes passes = passes_of({mixed}, little_memory());
        CHECK(passes.kernels == 1);
        CHECK(passes.loops == std::vector<size_t>{1});
        CHECK(passes.largest <= 8);
      }
}

TEST_CASE("one pass: the backward pass takes two, or keeps its rows where they fit") {
  Graph graph;
  GraphScope scope(graph);
  const Inputs in(20);
  const Tensor mixed = matmul(softmax(in.scores()), in.v);
  std::vector<Tensor> results = grad(sum(mixed * input("w", {2, 20, 6})), {in.q, in.k, in.v});
  results.push_back(mixed);
  const Passes little = passes_of(results, little_memory());
  CHECK(little.loops == std::vector<size_t>{2, 1});
  CHECK(little.largest <= 8);
  Capabilities much = little_memory();
  much.tile_memory_bytes = 1 << 20;
  CHECK(passes_of(results, much).loops == std::vector<size_t>{0, 1});
}

TEST_CASE("one pass: sizes that are known later") {
  Graph graph;
  GraphScope scope(graph);
  const Variable n("n", 1, 64);
  const Tensor q = input("q", {n, 4}), k = input("k", {n, 4}), v = input("v", {n, 4});
  const Schedule schedule = schedule_in_tiles({matmul(softmax(matmul(q, transpose(k))), v)});
  GraphScope inner(*schedule.graph);
  size_t in_blocks = 0;
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase) {
        in_blocks += online_reductions(part.body, little_memory()).block_axes.size();
        for (const int64_t size : {1, 7, 8, 9, 33, 64}) check_lowering(part.body, {size});
      }
  CHECK(in_blocks == 1);
}

// Blocks in which nothing counts, before and after those in which something does, rows in which
// nothing does, and values that are no numbers.
TEST_CASE("one pass: infinities and NaN are what they are in the plain form") {
  constexpr int64_t kTokens = 640, kWidth = 8;
  std::vector<float> q, k, v;
  for (int64_t i = 0; i < kTokens * kWidth; ++i) {
    q.push_back(static_cast<float>((i * 37 + 11) % 101) / 50 - 1);
    k.push_back(static_cast<float>((i * 53 + 7) % 97) / 48 - 1);
    v.push_back(static_cast<float>((i * 29 + 3) % 89) / 44 - 1);
  }
  k[100 * kWidth] = std::numeric_limits<float>::quiet_NaN();  // seen by rows 100 to 139
  k[500 * kWidth] = std::numeric_limits<float>::infinity();
  const Sizes sizes{kTokens, kWidth};
  const Tensor lower = below_diagonal(kTokens);
  const Tensor window = lower & !tril(ones({kTokens, kTokens}, DType::Bool), -40);
  const Tensor some = window & (arange(kTokens).reshape({kTokens, 1}) != 300);  // row 300: nothing
  auto attention = [&](bool plain) {
    const Tensor scores = matmul(from_data(q, sizes), transpose(from_data(k, sizes)));
    const Tensor masked = where(some, scores, -kInfinity);
    const Tensor weights = softmax(plain ? contiguous(masked) : masked);
    return matmul(plain ? contiguous(weights) : weights, from_data(v, sizes)).to_vector();
  };
  const std::vector<float> wanted = attention(true), got = attention(false);
  size_t numbers = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i / kWidth);
    REQUIRE(std::isnan(wanted[i]) == std::isnan(got[i]));
    if (std::isnan(wanted[i])) continue;
    ++numbers;
    REQUIRE(got[i] == doctest::Approx(wanted[i]).epsilon(1e-5));
  }
  CHECK(numbers > wanted.size() / 2);
  CHECK(numbers < wanted.size());
}
