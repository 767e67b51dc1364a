#include "runtime/cpu/kernel_cache.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_set>

#include <fmt/format.h>

#include <anneal/error.h>

#include "base/files.h"
#include "base/key.h"
#include "kernel/program_content.h"
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
constexpr std::string_view kFileSuffix = ".kernel";
constexpr uint64_t kMaxFileBytes = uint64_t{64} << 20;

// Removes the oldest kernels of a folder that holds too many bytes, down to three quarters, and
// answers how many bytes are left.
uint64_t keep_newest(const std::string& folder, uint64_t max_bytes) {
  std::vector<FileEntry> files = list_files(folder, kFileSuffix);
  uint64_t total = 0;
  for (const FileEntry& file : files) total += file.bytes;
  if (total <= max_bytes) return total;
  std::sort(files.begin(), files.end(), [](const FileEntry& a, const FileEntry& b) {
    return std::tie(a.modified, a.path) < std::tie(b.modified, b.path);
  });
  for (const FileEntry& file : files) {
    if (total <= max_bytes / 4 * 3) break;
    if (remove_file(file.path)) total -= file.bytes;
  }
  return total;
}

}  // namespace

struct KernelCache::Missing {
  const Program* program;
  std::string_view content;
  CodeImage image;
  bool loaded = false;
  std::string identity;  // of the image on disk
};

std::string default_cache_directory() {
  if (environment("ANNEAL_CACHE") == "0") return "";
  if (std::string chosen = environment("ANNEAL_CACHE_DIR"); !chosen.empty()) return chosen;
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) {
    return cache + "/anneal";
  }
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/anneal";
}

KernelCache::KernelCache(KernelCacheOptions options) : options_(std::move(options)) {
  const CpuTarget& target = options_.target;
  identity_ = fmt::format("{}\n{}\n{}\n{}\n{}\n", codegen_identity(), target.triple, target.cpu,
                          target.features, target.vector_bytes);
}

std::string KernelCache::path_of(const Missing& missing) const {
  KeyBuilder key(kFileSeed);
  key.add(missing.identity);
  return fmt::format("{}/{}{}", options_.directory, to_text(key.finish()), kFileSuffix);
}

bool KernelCache::load(Missing& missing) const {
  const std::optional<std::string> file = read_file(path_of(missing), kMaxFileBytes);
  if (!file) return false;
  std::optional<CodeImage> image = read_image(*file, missing.identity);
  if (!image || !can_import(*image)) return false;
  missing.image = std::move(*image);
  return true;
}

// A disk that cannot be written to is no problem of the user's: the next process compiles again.
void KernelCache::save(std::span<const Missing> compiled) {
  uint64_t written = 0;
  for (const Missing& one : compiled) {
    if (one.loaded) continue;
    const std::string file = write_image(one.image, one.identity);
    if (write_file_atomically(path_of(one), file)) written += file.size();
  }
  if (written == 0) return;
  const std::lock_guard lock(mutex_);
  // Counted once; what other processes add meanwhile is seen by the next one.
  if (disk_bytes_ && *disk_bytes_ + written <= options_.max_disk_bytes) {
    *disk_bytes_ += written;
    return;
  }
  disk_bytes_ = keep_newest(options_.directory, options_.max_disk_bytes);
}

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
    std::unordered_set<std::string_view> seen;
    for (size_t i = 0; i < programs.size(); ++i) {
      if (functions_.contains(contents[i]) || !seen.insert(contents[i]).second) {
        ++statistics_.reused;
      } else {
        missing.push_back({programs[i], contents[i], {}, false, identity_ + contents[i]});
      }
    }
  }
  if (!missing.empty()) add(missing);
  std::vector<KernelFunction> result;
  const std::lock_guard lock(mutex_);
  for (const std::string& one : contents) result.push_back(functions_.at(one));
  return result;
}

void KernelCache::add(std::span<Missing> missing) {
  std::vector<Missing*> to_compile;
  for (Missing& one : missing) {
    one.loaded = !options_.directory.empty() && load(one);
    if (!one.loaded) to_compile.push_back(&one);
  }
  run_on_threads(to_compile.size(), options_.threads, [&](size_t i) {
    to_compile[i]->image = compile_image(*to_compile[i]->program, options_.target);
  });
  std::vector<const CodeImage*> images;
  for (const Missing& one : missing) images.push_back(&one.image);
  auto memory = std::make_unique<CodeMemory>(images);
  if (!options_.directory.empty()) save(missing);
  const std::lock_guard lock(mutex_);
  statistics_.compiled += static_cast<int64_t>(to_compile.size());
  statistics_.loaded += static_cast<int64_t>(missing.size() - to_compile.size());
  for (size_t i = 0; i < missing.size(); ++i) {
    std::byte* entry = memory->address(i) + missing[i].image.functions[0].offset;
    functions_.emplace(missing[i].content, reinterpret_cast<KernelFunction>(entry));
  }
  memory_.push_back(std::move(memory));
}

KernelCacheStatistics KernelCache::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

KernelCache& kernel_cache() {
  static KernelCache cache({.directory = default_cache_directory()});
  return cache;
}

}  // namespace anneal
