#include "transform/simplify.h"

#include <algorithm>

#include "ir/build.h"
#include "ir/verify.h"
#include "rewrite/passes.h"
#include "symbolic/simplify.h"

namespace anneal {

using namespace captures;

// Marks for differentiation mean nothing once it is done.
const RuleSet kStripRules{
    "strip",
    {
        {"stop-gradient", op(Op::StopGradient, x), [](const Match& m) { return m[x]; }},
        {"custom-grad", any_of({Op::CustomGrad}),
         [](const Match& m) { return m.root()->source(0); }},
        {"named", op(Op::Named, x), [](const Match& m) { return m[x]; }},
        {"contiguous-twice", op(Op::Contiguous, op(Op::Contiguous, x).as(y)),
         [](const Match& m) { return m[y]; }},
    }};

namespace {

// The size of a pad or shrink is a sum of what its sources became, which may be longer than what
// the same size became elsewhere: n // 2 * 2 + n % 2 and n.
bool simplify_shapes(std::vector<NodeRef>& sources) {
  bool changed = false;
  for (NodeRef& source : sources) {
    if (is_static(*source->shape)) continue;
    const std::vector<NodeRef> dims = simplify(source->shape->dims());
    if (std::ranges::equal(dims, source->shape->dims())) continue;
    source = make_tail(Op::Reshape, source, dims);
    changed = true;
  }
  return changed;
}

}  // namespace

const std::vector<const RuleSet*>& program_rules() {
  static const auto& rules = *new std::vector<const RuleSet*>([] {
    std::vector<const RuleSet*> sets{&kStripRules, &kFoldRules, &kIdentityRules, &kMovementRules,
                                     &kOrderRules};
    for (const RuleSet* set : index_rules()) sets.push_back(set);
    return sets;
  }());
  return rules;
}

std::vector<NodeRef> simplify_program(std::span<const NodeRef> roots, RewriteLog* log,
                                      const DisabledRules& disabled) {
  auto size = [](std::span<const NodeRef> nodes) {
    return StateSize{static_cast<int64_t>(topological_order(nodes).size()), 0};
  };
  PassRun run("simplify", "rules");
  run.begin();
  std::vector<NodeRef> result =
      Rewriter(program_rules(), Direction::BottomUp, disabled, log, simplify_shapes).run(roots);
  run.end();
  PassRun::Outcome outcome;
  if (run.wants_sizes())
    outcome = {!std::ranges::equal(result, roots), size(roots), size(result), {}, {}};
  run.finish(outcome);
#ifndef NDEBUG
  // Without the rules that strip them, marks of gradients may be left.
  const std::string problem = verify(result, disabled.empty() ? kProgramStage : kTensorStage);
  if (!problem.empty()) throw InternalError("simplify_program made " + problem);
#endif
  return result;
}

}  // namespace anneal
