// How many kernels programs become: one for what belongs together, and no division where a
// movement only renames places.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/anneal.h>

#include "body/axis_bounds.h"
#include "ir/index.h"
#include "schedule/schedule.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

std::vector<NodeRef> simplified(const std::vector<Tensor>& tensors) {
  std::vector<NodeRef> roots;
  for (const Tensor& tensor : tensors) roots.push_back(tensor.node());
  return simplify_program(roots);
}

std::span<const NodeRef> store_axes_of(const KernelBody& body) {
  return body.stores[0]->sources().subspan(4);
}

// Of an axis in a position.
int64_t factor_of(NodeRef position, NodeRef axis) {
  for (const LinearForm::Term& term : linear_form(position).terms)
    if (term.base == axis) return term.factor;
  return 0;
}

struct CountRow {
  std::string_view name;
  std::vector<Tensor> (*build)();
  size_t most;  // kernels
};

Tensor x() { return input("x", {64, 100}); }
Tensor label() { return input("label", {64}, DType::I32); }

struct Mlp {
  Tensor image = input("image", {32, 100}), target = input("label", {32}, DType::I32);
  std::vector<Tensor> parameters;

  Tensor linear(const Tensor& from, int64_t inputs, int64_t outputs) {
    const std::string name = fmt::format("layer{}", parameters.size());
    parameters.push_back(input(name + ".weight", {inputs, outputs}));
    parameters.push_back(input(name + ".bias", {outputs}));
    return matmul(from, parameters[parameters.size() - 2]) + parameters.back();
  }
  Tensor logits() {
    Tensor hidden = relu(linear(image, 100, 64));
    hidden = relu(linear(hidden, 64, 64));
    return linear(hidden, 64, 10);
  }
};

const std::vector<CountRow> kCounts{
    {"matmul, bias and gelu",
     [] { return std::vector{gelu(matmul(x(), input("w", {100, 80})) + input("b", {80}))}; }, 1},
    {"softmax", [] { return std::vector{softmax(x())}; }, 1},
    {"layer norm",
     [] { return std::vector{layer_norm(x(), 1, input("w", {100}), input("b", {100}))}; }, 1},
    {"rms norm", [] { return std::vector{rms_norm(x(), input("w", {100}))}; }, 1},
    {"cross entropy", [] { return std::vector{cross_entropy(x(), label())}; }, 1},
    {"cross entropy and its gradient",
     [] {
       const Tensor logits = x(), loss = cross_entropy(logits, label());
       return std::vector{loss, grad(loss, {logits})[0]};
     },
     2},
    {"convolution, bias and relu",
     [] {
       const ConvOptions same{.padding = {1}};
       return std::vector{relu(
           conv2d(input("x", {4, 8, 14, 14}), input("w", {16, 8, 3, 3}), input("b", {16}), same))};
     },
     1},
    {"perceptron", [] { return std::vector{Mlp().logits()}; }, 3},
    {"perceptron, loss and all gradients",
     [] {
       Mlp mlp;
       const Tensor loss = cross_entropy(mlp.logits(), mlp.target);
       std::vector<Tensor> results = grad(loss, mlp.parameters);
       results.push_back(loss);
       return results;
     },
     9},
    {"a chain of elementwise functions",
     [] { return std::vector{tanh(exp(x()) * 2 + sin(x())) - sqrt(abs(x()))}; }, 1},
    {"movement between elementwise functions",
     [] { return std::vector{exp(sin(x()).transpose().reshape({50, 128}).flatten() * 2)}; }, 1},
};

std::string listing(const Schedule& schedule) {
  std::string text;
  for (size_t k = 0; k < schedule.kernels.size(); ++k)
    for (const KernelPhase& phase : schedule.kernels[k].phases)
      for (const KernelPart& part : phase)
        text += fmt::format("kernel {}:\n{}\n", k, to_text(part.body));
  for (const UnfusedEdge& edge : schedule.unfused)
    text += fmt::format("{} -> {}: {}\n", edge.producer, edge.consumer, name(edge.reason));
  return text;
}

}  // namespace

