// Measures the compiler: interning, rewriting, differentiating, and memory over a long loop.
// Every timed run starts in a fresh graph, so that nothing is there before.
#include "cli/bench/compiler.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include <anneal/functional.h>
#include <anneal/grad.h>

#include "cli/inspect/programs.h"
#include "cli/json.h"
#include "cli/output.h"
#include "ir/build.h"
#include "ir/print.h"
#include "runtime/inspect/node_count.h"
#include "transform/simplify.h"

namespace anneal::cli {
namespace {

constexpr size_t kManyNodes = 1'000'000;
constexpr int kChainDepth = 100'000;
constexpr int kLoopIterations = 10'000, kLoopWarmUp = 1'000;

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The least of what `measure` answers in several runs: noise only ever adds.
template <typename Measure>
double least_of(int runs, Measure measure) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < runs; ++i) least = std::min(least, measure());
  return least;
}

// Bytes of memory this process holds; none where the system does not say.
std::optional<double> resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  if (!(statm >> total >> resident)) return {};
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// ---- interning

// Each node uses the one before, so that no two are equal.
double intern_nanoseconds() {
  constexpr std::array kOps{Op::Add, Op::Exp, Op::Mul, Op::Neg, Op::Max, Op::Sqrt};
  Graph graph;
  GraphScope scope(graph);
  const std::array<int64_t, 2> sizes{8, 16};
  std::array<NodeRef, 8> recent;
  recent.fill(make_buffer("x", 0, DType::F32, static_dims(sizes)));
  const size_t already = graph.node_count();
  const Stopwatch watch;
  for (size_t i = 0; i < kManyNodes; ++i) {
    const Op op = kOps[i % kOps.size()];
    const NodeRef last = recent[i % 8], other = recent[(i + 3) % 8];
    recent[(i + 1) % 8] = info(op).sources == 2 ? make(op, {last, other}) : make(op, {last});
  }
  const double seconds = watch.seconds();
  const size_t made = graph.node_count() - already;
  if (made != kManyNodes)
    throw InternalError(fmt::format("bench: {} of {} nodes are distinct", made, kManyNodes));
  return seconds * 1e9 / static_cast<double>(made);
}

// ---- rewriting

// Eight strands of elementwise, movement and reduce ops that meet again and again. In each round of
// some 25 nodes one undoes the other on purpose; the order of operands is right half of the time.
class MixedGraph {
 public:
  explicit MixedGraph(size_t nodes) {
    for (size_t i = 0; i < strands_.size(); ++i)
      strands_[i] = make_buffer(fmt::format("x{}", i), 0, DType::F32, sizes(kTall));
    while (current_graph().node_count() < nodes) round();
  }

  std::span<const NodeRef> roots() const { return strands_; }

 private:
  using Pair = std::array<int64_t, 2>;
  static constexpr Pair kTall{16, 8}, kAxesSwapped{1, 0};
  static constexpr std::array<int64_t, 1> kFlat{128}, kLastAxis{1};
  static constexpr std::array<int64_t, 4> kInner{1, 15, 0, 8}, kBack{1, 1, 0, 0};

  static std::vector<NodeRef> sizes(std::span<const int64_t> list) { return static_dims(list); }
  static NodeRef move(Op op, NodeRef x, std::span<const int64_t> to) {
    return make_tail(op, x, sizes(to));
  }
  static NodeRef swap(NodeRef x) { return make_axes(Op::Permute, x, kAxesSwapped); }

  // Something that a rule removes.
  static NodeRef detour(NodeRef x, size_t which) {
    switch (which % 4) {
      case 0: return make(Op::Mul, {x, make_const_like(x, 1)});
      case 1: return make(Op::Neg, {make(Op::Neg, {x})});
      case 2: return swap(swap(x));
      default: return move(Op::Reshape, move(Op::Reshape, x, kFlat), kTall);
    }
  }

  void round() {
    auto one = [](Op op) { return [op](NodeRef x, NodeRef) { return make(op, {x}); }; };
    auto two = [](Op op) { return [op](NodeRef x, NodeRef y) { return make(op, {x, y}); }; };
    step(one(Op::Exp));
    step(two(Op::Mul));
    step(one(Op::Sqrt));
    step(two(Op::Max));
    step([](NodeRef x, NodeRef) { return swap(make(Op::Tanh, {swap(x)})); });
    step(one(Op::Abs));
    step(two(Op::Div));
    step([](NodeRef x, NodeRef) {
      return move(Op::Expand, make_axes(Op::ReduceSum, x, kLastAxis), kTall);
    });
    step(one(Op::Log));
    step(two(Op::Add));
    step([](NodeRef x, NodeRef) {
      return move(Op::Reshape, make(Op::Sin, {move(Op::Reshape, x, kFlat)}), kTall);
    });
    step([](NodeRef x, NodeRef y) { return make(Op::Where, {make(Op::Lt, {x, y}), x, y}); });
    step(one(Op::Floor));
    step(two(Op::Min));
    step([](NodeRef x, NodeRef) { return move(Op::Pad, move(Op::Shrink, x, kInner), kBack); });
    step([this](NodeRef x, NodeRef) { return detour(x, ++rounds_); });
    step(one(Op::Cos));
  }

  template <typename Make>
  void step(Make make_next) {
    NodeRef& strand = strands_[steps_ % strands_.size()];
    strand = make_next(strand, strands_[(steps_ + 3) % strands_.size()]);
    ++steps_;
  }

  std::array<NodeRef, 8> strands_;
  size_t steps_ = 0, rounds_ = 0;
};

