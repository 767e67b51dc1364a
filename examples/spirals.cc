// Learns to tell two spirals apart: a model, a training step that is compiled once, new points in
// each step, and how often the model is right in the end.
#include <cstdio>
#include <numbers>

#include <anneal/anneal.h>
using namespace anneal;

struct Net : nn::Module {
  nn::Linear first{this, "first", 2, 64}, second{this, "second", 64, 64}, last{this, "last", 64, 2};

  Tensor operator()(const Tensor& x) const { return last(tanh(second(tanh(first(x))))); }
};

// Which arm each point is on, and the points: the arms wind around each other, two turns each.
std::pair<Tensor, Tensor> spirals(int64_t count) {
  const Tensor arm = randint({count}, 0, 2), along = rand({count});
  const Tensor angle = (4 * along + arm) * std::numbers::pi;
  return {arm, stack({along * cos(angle), along * sin(angle)}, 1)};
}

int main() {
  seed(1);
  Net net;
  optim::AdamW adamw(net, {.lr = optim::cosine(0.01, 0.0, 2000)});
  auto train = compile([&] {
    const auto [arm, points] = spirals(256);  // drawn anew each time the step runs
    const Tensor loss = cross_entropy(net(points), arm);
    adamw.update(loss);
    return loss;
  });
  for (int i = 0; i <= 2000; ++i) {
    const Tensor loss = train();
    if (i % 400 == 0) std::printf("step %4d  loss %.4f\n", i, loss.item());
  }
  const auto [arm, points] = spirals(1000);
  const Tensor right = mean(cast(argmax(net(points)) == arm, DType::F32));
  std::printf("%.1f %% of new points are right\n", 100 * right.item());
  return right.item() > 0.95 ? 0 : 1;
}