TEST_CASE("kernel counts: what belongs together is one kernel") {
  for (const CountRow& row : kCounts) {
    Graph graph;
    GraphScope scope(graph);
    const Schedule schedule = schedule_program(simplified(row.build()));
    CHECK_MESSAGE(schedule.kernels.size() <= row.most, row.name
                                                           << " has " << schedule.kernels.size()
                                                           << " kernels, not " << row.most << "\n"
                                                           << listing(schedule));
    CHECK(!schedule.kernels.empty());
  }
}

TEST_CASE("kernel counts: a narrow value is kept where a wide one is computed again") {
  // The value is needed by sums over rows and by sums over columns: two kernels.
  auto reason_of = [](DType dtype) {
    const Tensor rows = input("x", {2048, 2048});
    const Tensor value = cast(cast(exp(rows), dtype), DType::F32);
    const Schedule schedule = schedule_program(simplified({sum(value, {0}), sum(value * 3, {1})}));
    return std::ranges::count(schedule.unfused, UnfusedReason::Dtype, &UnfusedEdge::reason);
  };
  CHECK(reason_of(DType::F8E4M3) > 0);
  CHECK(reason_of(DType::F32) == 0);
}

TEST_CASE("kernel counts: targets to ignore cost no kernel") {
  auto count = [](std::optional<int64_t> ignored) {
    Mlp mlp;
    const Tensor loss = cross_entropy(mlp.logits(), mlp.target, Reduction::Mean, 0, ignored);
    std::vector<Tensor> results = grad(loss, mlp.parameters);
    results.push_back(loss);
    return schedule_program(simplified(results)).kernels.size();
  };
  CHECK(count(-100) == count({}));
  CHECK(count(3) == count({}));
}

TEST_CASE("kernel counts: the reason of a stored value is what decided it") {
  auto reasons_of = [](const std::vector<Tensor>& results, const ScheduleOptions& options = {}) {
    std::set<UnfusedReason> reasons;
    const Schedule schedule = schedule_program(simplified(results), options);
    for (const UnfusedEdge& edge : schedule.unfused) {
      reasons.insert(edge.reason);
      const bool by_cost =
          edge.reason == UnfusedReason::Reuse || edge.reason == UnfusedReason::Dtype;
      CHECK(edge.cost.decided() == by_cost);
      CHECK(edge.cost.again >= edge.cost.stored);
      CHECK(edge.cost.stored >= 0);
    }
    return reasons;
  };
  using Reasons = std::set<UnfusedReason>;
  const Tensor square = input("x", {512, 512}), other = input("y", {512, 512});
  // A product in a product: the inner one would be made again for every row.
  CHECK(reasons_of({matmul(matmul(square, other), other)}) == Reasons{UnfusedReason::Reduce});
  // A product that others need over rows and over columns.
  const Tensor product = tanh(matmul(square, other));
  CHECK(reasons_of({sum(product, 0), sum(product * 2, 1)}).contains(UnfusedReason::Reduce));
  // Much arithmetic that both need: to do it twice costs more than to store it.
  Tensor value = square;
  for (int i = 0; i < 8; ++i) value = sin(value) * other + tanh(value);
  CHECK(reasons_of({sum(value, 0), sum(value * 3, 1)}) == Reasons{UnfusedReason::Reuse});
  // The passes that would compute it where it is used are left out.
  CHECK(reasons_of({sum(exp(square) * 2, 1)},
                   {.capabilities = {}, .disabled = {"inline", "fuse-rows"}})
            .contains(UnfusedReason::Disabled));
}

TEST_CASE("kernel counts: the score of a class is read, not looked for") {
  auto comparisons = [](std::vector<std::string> disabled) {
    ScheduleOptions options;
    options.disabled = std::move(disabled);
    const Schedule schedule = schedule_program(
        simplified({cross_entropy(x(), label(), Reduction::Mean, 0, {})}), options);
    int64_t count = 0;
    for (const Kernel& kernel : schedule.kernels)
      for (const KernelPhase& phase : kernel.phases)
        for (const KernelPart& part : phase)
          count += std::ranges::count(topological_order(part.body.stores), Op::Eq, &Node::op);
    return count;
  };
  CHECK(comparisons({}) == 0);
  CHECK(comparisons({"pick-terms"}) == 1);
}

