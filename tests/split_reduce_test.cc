// Sums of many terms for few results are made in pieces, which cores or workgroups share, whatever
// else is stored beside them.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "codegen/target_kernels.h"
#include "models/program.h"
#include "schedule/schedule.h"
#include "symbolic/bounds.h"

using namespace anneal;

namespace {

// Terms of the longest sum for one result.
int64_t longest_sum(const std::vector<Tensor>& results, const Target& target,
                    std::vector<std::string> disabled = {}) {
  std::vector<NodeRef> roots;
  for (const Tensor& tensor : results) roots.push_back(tensor.node());
  const Capabilities capabilities = capabilities_of(target);
  ScheduleOptions options;
  options.capabilities = capabilities;
  options.disabled = std::move(disabled);
  const Schedule schedule = schedule_program(simplified_for(roots, capabilities), options);
  GraphScope inside(*schedule.graph);
  int64_t longest = 0;
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase)
        for (NodeRef node : topological_order(part.body.stores)) {
          if (!is_reduce_over(node->op)) continue;
          int64_t terms = 1;
          for (NodeRef axis : node->sources().subspan(1))
            terms *= bounds(part.body.axis_of(axis).size).max;
          longest = std::max(longest, terms);
        }
  return longest;
}

// As an optimizer that clips: a norm of everything, and a small parameter scaled by it, which is
// stored by the kernel that has the norm.
std::vector<Tensor> norm_and_scaled(const Tensor& large, const Tensor& small) {
  const Tensor norm = sqrt(sum(large * large) + sum(small * small));
  return {norm, small / norm, sum(reshape(small, {-1, 8}), {1}) * norm};
}

}  // namespace

TEST_CASE("split reduce: beside stores of other sizes") {
  constexpr int64_t kTerms = 600'000, kFew = 512;
  const Tensor large = input("large", {kTerms}), small = input("small", {kFew});
  for (const Target& target : named_targets()) {
    CAPTURE(target.name);
    CHECK(longest_sum(norm_and_scaled(large, small), target, {"split-reduce"}) == kTerms);
    CHECK(longest_sum(norm_and_scaled(large, small), target) <= kTerms / 30);
    // The step of a model that clips, too.
    const models::Program mlp = models::mlp();
    CHECK(longest_sum(mlp.updates, target) <= 1 << 14);
  }
}

TEST_CASE("split reduce: values beside stores of other sizes") {
  std::vector<float> terms(300'000), few(512);
  for (size_t i = 0; i < terms.size(); ++i) terms[i] = static_cast<float>(i % 7) - 2.5f;
  for (size_t i = 0; i < few.size(); ++i) few[i] = static_cast<float>(i % 5) - 1.5f;
  double squares = 0;
  for (float term : terms) squares += double{term} * term;
  for (float term : few) squares += double{term} * term;
  const double norm = std::sqrt(squares);
  for (const char* device : {"cpu", "webgpu"}) {
    CAPTURE(device);
    DeviceScope scope(device);
    const std::vector<Tensor> results =
        evaluate(norm_and_scaled(from_data(terms, {300'000}), from_data(few, {512})));
    CHECK(results[0].to_vector<float>()[0] == doctest::Approx(norm).epsilon(1e-6));
    const std::vector<float> scaled = results[1].to_vector<float>();
    const std::vector<float> rows = results[2].to_vector<float>();
    for (size_t i = 0; i < few.size(); ++i)
      CHECK(scaled[i] == doctest::Approx(few[i] / norm).epsilon(1e-5));
    for (size_t row = 0; row < rows.size(); ++row) {
      const auto first = few.begin() + static_cast<std::ptrdiff_t>(8 * row);
      const double total = std::accumulate(first, first + 8, 0.0);
      CHECK(rows[row] == doctest::Approx(total * norm).epsilon(1e-5));
    }
  }
}
