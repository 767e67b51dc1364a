// How long it takes from a graph to code that runs: scheduling a large model, LLVM for a kernel,
// and starting again with what an earlier process compiled.
#include <chrono>
#include <filesystem>
#include <limits>

#include <fmt/format.h>
#include <unistd.h>

#include <anneal/functional.h>

#include "cli/bench/cases.h"
#include "cli/inspect/programs.h"
#include "kernel/lower.h"
#include "models/long_programs.h"
#include "runtime/cpu/kernel_cache.h"
#include "runtime/inspect/kernel_listing.h"
#include "runtime/inspect/node_count.h"
#include "runtime/program/distinct_bodies.h"
#include "transform/simplify.h"

namespace anneal::cli {
namespace {

constexpr std::string_view kBench = "compile";
constexpr int kRuns = 3, kManyKernels = 100;

template <typename Work>
double milliseconds(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

void add(const BenchContext& context, std::string_view name, double value, std::string note) {
  BenchRow row = context.row(kBench, name, "ms");
  row.more_is_better = false;
  row.ours = value;
  row.note = std::move(note);
  context.report.add(std::move(row));
}

// From the graph of a training step, gradients taken, to kernels in order.
void bench_scheduling(const BenchContext& context, std::string_view name, int64_t layers) {
  if (!context.begin(kBench, name)) return;
  Graph graph;
  GraphScope scope(graph);
  const models::Program program = models::gpt({.layers = layers});
  std::vector<NodeRef> roots = nodes_of(program.updates);
  roots.insert(roots.begin(), program.loss.node());
  double least = std::numeric_limits<double>::infinity();
  size_t kernels = 0;
  for (int i = 0; i < kRuns; ++i)
    least = std::min(least, milliseconds([&] {
                       const Schedule schedule = schedule_program(
                           simplify_program(roots), {context.device.capabilities(), {}});
                       kernels = schedule.kernels.size();
                     }));
  add(context, name, least,
      fmt::format("{} layers: {} nodes, {} kernels", layers, count_nodes(roots), kernels));
}

// Programs of small steps, each different one once.
std::vector<Program> model_programs(const Capabilities& capabilities) {
  std::vector<Program> programs;
  for (const auto build : {models::mlp, models::conv, models::attention}) {
    KernelListing listing = list_kernels(build(), false, capabilities, "this machine");
    for (ListedKernel& kernel : listing.kernels)
      for (ListedPart& part : kernel.parts) {
        part.program.name = fmt::format("kernel_{}", programs.size());
        programs.push_back(std::move(part.program));
      }
  }
  return programs;
}

// As many different elementwise kernels: none is found in place of another.
std::vector<Program> many_programs(const Capabilities& capabilities) {
  std::vector<Program> programs;
  for (int i = 0; i < kManyKernels; ++i) {
    const Tensor x = input("x", {1024, 512}), y = input("y", {1024, 512});
    const Tensor result = tanh(x * y + (1.0 + i)) * exp(x - y);
    const NodeRef root = result.node();
    const Schedule schedule = schedule_program(simplify_program({&root, 1}), {capabilities, {}});
    GraphScope scope(*schedule.graph);
    for (const Kernel& kernel : schedule.kernels)
      for (const KernelPhase& phase : kernel.phases)
        for (const KernelPart& part : phase) {
          programs.push_back(lower(part.body, {capabilities, {}}).program);
          programs.back().name = fmt::format("kernel_{}", programs.size());
        }
  }
  return programs;
}

std::vector<const Program*> pointers(const std::vector<Program>& programs) {
  std::vector<const Program*> result;
  for (const Program& program : programs) result.push_back(&program);
  return result;
}

void bench_llvm(const BenchContext& context) {
  constexpr std::string_view kName = "LLVM, a kernel, cold";
  if (!context.begin(kBench, kName)) return;
  const std::vector<Program> programs = model_programs(context.device.capabilities());
  KernelCacheOptions options;
  options.threads = 1;
  KernelCache cache(options);
  const double total = milliseconds([&] { cache.compile_all(pointers(programs)); });
  const int64_t compiled = cache.statistics().compiled;
  add(context, kName, total / static_cast<double>(compiled),
      fmt::format("LLVM: the {} different kernels of the built-in programs, on one thread",
                  compiled));
}

// A folder that is gone afterwards.
class ScratchFolder {
 public:
  ScratchFolder()
      : path_(std::filesystem::temp_directory_path() / fmt::format("anneal-bench-{}", getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// All of it, from the graph to machine code, with nothing on disk.
void bench_long_program(const BenchContext& context, const models::LongProgram& program) {
  const std::string name = fmt::format("{} times {}", program.steps, program.name);
  if (!context.begin(kBench, name)) return;
  Graph graph;
  GraphScope scope(graph);
  const std::vector<NodeRef> roots = nodes_of(program.build(program.steps));
  const Capabilities& capabilities = context.device.capabilities();
  size_t kernels = 0, different = 0;
  const double total = milliseconds([&] {
    const Schedule schedule = schedule_program(simplify_program(roots), {capabilities, {}});
    const ShiftedBodies distinct = shifted_bodies(schedule);
    GraphScope of_schedule(*schedule.graph);
    std::vector<Program> programs;
    for (const KernelBody* body : distinct.bodies)
      programs.push_back(lower(*body, {capabilities, {}}).program);
    KernelCache(KernelCacheOptions{}).compile_all(pointers(programs));
    kernels = distinct.of_part.size();
    different = programs.size();
  });
  const size_t nodes = count_nodes(roots);
  add(context, name, total,
      fmt::format("{}: {:.3f} ms a node; {} nodes, {} kernels, {} of them different", name,
                  total / static_cast<double>(nodes), nodes, kernels, different));
}

void bench_warm_start(const BenchContext& context) {
  const std::string name = fmt::format("load {} kernels, warm", kManyKernels);
  if (!context.begin(kBench, name)) return;
  const std::vector<Program> programs = many_programs(context.device.capabilities());
  const ScratchFolder folder;
  KernelCacheOptions options;
  options.directory = folder.path();
  const double cold = milliseconds([&] { KernelCache(options).compile_all(pointers(programs)); });
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRuns; ++i) {
    KernelCache cache(options);
    least = std::min(least, milliseconds([&] { cache.compile_all(pointers(programs)); }));
    if (cache.statistics().compiled > 0)
      throw InternalError("bench: a kernel was compiled again that is on disk");
  }
  BenchRow row = context.row(kBench, name, "ms");
  row.more_is_better = false;
  row.ours = least;
  row.peer = "ours, cold";
  row.peer_value = cold;
  context.report.add(std::move(row));
}

}  // namespace

// Nothing here depends on the threads that run kernels.
void bench_compile(const BenchContext& context) {
  if (!context.first) return;
  bench_scheduling(context, "schedule a step of GPT-2 small", 12);
  bench_scheduling(context, "schedule one four times as deep", 48);
  for (const models::LongProgram& program : models::long_programs())
    bench_long_program(context, program);
  bench_llvm(context);
  bench_warm_start(context);
}

}  // namespace anneal::cli
