// Rules that know more than their node: one walk, each node once, with names and counts; and the
// passes of schedule and kernels that are made of such rules.
#include "rewrite/local_rules.h"

#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include <anneal/functional.h>

#include "codegen/pipeline.h"
#include "codegen/target_kernels.h"
#include "models/program.h"
#include "tensor/lift.h"

using namespace anneal;

namespace {

struct Doubling {
  NodeRef wanted = nullptr;
  int seen = 0;
};

// A product with itself, of one node alone: what it makes could be doubled for ever.
const LocalRules<Doubling> kDoubling{
    "doubling",
    {{"wanted", captures::x,
      [](NodeRef node, NodeRef image, Doubling& doubling) {
        ++doubling.seen;
        return node == doubling.wanted ? make(Op::Add, {image, image}) : unchanged;
      }},
     {"exp-twice", op(Op::Exp, op(Op::Exp, captures::x)),
      [](NodeRef, NodeRef image, Doubling&) { return image->source(0); }}}};

// The rules that fire on the way of a program to a target's kernels, as "set/rule".
std::set<std::string> fired(const models::Program& program, const Capabilities& capabilities) {
  std::vector<NodeRef> roots{node_of(program.loss)};
  for (const Tensor& update : program.updates) roots.push_back(node_of(update));
  const PassTrace trace;
  const Schedule schedule = schedule_for(simplified_for(roots, capabilities), capabilities);
  const GraphScope inside(*schedule.graph);
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase) lower_for(part.body, {.capabilities = capabilities});
  std::set<std::string> names;
  for (const RewriteLog::Hit& hit : trace.hits())
    names.insert(std::string(hit.set) + "/" + std::string(hit.rule));
  return names;
}

Capabilities capabilities_named(std::string_view target, const Wishes& wishes = {}) {
  return capabilities_of(*find_target(target), wishes);
}

}  // namespace

TEST_CASE("local rules: each node is offered once, and what a rule makes stays") {
  Graph graph;
  const GraphScope scope(graph);
  const NodeRef a = node_of(input("a", {4}));
  const NodeRef e = make(Op::Exp, {a}), root = make(Op::Mul, {e, a});
  Doubling doubling{e};
  const PassTrace trace;
  const NodeRef result = rewrite_once({&root, 1}, kDoubling, doubling)[0];
  CHECK(result == make(Op::Mul, {make(Op::Add, {e, e}), a}));
  CHECK(doubling.seen == static_cast<int>(topological_order({&root, 1}).size()));
  REQUIRE(trace.hits().size() == 1);
  CHECK(trace.hits()[0].set == "doubling");
  CHECK(trace.hits()[0].rule == "wanted");
  CHECK(trace.hits()[0].count == 1);
  // Nothing to do: the same handle.
  Doubling nothing;
  CHECK(rewrite_once({&root, 1}, kDoubling, nothing)[0] == root);
  // Patterns are of the node as it was, the result is made of what its sources became.
  const NodeRef twice = make(Op::Exp, {e});
  Doubling inner{a};
  CHECK(rewrite_once({&twice, 1}, kDoubling, inner)[0] == make(Op::Exp, {make(Op::Add, {a, a})}));
}

TEST_CASE("local rules: are left out by name, unless they are required") {
  Graph graph;
  const GraphScope scope(graph);
  const NodeRef a = node_of(input("a", {4}));
  const NodeRef root = make(Op::Exp, {a});
  set_pass_requests({.disabled = {"doubling/wanted"}});
  Doubling doubling{a};
  const NodeRef left_out = rewrite_once({&root, 1}, kDoubling, doubling)[0];
  LocalRules<Doubling> required = kDoubling;
  required.required = true;
  const NodeRef forced = rewrite_once({&root, 1}, required, doubling)[0];
  set_pass_requests({});
  CHECK(left_out == root);
  CHECK(forced != root);
  const std::vector<std::string> names = names_to_disable();
  for (const char* name :
       {"reciprocals/row-divisor", "pick-terms/only-term", "scatter-as-reduction/sum-over-values",
        "activation-gradient/store-slope"})
    CHECK(std::ranges::count(names, name) == 1);
  CHECK(std::ranges::count(names, "limits/store-value") == 0);
}

TEST_CASE("local rules: those of schedule and kernels report what they did") {
  Graph graph;
  const GraphScope scope(graph);
  std::set<std::string> all = fired(models::mlp(), capabilities_named("cpu-avx2"));
  all.merge(fired(models::nanogpt(), capabilities_named("webgpu-minimum")));
  all.merge(fired(models::conv(), capabilities_named("cpu-avx2")));
  const Tensor a = input("a", {2048, 1024}), b = input("b", {1024, 2048});
  const models::Program product{
      .loss = sum(square(matmul(a, b))), .parameters = {}, .gradients = {}, .updates = {}};
  all.merge(
      fired(product, capabilities_named("webgpu-h200", {.precision = MatmulPrecision::High})));
  for (const char* name :
       {"reciprocals/row-divisor", "pick-terms/only-term", "scatter-as-reduction/sum-over-values",
        "activation-gradient/store-slope", "limits/store-value", "unswitch-axes/decide-choice",
        "split-f32-products/two-halves"}) {
    CAPTURE(name);
    CHECK(all.contains(name));
  }
}
