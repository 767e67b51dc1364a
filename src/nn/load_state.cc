// States as one, and values of one state into the parameters of another.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include <anneal/state.h>

#include "ir/dtype.h"
#include "tensor/lift.h"

namespace anneal {
namespace {

// "a", "b" and 7 more
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 2;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += fmt::format("{}\"{}\"", i ? ", " : "", names[i]);
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

}  // namespace

State join(const std::vector<State>& states, Location where) {
  CallScope call("join", where);
  State all;
  std::unordered_set<std::string_view> names;
  for (const State& state : states) {
    for (const auto& [name, tensor] : state)
      if (!names.insert(name).second)
        fail(fmt::format("two tensors are called \"{}\"", name),
             "give modules and compiled functions names of their own");
    all.insert(all.end(), state.begin(), state.end());
  }
  return all;
}

void load_state(const State& into, const State& from, const LoadOptions& options, Location where) {
  CallScope call("load_state", where);
  std::unordered_map<std::string_view, const Tensor*> values;
  for (const auto& [name, tensor] : from) values[name] = &tensor;
  std::vector<std::string> missing, unexpected, misfits;
  std::vector<std::pair<const Tensor*, const Tensor*>> pairs;
  for (const auto& [name, parameter] : into) {
    auto found = values.find(name);
    if (found == values.end()) {
      missing.push_back(name);
      continue;
    }
    NodeRef wanted = node_of(parameter), given = node_of(*found->second);
    if (wanted->dtype != given->dtype || wanted->shape != given->shape)
      misfits.push_back(
          fmt::format("\"{}\" is {} here and {} there", name, type_text(wanted), type_text(given)));
    pairs.emplace_back(&parameter, found->second);
    values.erase(found);
  }
  for (const auto& [name, tensor] : from)
    if (values.contains(name)) unexpected.push_back(name);

  std::string problem;
  auto add = [&](const std::string& text) { problem += (problem.empty() ? "" : "; ") + text; };
  if (!missing.empty() && !options.allow_missing) add(listed(missing) + " not in the given state");
  if (!unexpected.empty() && !options.allow_unexpected)
    add(listed(unexpected) + " not in this one");
  if (!misfits.empty())
    add(misfits[0] + (misfits.size() > 1 ? fmt::format(" and {} more", misfits.size() - 1) : ""));
  if (!problem.empty())
    fail(problem, pairs.empty() ? "this is another model's state"
                                : "build the model with the sizes and layers of that state");
  std::vector<Tensor> assignments;
  for (auto [parameter, value] : pairs) assignments.push_back(parameter->assign(*value));
  evaluate(assignments, {}, where);
}

}  // namespace anneal