TEST_CASE("kernel counts: many threads do not wait for additions in turn") {
  auto added_in_turn = [](int64_t threads, int64_t rows) {
    const Tensor index = expand(reshape(input("i", {1000}, DType::I32), {1000, 1}), {1000, 64});
    const Tensor sums = scatter_add(zeros({rows, 64}), 0, index, input("v", {1000, 64}));
    ScheduleOptions options;
    options.capabilities.parallel_threads = threads;
    const Schedule schedule = schedule_program(simplified({sums}), options);
    bool any = false;
    for (const Kernel& kernel : schedule.kernels)
      for (const KernelPhase& phase : kernel.phases)
        for (const KernelPart& part : phase)
          for (NodeRef store : part.body.stores) any = any || store->op == Op::StoreAdd;
    return any;
  };
  CHECK(added_in_turn(0, 65));
  CHECK_FALSE(added_in_turn(1 << 16, 65));
  CHECK(added_in_turn(1 << 16, 50000));  // looking for them would cost more
}

namespace {

Schedule scheduled(const std::vector<Tensor>& tensors, const Capabilities& capabilities) {
  return schedule_program(simplified(tensors), ScheduleOptions{capabilities, {}});
}

Capabilities many_threads() {
  Capabilities gpu;
  gpu.workgroup_threads = 128;
  gpu.most_workgroup_threads = 256;
  gpu.parallel_threads = 65536;
  return gpu;
}

std::vector<int64_t> axis_sizes(const KernelPart& part) {
  std::vector<int64_t> sizes;
  for (const Axis& axis : part.body.axes) sizes.push_back(static_value(axis.size));
  return sizes;
}

const KernelPart& last_part(const Schedule& schedule) {
  return schedule.kernels.back().phases.back().back();
}

}  // namespace

TEST_CASE("kernel counts: axes that lie one behind the other are one for threads") {
  const Tensor image = input("image", {8, 16, 24});
  using Extents = std::vector<int64_t>;
  const Schedule all = scheduled({exp(image)}, many_threads());
  CHECK(axis_sizes(last_part(all)) == Extents{8 * 16 * 24});
  const Schedule rows = scheduled({max(image, {0, 1})}, many_threads());
  CHECK(axis_sizes(last_part(rows)) == Extents{24, 8 * 16});
  const Schedule turned = scheduled({exp(transpose(image, 0, 1))}, many_threads());
  CHECK(axis_sizes(last_part(turned)) == Extents{16, 8, 24});
  const Schedule broadcast = scheduled({image + input("row", {24})}, many_threads());
  CHECK(axis_sizes(last_part(broadcast)) == Extents{8 * 16, 24});
  // Padding asks for each axis by itself; a CPU's vectors have no need.
  const Schedule padded = scheduled({pad(image, {{0, 0}, {0, 0}, {1, 1}})}, many_threads());
  CHECK(axis_sizes(last_part(padded)) == Extents{8 * 16, 26});
  CHECK(axis_sizes(last_part(scheduled({exp(image)}, {}))) == Extents{8, 16, 24});
}

TEST_CASE("kernel counts: a product that is turned is stored the way it is wanted") {
  const Tensor a = input("a", {64, 100}), b = input("b", {100, 48}), c = input("c", {48, 64});
  const Schedule schedule = scheduled({concat({transpose(matmul(a, b)), c}, 0)}, {});
  REQUIRE(schedule.kernels.size() == 2);
  const KernelBody& body = last_part(schedule).body;
  GraphScope scope(*schedule.graph);
  const NodeRef inner = store_axes_of(body).back();
  for (NodeRef node : topological_order(body.stores))
    if (node->op == Op::Load) CHECK(factor_of(node->source(1), inner) == 1);
}

