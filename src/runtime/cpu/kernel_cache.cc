#include "runtime/cpu/kernel_cache.h"

#include <atomic>
#include <exception>
#include <thread>

#include <anneal/error.h>

#include "kernel/program_content.h"

namespace anneal {
namespace {

CodeImage compile_image(const Program& program, const CpuTarget& target) {
  if (const std::string problem = verify(program); !problem.empty()) {
    throw InternalError("program " + program.name + " is not valid: " + problem);
  }
  Program named = program;
  named.name = "kernel";
  const Program* const programs[] = {&named};
  return link_image(compile_to_object(programs, target));
}

// Runs task(i) for i below count on several threads; the first exception is thrown again here.
template <typename Task>
void run_on_threads(size_t count, int threads, const Task& task) {
  std::atomic<size_t> next = 0;
  std::exception_ptr problem;
  std::mutex mutex;
  auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        task(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!problem) problem = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  const size_t wanted = threads > 0 ? static_cast<size_t>(threads)
                                    : std::max<size_t>(std::thread::hardware_concurrency(), 1);
  for (size_t i = 1; i < std::min(wanted, count); ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (problem) std::rethrow_exception(problem);
}

}  // namespace

struct KernelCache::Missing {
  const Program* program;
  std::string content;
  CodeImage image;
};

KernelCache::KernelCache(KernelCacheOptions options) : options_(std::move(options)) {}

KernelFunction KernelCache::compile(const Program& program) {
  const Program* const one[] = {&program};
  return compile_all(one)[0];
}

std::vector<KernelFunction> KernelCache::compile_all(std::span<const Program* const> programs) {
  std::vector<std::string> contents;
  for (const Program* program : programs) contents.push_back(content(*program));

  std::vector<Missing> missing;
  {
    const std::lock_guard lock(mutex_);
    std::unordered_map<std::string_view, size_t> seen;
    for (size_t i = 0; i < programs.size(); ++i) {
      if (functions_.contains(contents[i]) || !seen.emplace(contents[i], i).second) {
        ++statistics_.reused;
      } else {
        missing.push_back({programs[i], contents[i], {}});
      }
    }
  }
  if (!missing.empty()) {
    run_on_threads(missing.size(), options_.threads, [&](size_t i) {
      missing[i].image = compile_image(*missing[i].program, options_.target);
    });
    std::vector<const CodeImage*> images;
    for (const Missing& one : missing) images.push_back(&one.image);
    auto memory = std::make_unique<CodeMemory>(images);
    const std::lock_guard lock(mutex_);
    statistics_.compiled += static_cast<int64_t>(missing.size());
    for (size_t i = 0; i < missing.size(); ++i) {
      const std::byte* entry = memory->address(i) + missing[i].image.functions[0].offset;
      functions_.emplace(missing[i].content, reinterpret_cast<KernelFunction>(entry));
    }
    memory_.push_back(std::move(memory));
  }
  std::vector<KernelFunction> result;
  const std::lock_guard lock(mutex_);
  for (const std::string& one : contents) result.push_back(functions_.at(one));
  return result;
}

KernelCacheStatistics KernelCache::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

KernelCache& kernel_cache() {
  static KernelCache cache;
  return cache;
}

}  // namespace anneal
