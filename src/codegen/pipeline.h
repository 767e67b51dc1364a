// The way of a program from the captured graph to code, stage by stage: the page to open first.
//
//   stage        where                          what
//   algorithms   schedule/graph/conv_rules.h    how convolutions are computed
//   simplify     transform/simplify.h           sets of rules over the graph
//   graph        schedule/passes.h              rewrites of the graph before it becomes kernels
//   fusion       schedule/passes.h              movement becomes index arithmetic; what is
//                                               stored, and what becomes one kernel
//   fragments    schedule/passes.h              split-K, masks, axes; the kernels in order
//   memory       schedule/memory/memory_plan.h  offsets in one arena, for the sizes of a run
//   kernel body  kernel/lower.h                 passes over what one kernel computes
//   plan         kernel/plan/plan.h             lanes, register tiles, staging: no rewrites
//   emit         kernel/emit/emit.h             the low-level program
//   gpu program  kernel/gpu/passes.h            what threads of a workgroup do, made explicit
//   code         codegen/llvm, codegen/wgsl     its text or machine code
//
// codegen/target_kernels.h runs the stages up to code for a target;
// runtime/program/compiled_program.cc does so for a device and keeps the result, a plan that is
// replayed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rewrite/passes.h"

namespace anneal {

class RuleSet;

// Every pass, in the order in which they run; of a stage of rules, the rule sets.
std::vector<PassRow> pipeline();

// Every set of rules that rewrites the whole graph, in order.
const std::vector<const RuleSet*>& rule_sets();

// Names that may be left out: passes that are not required, families, parts of passes, choices of
// plans, rule sets and their rules ("identities/mul-one").
std::vector<std::string> names_to_disable();

}  // namespace anneal
