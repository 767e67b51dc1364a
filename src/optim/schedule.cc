// Learning rates as functions of the step, in the graph.
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include <anneal/optim.h>

#include "tensor/lift.h"
#include "tensor/number_checks.h"

namespace anneal::optim {
namespace {

void check_steps(const char* what, int64_t steps) {
  if (steps < 1) fail(fmt::format("{}: {} steps", what, steps), "give 1 or more");
}

void check_rates(const char* schedule, double first, double last) {
  for (double rate : {first, last})
    check_not_negative(fmt::format("{}: the learning rate", schedule), rate);
}

// From 0 to 1 in `steps` steps.
Tensor progress(const Tensor& step, int64_t steps) {
  return minimum(step / static_cast<double>(steps), 1);
}

}  // namespace

Schedule::Schedule(double rate, Location where)
    : function_([rate](const Tensor& step) { return literal(step.dtype(), rate); }) {
  CallScope call("optimizer", where);
  check_not_negative("the learning rate", rate);
}

Schedule linear(double first, double last, int64_t steps) {
  check_steps("linear", steps);
  check_rates("linear", first, last);
  return Schedule(
      [=](const Tensor& step) { return first + progress(step, steps) * (last - first); });
}

Schedule cosine(double first, double last, int64_t steps) {
  check_steps("cosine", steps);
  check_rates("cosine", first, last);
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
  check_rates("staircase", first, first * factor);
  return Schedule([=](const Tensor& step) {
    return first * pow(literal(step.dtype(), factor), floor(step / static_cast<double>(every)));
  });
}

Schedule multi_step(double first, double factor, std::vector<int64_t> milestones) {
  check_rates("multi_step", first, first * factor);
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
  for (double rate : rates) check_rates("table", rate, rate);
  Tensor kept = from_data(rates, {steps});
  return Schedule([kept, steps](const Tensor& step) {
    Tensor row = cast(minimum(step, static_cast<double>(steps - 1)), DType::I32);
    return index_select(cast(kept, step.dtype()), row);
  });
}

}  // namespace anneal::optim
