#include <algorithm>

#include <fmt/format.h>

#include <anneal/step.h>

#include "tensor/lift.h"

namespace anneal {
namespace {
thread_local Step* t_step = nullptr;  // the innermost
}

Step::Step() : outer_(t_step) { t_step = this; }
Step::~Step() { t_step = outer_; }

const Tensor* Step::find(const Tensor& parameter) const {
  for (const auto& [target, value] : changes_)
    if (target.node() == parameter.node()) return &value;
  return nullptr;
}

std::vector<Tensor> Step::updates(Location where) const {
  CallScope call("updates", where);
  std::vector<Tensor> assignments;
  for (const auto& [parameter, value] : changes_) assignments.push_back(parameter.assign(value));
  return assignments;
}

std::vector<Tensor> Step::evaluate(std::vector<Tensor> results, const Bindings& bindings,
                                   Location where) const {
  const size_t wanted = results.size();
  for (Tensor& update : updates(where)) results.push_back(std::move(update));
  results = anneal::evaluate(results, bindings, where);
  results.resize(wanted);
  return results;
}

Tensor latest(const Tensor& parameter) {
  for (const Step* step = t_step; step; step = step->outer_)
    if (const Tensor* value = step->find(parameter)) return *value;
  return parameter;
}

void record(const Tensor& parameter, const Tensor& value, Location where) {
  CallScope call("record", where);
  if (!t_step)
    fail(fmt::format("\"{}\" changes, but no step is being built", parameter.name()),
         "open a Step before this and evaluate its updates(); a module that is only used, not "
         "trained, wants eval()");
  parameter.assign(value, where);  // checks that it fits
  for (auto& [target, old] : t_step->changes_) {
    if (target.node() != parameter.node()) continue;
    old = value;
    return;
  }
  t_step->changes_.emplace_back(parameter, value);
}

}  // namespace anneal