double rewrite_nanoseconds() {
  Graph graph;
  GraphScope scope(graph);
  const MixedGraph mixed(kManyNodes);
  const double nodes = static_cast<double>(topological_order(mixed.roots()).size());
  const Stopwatch watch;
  simplify_program(mixed.roots());
  return watch.seconds() * 1e9 / nodes;
}

// Of the nodes of that graph, the share at which a rule fired.
double rewrite_hit_percent() {
  Graph graph;
  GraphScope scope(graph);
  const MixedGraph mixed(kManyNodes / 10);
  RewriteLog log;
  simplify_program(mixed.roots(), &log);
  int64_t hits = 0;
  for (const RewriteLog::Hit& hit : log.hits()) hits += hit.count;
  return 100.0 * static_cast<double>(hits) /
         static_cast<double>(topological_order(mixed.roots()).size());
}

// ---- depth

// A chain that would overflow the stack of anything recursive.
bool deep_chain_works() {
  Graph graph;
  GraphScope scope(graph);
  const Tensor x = input("x", {4});
  Tensor y = x;
  for (int i = 0; i < kChainDepth; ++i) y = i % 2 == 0 ? sin(y) : y * 1.5;
  const Tensor loss = sum(y);
  const std::vector<NodeRef> roots{loss.node(), grad(loss, {x})[0].node()};
  if (topological_order(roots).size() < size_t{kChainDepth}) return false;
  const auto parsed = parse(print(roots));
  if (!std::holds_alternative<std::vector<NodeRef>>(parsed)) return false;
  if (std::get<std::vector<NodeRef>>(parsed) != roots) return false;
  return simplify_program(roots).size() == roots.size();
}

// ---- a large model

struct LargeModel {
  double milliseconds;
  size_t nodes;
};

LargeModel build_gpt() {
  Graph graph;
  GraphScope scope(graph);
  const Stopwatch watch;
  const models::Program program = models::gpt({});
  const double milliseconds = watch.seconds() * 1e3;
  return {milliseconds, count_nodes(step_roots(program))};
}

// ---- memory

void small_program(int seed) {
  std::vector<float> values(64);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((static_cast<size_t>(seed) * 31 + i) % 97) * 0.01F;
  const Tensor x = from_data(values, {8, 8}), weight = from_data(values, {8, 8}) * 0.5;
  const Tensor loss = mean(tanh(matmul(x, weight)));
  grad(loss, {weight})[0].realize();
}

// Megabytes gained by a loop after its warm-up.
std::optional<double> loop_growth() {
  std::optional<double> warm;
  for (int i = 0; i < kLoopIterations; ++i) {
    if (i == kLoopWarmUp) warm = resident_bytes();
    small_program(i);
  }
  const std::optional<double> end = resident_bytes();
  if (!warm || !end) return {};
  return (*end - *warm) / 1e6;
}

// ---- the table

struct Figure {
  std::string_view name;
  Json value;
  std::string text, goal;
  std::optional<bool> met;  // none: there is no goal, or the figure is unknown
};

Figure at_most(std::string_view name, double value, double limit, std::string_view unit) {
  return {name, value, fmt::format("{:.1f} {}", value, unit), fmt::format("≤ {} {}", limit, unit),
          value <= limit};
}

// What is being measured, where someone waits for it.
void announce(std::string_view what) {
  if (isatty(fileno(stderr)) != 0) fmt::print(stderr, "measuring {} ...\n", what);
}

std::vector<Figure> measure() {
  announce("memory");  // first: memory that other figures gave back would hide a growth
  const std::optional<double> growth = loop_growth();
  announce("interning");
  const double intern = least_of(3, intern_nanoseconds);
  announce("rewriting");
  const double rewrite = least_of(3, rewrite_nanoseconds), hits = rewrite_hit_percent();
  announce("a deep chain");
  const bool deep = deep_chain_works();
  announce("gradients");
  size_t nodes = 0;
  const double gradient = least_of(5, [&] {
    const LargeModel model = build_gpt();
    nodes = model.nodes;
    return model.milliseconds;
  });

  constexpr double kGrowthLimit = 20;
  return {
      at_most("intern_ns", intern, 100, "ns"),
      at_most("rewrite_ns_per_node", rewrite, 1000, "ns"),
      {"rewrite_hit_percent", hits, fmt::format("{:.1f} %", hits), "", {}},
      {"deep_chain_ok", deep, deep ? "true" : "false", "true", deep},
      at_most("grad_ms", gradient, 100, "ms"),
      {"grad_nodes", nodes, fmt::format("{}", nodes), "", {}},
      {"loop_rss_growth_mb", growth ? Json(*growth) : Json(),
       growth ? fmt::format("{:.1f} MB", *growth) : "unknown", fmt::format("< {} MB", kGrowthLimit),
       growth ? std::optional(*growth < kGrowthLimit) : std::nullopt},
  };
}

}  // namespace

bool bench_compiler(bool json) {
  const std::vector<Figure> figures = measure();
  Json object = Json::object();
  if (!json) write(fmt::format("{:<22} {:>12}   {}\n", "figure", "value", "goal"));
  for (const Figure& figure : figures) {
    object.set(figure.name, figure.value);
    if (json) continue;
    const std::string verdict = !figure.met   ? ""
                                : *figure.met ? paint(Colour::Teal, "met")
                                              : paint(Colour::Ember, "missed");
    write(fmt::format("{:<22} {:>12}   {:<10} {}", figure.name, figure.text, figure.goal, verdict));
    write("\n");
  }
  if (json) write(object.text() + "\n");
  return std::ranges::all_of(figures, [](const Figure& figure) {
    return figure.name != "deep_chain_ok" || figure.met.value_or(false);
  });
}

}  // namespace anneal::cli
