// AdamW against the same formulas in plain double arithmetic.
#include <cmath>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "models/program.h"
#include "optim/adamw.h"

using namespace anneal;

TEST_CASE("optim: adamw follows a float64 reference for 100 steps") {
  const optim::AdamWOptions o{.lr = 0.05, .weight_decay = 0.1};
  std::vector<double> w{0.5, -1.0, 2.0}, m(3), v(3);
  const std::vector<double> target{1.0, 2.0, -3.0};
  Tensor parameter_w = parameter("w", from_data(w, {3}));
  Tensor loss = sum(pow(parameter_w - from_data(target, {3}), 4));
  std::vector<Tensor> step = optim::adamw({parameter_w}, grad(loss, {parameter_w}), o);
  step.push_back(loss);
  for (int t = 1; t <= 100; ++t) {
    double reference_loss = 0;
    for (size_t i = 0; i < 3; ++i) {
      const double d = w[i] - target[i], g = 4 * d * d * d;
      reference_loss += d * d * d * d;
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
      const double m_hat = m[i] / (1 - std::pow(o.beta1, t)),
                   v_hat = v[i] / (1 - std::pow(o.beta2, t));
      w[i] -= o.lr * (m_hat / (std::sqrt(v_hat) + o.epsilon) + o.weight_decay * w[i]);
    }
    CHECK(evaluate(step).back().item() == doctest::Approx(reference_loss).epsilon(1e-5));
  }
  // The bias correction is f32: the counter is.
  std::vector<double> trained = parameter_w.to_vector<double>();
  for (size_t i = 0; i < 3; ++i) CHECK(trained[i] == doctest::Approx(w[i]).epsilon(1e-5));
}

TEST_CASE("optim: the updates of a program that is only looked at are places too") {
  models::Program program = models::mlp();
  CHECK(program.updates.size() == 1 + 3 * program.parameters.size());
  CHECK_THROWS_AS(evaluate({program.updates[0]}), UserError);
}
