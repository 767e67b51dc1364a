#include "cli/train/nonfinite.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "base/call_site.h"
#include "cli/inspect/programs.h"
#include "ir/graph.h"

namespace anneal::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kAtOnce = 32;  // nodes in one program: most steps fail early

// Moving and marking values makes none that were not there.
bool passes_on(NodeRef node) { return is_movement(node->op) || kMarks.contains(node->op); }

bool makes_values(NodeRef node) {
  return is_float(node->dtype) && !passes_on(node) && !node->is_const() && node->op != Op::Assign;
}

struct Candidate {
  Tensor tensor;
  std::vector<size_t> sources;  // candidates whose values it has directly
  bool masks = false;           // a source is the constant -inf
};

NodeRef without_movement(NodeRef node) {
  while (passes_on(node) || node->op == Op::Cast) node = node->source(0);
  return node;
}

std::vector<Candidate> candidates_of(const std::vector<Tensor>& program) {
  std::vector<Candidate> candidates;
  std::unordered_map<NodeRef, size_t> places;
  for (NodeRef node : topological_order(nodes_of(program))) {
    if (!makes_values(node)) continue;
    Candidate candidate{Tensor(node), {}, false};
    for (NodeRef source : node->tensors()) {
      source = without_movement(source);
      candidate.masks |= source->is_const() && source->is_const_value(-kInfinity);
      if (const auto place = places.find(source); place != places.end())
        candidate.sources.push_back(place->second);
    }
    places[node] = candidates.size();
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

std::string describe(const Tensor& tensor) {
  NodeRef node = tensor.node();
  if (!tensor.name().empty())
    return fmt::format("the parameter \"{}\", {}{}", tensor.name(), name(tensor.dtype()),
                       to_text(tensor.shape()));
  return fmt::format("{}{}, made by {}{}", name(tensor.dtype()), to_text(tensor.shape()),
                     name(node->op), node->origin ? " of " + to_text(*node->origin) : "");
}

}  // namespace

std::string first_non_finite(const std::vector<Tensor>& program,
                             const std::vector<std::pair<std::string, Tensor>>& inputs,
                             Bindings bindings) {
  for (NodeRef node : topological_order(nodes_of(program)))
    if (node->op == Op::Buffer && !current_graph().stored(node))
      for (const auto& [name, tensor] : inputs)
        if (node->arg.symbol->text() == name) bindings.inputs.emplace_back(Tensor(node), tensor);

  const std::vector<Candidate> candidates = candidates_of(program);
  std::unordered_set<size_t> masked;
  for (size_t first = 0; first < candidates.size(); first += kAtOnce) {
    const size_t end = std::min(first + kAtOnce, candidates.size());
    std::vector<Tensor> flags;
    for (size_t i = first; i < end; ++i) {
      const Tensor& x = candidates[i].tensor;
      flags.push_back(any(is_nan(x) | (x == kInfinity)));
      flags.push_back(any(x == -kInfinity));
    }
    flags = evaluate(flags, bindings);
    for (size_t i = first; i < end; ++i) {
      const bool wrong = flags[2 * (i - first)].item<bool>(),
                 negative = flags[2 * (i - first) + 1].item<bool>();
      const bool on_purpose =
          candidates[i].masks ||
          std::ranges::any_of(candidates[i].sources, [&](size_t s) { return masked.contains(s); });
      if (wrong || (negative && !on_purpose)) return describe(candidates[i].tensor);
      if (negative) masked.insert(i);
    }
  }
  return "";
}

}  // namespace anneal::cli
