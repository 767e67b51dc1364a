// Training beside PyTorch: the same models start from the same parameters, see the same batches and
// must have the same losses. Parameters, batches and losses travel as safetensors.
#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/anneal.h>

#include "bench/training_models.h"
#include "torch_peer.h"

using namespace anneal;

namespace {

constexpr int kSteps = 100;
constexpr int64_t kBatches = 4;  // used in turns, so that there is something to learn
constexpr double kTolerance = 1e-3;

// PyTorch's losses; none where no Python here has it.
std::optional<std::vector<float>> peer_losses(std::string_view model, int64_t block,
                                              const State& start) {
  const PeerFolder folder;
  const std::string in = folder.path / "start.safetensors", out = folder.path / "out.safetensors";
  io::save_safetensors(in, start);
  if (!run_torch("bench/peers/torch_parity.py",
                 fmt::format("{} {} {} '{}' '{}'", model, block, kSteps, in, out)))
    return {};
  return io::load_safetensors(out).at(0).second.to_vector();
}

// `xs` and `ys` have the batches along their first axis.
template <typename Model>
void check_losses(std::string_view name, int64_t block, const Model& model, Tensor xs, Tensor ys) {
  CAPTURE(name);
  xs = xs.realize();
  ys = ys.realize();
  State start = model.state();
  start.emplace_back("batches.x", xs);
  start.emplace_back("batches.y", ys);
  const std::optional<std::vector<float>> expected = peer_losses(name, block, start);
  if (!expected) {
    MESSAGE("skipped: no python3 here has PyTorch");
    return;
  }
  REQUIRE(expected->size() == kSteps);

  optim::AdamW adamw(model);
  auto step = compile([&](const Tensor& x, const Tensor& y) {
    Tensor loss = model.loss(x, y);
    adamw.update(loss);
    return loss;
  });
  std::vector<std::pair<Tensor, Tensor>> batches;
  for (int64_t i = 0; i < kBatches; ++i)
    batches.emplace_back(squeeze(slice(xs, {{i, i + 1}}), {0}).realize(),
                         squeeze(slice(ys, {{i, i + 1}}), {0}).realize());
  double worst = 0;
  for (size_t i = 0; i < kSteps; ++i) {
    const auto& [x, y] = batches[i % batches.size()];
    worst = std::fmax(worst, std::fabs(step(x, y).item() - (*expected)[i]));
  }
  MESSAGE(fmt::format("{}: losses fall from {:.3f} to {:.3f} and differ by at most {:.1e}", name,
                      expected->front(), expected->back(), worst));
  CHECK(worst < kTolerance);
  CHECK(expected->back() < 0.9 * expected->front());
}

}  // namespace

TEST_CASE("torch parity: losses of a perceptron") {
  seed(1);
  const bench::Mlp model;
  // Around zero: where pixels are all positive, a relu that rounding switches moves all weights of
  // its unit the same way, by the learning rate however small the gradient is, and that switches
  // others. Of 13 seeds PyTorch in f32 parts from PyTorch in f64 by more than the tolerance in 3,
  // by up to 2e-2, and with its units in another order in 2.
  const Tensor x = randn({kBatches, 64, 784}).realize(), teacher = randn({784, 10});
  check_losses("mlp", 0, model, x, argmax(matmul(x, teacher)));
}

TEST_CASE("torch parity: losses of a convolutional network") {
  seed(2);
  const bench::ConvNet model;
  const Tensor x = rand({kBatches, 8, 1, 28, 28}).realize(), y = randint({kBatches, 8}, 0, 10);
  check_losses("conv", 0, model, x, y);
}

TEST_CASE("torch parity: losses of a GPT over characters") {
  seed(3);
  constexpr int64_t kBlock = 32, kTexts = 4, kVocabulary = bench::CharGpt::kVocabulary;
  const bench::CharGpt model({.block = kBlock});
  // What follows a token depends on it and the one before.
  const Tensor x = randint({kBatches, kTexts, kBlock}, 0, kVocabulary).realize();
  const Tensor before =
      concat({slice(x, {{}, {}, {0, 1}}), slice(x, {{}, {}, {0, kBlock - 1}})}, 2);
  check_losses("gpt", kBlock, model, x, (x + before) % kVocabulary);
}