// The activation is stored for the product after it, and its slope instead of what both are made
// of: its gradient then needs no exponentials.
TEST_CASE("kernel counts: slopes of activations are made where these are") {
  const Tensor x = input("x", {512, 256}), up = input("up", {256, 1024}),
               bias = input("bias", {1024}), down = input("down", {1024, 256});
  Capabilities gpu = many_threads();
  gpu.flops_per_byte = 4;
  auto kernels_with_exp = [&](Tensor (*activation)(const Operand&),
                              const std::vector<std::string>& disabled) {
    const Tensor y = matmul(activation(matmul(x, up) + bias), down);
    std::vector<Tensor> results = grad(sum(y * y), {x, up, bias, down});
    const Schedule schedule = schedule_program(simplified(results), ScheduleOptions{gpu, disabled});
    int count = 0, stores = 0;
    for (const Kernel& kernel : schedule.kernels)
      for (const KernelPhase& phase : kernel.phases)
        for (const KernelPart& part : phase) {
          const std::vector<NodeRef> nodes = topological_order(part.body.stores);
          auto is_costly = [](NodeRef node) { return node->op == Op::Erf || node->op == Op::Tanh; };
          if (std::ranges::none_of(nodes, is_costly)) continue;
          ++count;
          stores += static_cast<int>(part.body.stores.size());
        }
    return std::pair(count, stores);
  };
  for (auto* activation : {&gelu, &gelu_tanh}) {
    CHECK(kernels_with_exp(activation, {}) == std::pair(1, 2));
    CHECK(kernels_with_exp(activation, {"activation-gradient"}) == std::pair(2, 3));
  }
  // A rectifier's costs nothing.
  auto values_stored = [&](const std::vector<std::string>& disabled) {
    const Tensor y = matmul(relu(matmul(x, up) + bias), down);
    return schedule_program(simplified(grad(sum(y * y), {x, up})), ScheduleOptions{gpu, disabled})
        .buffers.size();
  };
  CHECK(values_stored({}) == values_stored({"activation-gradient"}));
}

TEST_CASE("kernel counts: products of masked values know the mask") {
  const int64_t tokens = 512;
  const Tensor q = input("q", {256, tokens, 32}), k = input("k", {256, tokens, 32}),
               v = input("v", {256, tokens, 32});
  auto masked_products = [&](bool causal) {
    const Tensor row = reshape(arange(tokens, DType::I32), {tokens, 1});
    const Tensor scores = matmul(q, transpose(k, 1, 2));
    const Tensor seen =
        causal ? where(arange(tokens, DType::I32) <= row, scores, -INFINITY) : scores;
    const Tensor result = matmul(softmax(seen, 2), v);
    std::vector<Tensor> all = grad(sum(result * input("weights", {256, tokens, 32})), {q, k, v});
    all.push_back(result);
    Capabilities gpu = many_threads();
    gpu.flops_per_byte = 4;
    const Schedule schedule = scheduled(all, gpu);
    int count = 0;
    for (const Kernel& kernel : schedule.kernels)
      for (const KernelPhase& phase : kernel.phases)
        for (const KernelPart& part : phase) {
          const std::vector<NodeRef> nodes = topological_order(part.body.stores);
          const bool product = std::ranges::any_of(nodes, [](NodeRef node) {
            return node->op == Op::SumOver && node->source(0)->op == Op::Mul;
          });
          const bool masked = std::ranges::any_of(
              nodes, [](NodeRef node) { return !bounds_in(node).empty() && node->op == Op::Le; });
          count += product && masked ? 1 : 0;
        }
    return count;
  };
  // The scores, what they are summed with, and twice that in the gradients.
  CHECK(masked_products(true) >= 6);
  CHECK(masked_products(false) == 0);
}

