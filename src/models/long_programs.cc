#include "models/long_programs.h"

#include <fmt/format.h>

#include <anneal/functional.h>
#include <anneal/grad.h>

namespace anneal::models {
namespace {

constexpr int64_t kElements = 64;

Tensor vector() { return input("x", {kElements}); }

Tensor sines(const Tensor& x, int64_t steps) {
  Tensor y = x;
  for (int64_t i = 0; i < steps; ++i) y = sin(y);
  return y;
}

std::vector<Tensor> sine_chain(int64_t steps) { return {sines(vector(), steps)}; }

std::vector<Tensor> sine_gradient(int64_t steps) {
  const Tensor x = vector();
  return grad(sum(sines(x, steps)), {x});
}

std::vector<Tensor> scale_and_shift(int64_t steps) {
  Tensor y = vector();
  for (int64_t i = 0; i < steps; ++i) y = y * 1.0001 + 0.5;
  return {y};
}

// Different numbers in each step: no two kernels are the same.
std::vector<Tensor> different_numbers(int64_t steps) {
  Tensor y = vector();
  for (int64_t i = 0; i < steps; ++i)
    y = y * (1 + static_cast<double>(i) * 1e-6) + static_cast<double>(i);
  return {y};
}

std::vector<Tensor> concat_of_slices(int64_t steps) {
  constexpr int64_t kLength = 3, kStride = 7919;  // a prime: not in order
  const Tensor x = input("x", {steps * kLength});
  std::vector<Tensor> pieces;
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t begin = i * kStride % steps * kLength;
    pieces.push_back(slice(x, {{.begin = begin, .end = begin + kLength}}));
  }
  return {concat(pieces)};
}

std::vector<Tensor> sums(int64_t steps) {
  const Tensor x = vector();
  Tensor y = x;
  for (int64_t i = 0; i < steps; ++i) y = y + sum(x * static_cast<double>(i));
  return {y};
}

std::vector<Tensor> lstm(int64_t steps) {
  constexpr int64_t kBatch = 4, kWidth = 32;
  const Tensor sequence = input("sequence", {steps, kBatch, kWidth});
  const Tensor weight = input("weight", {2 * kWidth, 4 * kWidth});
  Tensor hidden = input("hidden", {kBatch, kWidth}), cell = input("cell", {kBatch, kWidth});
  for (int64_t i = 0; i < steps; ++i) {
    const Tensor now = slice(sequence, {{.begin = i, .end = i + 1}}).reshape({kBatch, kWidth});
    const std::vector<Tensor> gates = chunk(matmul(concat({now, hidden}, 1), weight), 4, 1);
    cell = sigmoid(gates[0]) * cell + sigmoid(gates[1]) * tanh(gates[2]);
    hidden = sigmoid(gates[3]) * tanh(cell);
  }
  return {hidden, cell};
}

std::vector<Tensor> row_times_matrix(int64_t steps) {
  const Tensor weight = input("weight", {kElements, kElements});
  Tensor y = input("y", {1, kElements});
  for (int64_t i = 0; i < steps; ++i) y = matmul(y, weight);
  return {y};
}

// As an optimizer of many small parameters makes them.
std::vector<Tensor> many_updates(int64_t steps) {
  std::vector<Tensor> parameters, updates;
  Tensor loss = sum(vector());
  for (int64_t i = 0; i < steps; ++i) {
    parameters.push_back(input(fmt::format("p{}", i), {8, 8}));
    loss = loss + sum(tanh(parameters.back()));
  }
  const std::vector<Tensor> gradients = grad(loss, parameters);
  for (size_t i = 0; i < parameters.size(); ++i)
    updates.push_back(parameters[i] - 0.1 * gradients[i]);
  return updates;
}

}  // namespace

const std::vector<LongProgram>& long_programs() {
  static const auto& programs = *new std::vector<LongProgram>{
      {"y = sin(y)", 4000, sine_chain},
      {"y = sin(y), its gradient", 4000, sine_gradient},
      {"y = y * c + d", 40000, scale_and_shift},
      {"y = y * ci + di", 4000, different_numbers},
      {"concat of slices", 8000, concat_of_slices},
      {"y = y + sum(x * i)", 4000, sums},
      {"LSTM", 160, lstm},
      {"y = y @ w", 1000, row_times_matrix},
      {"updates of small parameters", 1000, many_updates},
  };
  return programs;
}

}  // namespace anneal::models
