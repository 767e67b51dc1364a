#include "runtime/cpu/kernel_cache.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include <anneal/error.h>

#include "base/key.h"
#include "base/progress.h"
#include "kernel/program/program_content.h"
#include "runtime/cpu/image_file.h"
#include "runtime/cpu/thread_pool.h"

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
  const auto wanted = static_cast<size_t>(threads > 0 ? threads : default_threads());
  for (size_t i = 1; i < std::min(wanted, count); ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (problem) std::rethrow_exception(problem);
}

constexpr uint64_t kFileSeed = 0x616e6e65616c;

}  // namespace

struct KernelCache::Missing {
  const Program* program;
  std::string_view content;
  CodeImage image;
  bool loaded = false;
  std::string identity;   // of the image on disk
  CompiledKernel kernel;  // once it is there
};

KernelCache::KernelCache(KernelCacheOptions options)
    : options_(std::move(options)), folder_(options_.directory, options_.limits) {
  const CpuTarget& target = options_.target;
  identity_ = fmt::format("{}\n{}\n{}\n{}\n{}\n", codegen_identity(), target.triple, target.cpu,
                          target.features, target.vector_bytes);
}

Key KernelCache::key_of(const Missing& missing) {
  KeyBuilder key(kFileSeed);
  key.add(missing.identity);
  return key.finish();
}

void KernelCache::load(std::span<Missing> missing) {
  std::vector<Key> keys;
  for (const Missing& one : missing) keys.push_back(key_of(one));
  const std::vector<std::optional<std::string>> files = folder_.read_all(keys);
  for (size_t i = 0; i < missing.size(); ++i) {
    if (!files[i]) continue;
    std::optional<CodeImage> image = read_image(*files[i], missing[i].identity);
    missing[i].loaded = image && can_import(*image);
    if (missing[i].loaded) missing[i].image = std::move(*image);
  }
}

void KernelCache::save(std::span<const Missing> compiled) {
  for (const Missing& one : compiled)
    if (!one.loaded) folder_.write(key_of(one), write_image(one.image, one.identity));
}

const CompiledKernel* KernelCache::find(std::string_view content) {
  const auto known = by_content_.find(content);
  if (known == by_content_.end()) return nullptr;
  kernels_.splice(kernels_.begin(), kernels_, known->second);
  return &known->second->kernel;
}

void KernelCache::keep(std::string_view content, const CompiledKernel& kernel) {
  if (find(content)) return;  // another thread's
  kernels_.push_front({std::string(content), kernel});
  by_content_.emplace(kernels_.front().content, kernels_.begin());
  if (kernels_.size() <= options_.most_kernels) return;
  by_content_.erase(kernels_.back().content);
  kernels_.pop_back();
}

CompiledKernel KernelCache::compile(const Program& program) {
  const Program* const one[] = {&program};
  return compile_all(one)[0];
}

std::vector<CompiledKernel> KernelCache::compile_all(std::span<const Program* const> programs) {
  std::vector<std::string> contents;
  for (const Program* program : programs) contents.push_back(content(*program));

  std::unordered_map<std::string_view, CompiledKernel> found;
  std::vector<Missing> missing;
  {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < programs.size(); ++i) {
      const auto [entry, fresh] = found.try_emplace(contents[i]);
      const CompiledKernel* known = fresh ? find(contents[i]) : nullptr;
      if (known) entry->second = *known;
      if (known || !fresh)
        ++statistics_.reused;
      else
        missing.push_back({programs[i], contents[i], {}, false, identity_ + contents[i], {}});
    }
  }
  if (!missing.empty()) add(missing);
  for (const Missing& one : missing) found[one.content] = one.kernel;
  std::vector<CompiledKernel> result;
  for (const std::string& one : contents) result.push_back(found[one]);
  return result;
}

void KernelCache::add(std::span<Missing> missing) {
  std::vector<Missing*> to_compile;
  load(missing);
  for (Missing& one : missing)
    if (!one.loaded) to_compile.push_back(&one);
  std::atomic<int64_t> compiled = 0;
  run_on_threads(to_compile.size(), options_.threads, [&](size_t i) {
    to_compile[i]->image = compile_image(*to_compile[i]->program, options_.target);
    report_progress({"compile", ++compiled, static_cast<int64_t>(to_compile.size())});
  });
  std::vector<const CodeImage*> images;
  for (const Missing& one : missing) images.push_back(&one.image);
  const auto memory = std::make_shared<const CodeMemory>(images);
  save(missing);
  const std::lock_guard lock(mutex_);
  statistics_.compiled += static_cast<int64_t>(to_compile.size());
  statistics_.loaded += static_cast<int64_t>(missing.size() - to_compile.size());
  for (size_t i = 0; i < missing.size(); ++i) {
    std::byte* entry = memory->address(i) + missing[i].image.functions[0].offset;
    missing[i].kernel = {reinterpret_cast<KernelFunction>(entry), memory};
    keep(missing[i].content, missing[i].kernel);
  }
}

size_t KernelCache::size() const {
  const std::lock_guard lock(mutex_);
  return kernels_.size();
}

KernelCacheStatistics KernelCache::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

KernelCache& kernel_cache() {
  static KernelCache cache(
      {.directory = default_cache_directory(), .limits = cache_limits(default_cache_directory())});
  return cache;
}

}  // namespace anneal
