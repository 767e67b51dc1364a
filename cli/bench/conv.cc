// Convolutions of two ResNets and their gradients against oneDNN.
#include <fmt/format.h>

#include <anneal/functional.h>
#include <anneal/grad.h>

#include "cli/bench/cases.h"

namespace anneal::cli {
namespace {

constexpr std::string_view kBench = "conv", kUnit = "GFLOP/s";
constexpr int64_t kImages = 32;

struct Layer {
  std::string_view model;
  int64_t channels, outputs, size, kernel, stride;

  int64_t padding() const { return kernel / 2; }
  int64_t steps() const { return (size + 2 * padding() - kernel) / stride + 1; }
  std::string name() const {
    return fmt::format("{} {}>{} {}x{} at {}{}", model, channels, outputs, kernel, kernel, size,
                       stride == 1 ? "" : fmt::format(" / {}", stride));
  }
  double flops() const {
    return 2 * static_cast<double>(kImages * steps() * steps()) *
           static_cast<double>(outputs * channels * kernel * kernel);
  }
};

// The distinct shapes of the CIFAR variants: 32x32 images, a 3x3 stem.
constexpr Layer kLayers[] = {
    {"resnet9", 3, 64, 32, 3, 1},     {"resnet9", 64, 128, 32, 3, 1},
    {"resnet9", 128, 128, 16, 3, 1},  {"resnet9", 128, 256, 16, 3, 1},
    {"resnet9", 256, 512, 8, 3, 1},   {"resnet9", 512, 512, 4, 3, 1},
    {"resnet18", 64, 64, 32, 3, 1},   {"resnet18", 64, 128, 32, 3, 2},
    {"resnet18", 64, 128, 32, 1, 2},  {"resnet18", 128, 256, 16, 3, 2},
    {"resnet18", 128, 256, 16, 1, 2}, {"resnet18", 256, 256, 8, 3, 1},
    {"resnet18", 256, 512, 8, 3, 2},  {"resnet18", 256, 512, 8, 1, 2},
};
constexpr std::string_view kDirections[] = {"forward", "input", "weights"};

Tensor build(const Layer& layer, std::string_view direction) {
  const Tensor image = filled({kImages, layer.channels, layer.size, layer.size}, 13);
  const Tensor weights = filled({layer.outputs, layer.channels, layer.kernel, layer.kernel}, 7);
  Tensor result =
      conv2d(image, weights, {}, {.stride = {layer.stride}, .padding = {layer.padding()}});
  if (direction == "forward") return result;
  const Tensor seed = filled({kImages, layer.outputs, layer.steps(), layer.steps()}, 5);
  return grad(result, {direction == "input" ? image : weights}, {.seed = seed})[0];
}

std::string peer_case(const Layer& layer, std::string_view direction) {
  return fmt::format("conv {} {} {} {} {} {} {} {} {}", direction, kImages, layer.channels,
                     layer.size, layer.size, layer.outputs, layer.kernel, layer.stride,
                     layer.padding());
}

void bench_layer(const BenchContext& context, const Layer& layer, std::string_view direction) {
  const std::string name = fmt::format("{} {}", layer.name(), direction);
  if (!context.begin(kBench, name)) return;
  Prepared ours(context.device, {build(layer, direction)});
  Timing timing = time_against(
      context, [&] { return ours.run(); }, PeerKind::Libraries, peer_case(layer, direction));
  BenchRow row = context.row(kBench, name, kUnit);
  row.note = "oneDNN works on layouts of its own; bringing tensors into them is left out";
  add_rates(context, row, timing, layer.flops() * 1e-9);
  if (timing.peer.name.empty()) return;

  // What it does when it may choose, where that is something else.
  const PeerTime any =
      context.peers.time(PeerKind::Libraries, peer_case(layer, fmt::format("{}-any", direction)),
                         context.options.seconds);
  constexpr double kClearly = 0.9;
  if (any.name.empty() || any.seconds > kClearly * timing.peer.seconds) return;
  timing.peer = any;
  row.name = fmt::format("{}, any", name);
  row.note = "any: oneDNN may use Winograd's, which multiplies less and rounds more";
  add_rates(context, row, timing, layer.flops() * 1e-9);
}

}  // namespace

void bench_conv(const BenchContext& context) {
  for (const Layer& layer : kLayers)
    for (std::string_view direction : kDirections) bench_layer(context, layer, direction);
}

}  // namespace anneal::cli
