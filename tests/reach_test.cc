// Masks that say which part of a row counts.
#include <limits>
#include <optional>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "kernel/body/axes.h"
#include "kernel/body/hoist_prologue.h"
#include "kernel/body/masked_range.h"
#include "lower_check.h"
#include "schedule/schedule.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr int64_t kTokens = 24;

struct Found {
  size_t kernels = 0;  // with tiles
  std::vector<std::pair<std::optional<int64_t>, std::optional<int64_t>>> windows;
};

// The windows of the kernels with tiles that compute these; every kernel is checked, too.
Found reach_of(const std::vector<Tensor>& results) {
  std::vector<NodeRef> roots;
  for (const Tensor& result : results) roots.push_back(result.node());
  ScheduleOptions options;
  options.capabilities.tiles = true;
  options.threshold_scale = 1 << 20;
  const Schedule schedule = schedule_program(simplify_program(roots), options);
  GraphScope scope(*schedule.graph);
  Found found;
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase) {
        check_lowering(part.body);
        if (part.body.tiles.empty()) continue;
        ++found.kernels;
        const KernelBody body = find_masked_ranges(hoist_prologues(drop_trivial_axes(part.body)));
        if (!body.masked_ranges.empty())
          found.windows.emplace_back(body.masked_ranges[0].first, body.masked_ranges[0].last);
      }
  return found;
}

struct Inputs {
  Tensor q = input("q", {3, kTokens, 4}), k = input("k", {3, kTokens, 4});
  Tensor v = input("v", {3, kTokens, 5});

  Tensor attention(const Tensor& mask) const {
    const Tensor scores = matmul(q, transpose(k)) * 0.5;
    return matmul(softmax(where(mask, scores, kMinusInfinity)), v);
  }
};

Tensor row() { return arange(kTokens).reshape({kTokens, 1}); }
Tensor column() { return arange(kTokens).reshape({1, kTokens}); }

}  // namespace

TEST_CASE("reach: a row sees what its mask lets it see") {
  Graph graph;
  GraphScope scope(graph);
  const Inputs in;
  using Windows = decltype(Found::windows);
  const std::optional<int64_t> none;
  const std::vector<std::pair<Tensor, Windows>> masks{
      {tril(ones({kTokens, kTokens}, DType::Bool)), {{none, 0}}},
      {column() < row(), {}},  // the first row sees nothing
      {row() <= column(), {{0, none}}},
      {(column() <= row()) & (row() - column() < 6), {{-5, 0}}},
      {column() <= row() + 2, {{none, 2}}},
      {(column() <= row()) & input("kept", {1, kTokens}, DType::Bool), {{none, 0}}},
      {column() * 2 <= row(), {}},                           // no window
      {input("mask", {kTokens, kTokens}, DType::Bool), {}},  // known later
      {(column() <= row()) | (column() < 3), {}},            // more than a window
  };
  for (size_t i = 0; i < masks.size(); ++i) {
    CAPTURE(i);
    const Found found = reach_of({in.attention(masks[i].first)});
    CHECK(found.kernels == 1);
    CHECK(found.windows == masks[i].second);
  }
}

TEST_CASE("reach: gradients have the window of their direction") {
  Graph graph;
  GraphScope scope(graph);
  const Inputs in;
  const Tensor mixed = in.attention(column() <= row());
  std::vector<Tensor> results = grad(sum(mixed * input("w", {3, kTokens, 5})), {in.q, in.k, in.v});
  results.push_back(mixed);
  const Found found = reach_of(results);
  CHECK(found.kernels == 2);  // queries see keys before them, keys are seen by queries after them
  using Windows = decltype(Found::windows);
  CHECK(found.windows == Windows{{{}, 0}, {0, {}}});
}

TEST_CASE("reach: what is summed without a mask keeps the whole row") {
  Graph graph;
  GraphScope scope(graph);
  const Inputs in;
  const Tensor scores = matmul(in.q, transpose(in.k)) * 0.5;
  const Tensor masked = where(column() <= row(), scores, kMinusInfinity);
  // The mean of the scores is over all of them.
  const Tensor both = matmul(softmax(masked), in.v) + mean(scores, {-1}, true);
  CHECK(reach_of({both}).windows.empty());
}

// Large enough to be computed in tiles on the CPU.
TEST_CASE("reach: on the device, too, and in every block") {
  constexpr int64_t kMany = 640, kWidth = 16;
  std::vector<float> values;
  for (int64_t i = 0; i < kMany * kWidth; ++i)
    values.push_back(static_cast<float>((i * 37 + 11) % 101) / 50 - 1);
  const Tensor x = from_data(values, {kMany, kWidth});
  const Tensor rows = arange(kMany).reshape({kMany, 1}),
               columns = arange(kMany).reshape({1, kMany});
  for (const Tensor& mask :
       {columns <= rows, rows <= columns, (columns <= rows) & (rows < columns + 9),
        columns + 100 <= rows, (columns <= rows) & (columns > 2)}) {
    auto attention = [&](bool plain) {
      const Tensor scores = where(mask, matmul(x, transpose(x)), kMinusInfinity);
      const Tensor weights = softmax(plain ? contiguous(scores) : scores);
      return matmul(plain ? contiguous(weights) : weights, x).to_vector();
    };
    const std::vector<float> wanted = attention(true), got = attention(false);
    for (size_t i = 0; i < wanted.size(); ++i) {
      REQUIRE(std::isnan(wanted[i]) == std::isnan(got[i]));
      if (!std::isnan(wanted[i])) REQUIRE(got[i] == doctest::Approx(wanted[i]).epsilon(1e-4));
    }
  }
}
