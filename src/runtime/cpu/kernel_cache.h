// From Programs to functions of this process, each compiled once: kept in memory, and on disk for
// the next process. Must not run them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/llvm/compile.h"
#include "runtime/cpu/code_memory.h"

namespace anneal {

struct KernelCacheOptions {
  CpuTarget target = host_target();
  int threads = 0;             // that compile at a time; 0: default_threads()
  std::string directory = {};  // for the next process; empty: nothing is kept on disk
  uint64_t max_disk_bytes = uint64_t{512} << 20;  // beyond it the oldest are removed
};

// $ANNEAL_CACHE_DIR, else $XDG_CACHE_HOME/anneal, else ~/.cache/anneal; ANNEAL_CACHE=0: none.
std::string default_cache_directory();

struct KernelCacheStatistics {
  int64_t compiled = 0;  // programs that LLVM made code of
  int64_t loaded = 0;    // programs found on disk
  int64_t reused = 0;    // programs that were in memory already
};

// Functions live as long as the cache. Any thread may call.
class KernelCache {
 public:
  explicit KernelCache(KernelCacheOptions options = {});

  KernelFunction compile(const Program& program);
  // What is missing is compiled on several threads; what does the same is compiled once, whatever
  // the names.
  std::vector<KernelFunction> compile_all(std::span<const Program* const> programs);

  KernelCacheStatistics statistics() const;

 private:
  struct Missing;

  void add(std::span<Missing> missing);
  std::string path_of(const Missing& missing) const;
  bool load(Missing& missing) const;
  void save(std::span<const Missing> compiled);

  KernelCacheOptions options_;
  std::string identity_;  // what code depends on besides the Program
  mutable std::mutex mutex_;
  std::unordered_map<std::string, KernelFunction> functions_;  // by content
  std::vector<std::unique_ptr<CodeMemory>> memory_;
  std::optional<uint64_t> disk_bytes_;  // once it was counted
  KernelCacheStatistics statistics_;
};

// The one of this process.
KernelCache& kernel_cache();

}  // namespace anneal
