// Random programs through the scheduler, the kernels and the device, each pass and each
// transformation left out in turn, compared with the interpreter. What fails is made small and
// printed as text that can be kept in tests/regressions.
//
//   ANNEAL_FUZZ_GRAPHS=100000 ANNEAL_FUZZ_SEED=7 build/anneal_tests -tc="schedule fuzz:*"
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph_runs.h"
#include "graph_shrink.h"
#include "ir/print.h"
#include "random_graph.h"

using namespace anneal;

namespace {

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

uint64_t graphs(uint64_t otherwise) { return number_from("ANNEAL_FUZZ_GRAPHS", otherwise); }
uint64_t first_seed() { return number_from("ANNEAL_FUZZ_SEED", 0); }

}  // namespace

TEST_CASE("schedule fuzz: bodies of kernels compute the program, with every pass left out") {
  int failures = 0;
  const std::vector<Toggle>& toggles = schedule_toggles();
  for (uint64_t k = 0; k < graphs(2000) && failures < 5; ++k) {
    const uint64_t seed = first_seed() + k;
    Graph graph;
    GraphScope scope(graph);
    const std::vector<NodeRef> roots = random_graph(seed, {.max_elements = 500});
    const GraphRuns runs(roots);
    for (size_t number = 0; number < toggles.size(); ++number) {
      if (number > 1 && seed % toggles.size() != number) continue;
      auto failure = [&](std::span<const NodeRef> program) {
        return GraphRuns(program).check_bodies(toggles[number]);
      };
      if (runs.check_bodies(toggles[number]).empty()) continue;
      ++failures;
      const ShrunkGraph small = shrink_graph(roots, failure);
      FAIL_CHECK("seed " << seed << " " << toggles[number].text() << ": " << small.failure << "\n"
                         << print(small.roots));
      break;
    }
  }
}