TEST_CASE("kernel counts: a total does not keep the work of many for itself") {
  // A norm, and a tensor that it scales.
  auto kernels = [](int64_t elements) {
    const Tensor x = input("x", {elements});
    return schedule_program(simplified({x / sqrt(sum(x * x))})).kernels.size();
  };
  CHECK(kernels(1000) == 1);
  CHECK(kernels(100'000) == 2);
}

TEST_CASE("kernel counts: what a sum and a result have in common is written alike") {
  // Lowering then computes it once: the exponentials of a softmax.
  for (int64_t length : {3, 60, 100, 128, 256, 384, 500, 512, 1000, 1024, 2048, 4096}) {
    const Schedule schedule = scheduled({softmax(input("x", {64, length}), 1)}, many_threads());
    std::vector<Op> first_operands;
    for (const Kernel& kernel : schedule.kernels)
      for (const KernelPhase& phase : kernel.phases)
        for (const KernelPart& part : phase)
          for (NodeRef node : topological_order(part.body.stores))
            if (node->op == Op::Exp) first_operands.push_back(node->source(0)->source(0)->op);
    REQUIRE(first_operands.size() == 2);
    CHECK(first_operands[0] == first_operands[1]);
  }
}

TEST_CASE("kernel counts: groups of threads do not make an operand again and again") {
  const Tensor x = input("x", {4096, 256}), w = input("w", {256, 1024});
  const Tensor normed = layer_norm(x, 1, input("weight", {256}), input("bias", {256}));
  auto keeps_operand = [](const Tensor& product, const Capabilities& capabilities) {
    const Schedule schedule = scheduled({product}, capabilities);
    return std::ranges::any_of(schedule.buffers, [](const ScheduleBuffer& buffer) {
      return buffer.is_temporary() && static_value(buffer.elements) == 4096 * 256;
    });
  };
  CHECK(keeps_operand(matmul(normed, w), many_threads()));
  CHECK_FALSE(keeps_operand(matmul(normed, w), {}));
  // One value of memory, little changed, is no work; nor is it where one group has all columns.
  CHECK_FALSE(keeps_operand(matmul(relu(x), w), many_threads()));
  CHECK_FALSE(keeps_operand(matmul(normed, input("narrow", {256, 32})), many_threads()));
}

TEST_CASE("kernel counts: layers that do the same share their kernels") {
  auto different_kernels = [](int layers) {
    std::vector<Tensor> weights;
    Tensor value = input("x", {64, 48});
    for (int layer = 0; layer < layers; ++layer) {
      auto weight = [&](std::string_view role, std::vector<Dim> shape) {
        weights.push_back(input(fmt::format("{}.{}", role, layer), shape));
        return weights.back();
      };
      const Tensor scaled = value * weight("scale", {48}) + weight("shift", {48});
      const Tensor hidden = gelu(matmul(scaled, weight("up", {48, 96})) + weight("bias", {96}));
      value = value + matmul(hidden, weight("down", {96, 48}));
    }
    const Schedule schedule = scheduled(grad(sum(value * value), weights), many_threads());
    std::set<std::string> bodies;
    for (const Kernel& kernel : schedule.kernels)
      for (const KernelPhase& phase : kernel.phases)
        for (const KernelPart& part : phase) bodies.insert(to_text(part.body));
    return bodies.size();
  };
  // The first layer and the last one have neighbours of their own.
  CHECK(different_kernels(9) == different_kernels(4));
}

TEST_CASE("kernel counts: a device that binds few buffers is the reason for more kernels") {
  const Tensor rows = x(), weight = input("w", {100}), bias = input("b", {100});
  const Tensor normal = layer_norm(rows, 1, weight, bias);
  const std::vector<NodeRef> roots =
      simplified({normal, grad(sum(normal * normal * input("g", {64, 100})), {rows})[0]});
  ScheduleOptions few;
  few.capabilities.max_buffers = 4;
  const Schedule many = schedule_program(roots), split = schedule_program(roots, few);
  CHECK(split.kernels.size() > many.kernels.size());
  CHECK(std::ranges::count(split.unfused, UnfusedReason::Limit, &UnfusedEdge::reason) > 0);
  CHECK(std::ranges::count(many.unfused, UnfusedReason::Limit, &UnfusedEdge::reason) == 0);
  for (const UnfusedEdge& edge : split.unfused) {
    if (edge.reason != UnfusedReason::Limit) continue;
    CHECK(edge.limit.allowed == 4);
    CHECK(edge.limit.needed > 4);
  }
}

TEST_CASE("kernel counts: every value stored for a limit says so, however many there are") {
  Tensor total = input("x0", {64});
  for (int i = 1; i < 400; ++i) total = sin(total) + input(fmt::format("x{}", i), {64});
  ScheduleOptions few;
  few.capabilities.max_buffers = 8;
  const Schedule split = schedule_program(simplified({total}), few);
  // Seven inputs, then what there is and six more.
  CHECK(split.kernels.size() == 67);
  REQUIRE(split.unfused.size() + 1 >= split.kernels.size());
  for (const UnfusedEdge& edge : split.unfused) {
    CHECK(edge.reason == UnfusedReason::Limit);
    CHECK(edge.limit.allowed == 8);
    CHECK(edge.limit.needed > 8);
  }
}
