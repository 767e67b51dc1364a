// Learning rates as functions of the step, in the graph.
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include <anneal/optim.h>

#include "tensor/lift.h"

namespace anneal::optim {
namespace {

void check_steps(const char* what, int64_t steps) {
  if (steps < 1) fail(fmt::format("{}: {} steps", what, steps), "give 1 or more");
}

// From 0 to 1 in `steps` steps.
Tensor progress(const Tensor& step, int64_t steps) {
  return minimum(step / static_cast<double>(steps), 1);
}

}  // namespace

Schedule::Schedule(double rate)
    : function_([rate](const Tensor& step) { return literal(step.dtype(), rate); }) {}

Schedule linear(double first, double last, int64_t steps) {
  check_steps("linear", steps);
  return Schedule(
      [=](const Tensor& step) { return first + progress(step, steps) * (last - first); });
}

Schedule cosine(double first, double last, int64_t steps) {
  check_steps("cosine", steps);
  return Schedule([=](const Tensor& step) {
    return last + (cos(progress(step, steps) * std::numbers::pi) + 1) * ((first - last) / 2);
  });
}

Schedule warm_up(int64_t steps, Schedule then) {
  check_steps("warm_up", steps);
  return Schedule([steps, then = std::move(then)](const Tensor& step) {
    Tensor rate = then(maximum(step - steps, 0));  // its first value while this rises
    return rate * progress(step + 1, steps);
  });
}

Schedule staircase(double first, double factor, int64_t every) {
  check_steps("staircase", every);
  return Schedule([=](const Tensor& step) {
    return first * pow(literal(step.dtype(), factor), floor(step / static_cast<double>(every)));
  });
}

Schedule multi_step(double first, double factor, std::vector<int64_t> milestones) {
  return Schedule([=, milestones = std::move(milestones)](const Tensor& step) {
    Tensor rate = literal(step.dtype(), first);
    for (int64_t milestone : milestones) rate = rate * where(step >= milestone, factor, 1.0);
    return rate;
  });
}

Schedule table(const std::function<double(int64_t step)>& function, int64_t steps) {
  check_steps("table", steps);
  std::vector<double> rates;
  for (int64_t step = 0; step < steps; ++step) rates.push_back(function(step));
  Tensor kept = from_data(rates, {steps});
  return Schedule([kept, steps](const Tensor& step) {
    Tensor row = cast(minimum(step, static_cast<double>(steps - 1)), DType::I32);
    return index_select(cast(kept, step.dtype()), row);
  });
}

}  // namespace anneal::optim
