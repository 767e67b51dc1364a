// From Programs to functions of this process, each compiled once: kept in memory, and on disk for
// the next process. Must not run them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/llvm/compile.h"
#include "runtime/cpu/code_memory.h"

namespace anneal {

struct KernelCacheOptions {
  CpuTarget target = host_target();
  int threads = 0;  // that compile at a time; 0: as many as the machine has
};

struct KernelCacheStatistics {
  int64_t compiled = 0;  // programs that LLVM made code of
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

  KernelCacheOptions options_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, KernelFunction> functions_;  // by content
  std::vector<std::unique_ptr<CodeMemory>> memory_;
  KernelCacheStatistics statistics_;
};

// The one of this process.
KernelCache& kernel_cache();

}  // namespace anneal
