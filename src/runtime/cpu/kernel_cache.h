// From Programs to functions of this process, each compiled once: the last used ones are kept in
// memory, and on disk for the next process. Must not run them.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/llvm/compile.h"
#include "runtime/cpu/code_memory.h"
#include "runtime/disk/kernel_folder.h"

namespace anneal {

struct KernelCacheOptions {
  CpuTarget target = host_target();
  int threads = 0;             // that compile at a time; 0: default_threads()
  std::string directory = {};  // for the next process; empty: nothing is kept on disk
  KernelFolderLimits limits = {};
  size_t most_kernels = 4096;  // in memory, besides those that are in use
};

struct KernelCacheStatistics {
  int64_t compiled = 0;  // programs that LLVM made code of
  int64_t loaded = 0;    // programs found on disk
  int64_t reused = 0;    // programs that were in memory already
};

// A function, and what keeps it in memory.
struct CompiledKernel {
  KernelFunction function = nullptr;
  std::shared_ptr<const CodeMemory> memory = nullptr;

  operator KernelFunction() const { return function; }
};

// Any thread may call.
class KernelCache {
 public:
  explicit KernelCache(KernelCacheOptions options = {});

  CompiledKernel compile(const Program& program);
  // What is missing is compiled on several threads; what does the same is compiled once, whatever
  // the names.
  std::vector<CompiledKernel> compile_all(std::span<const Program* const> programs);

  KernelCacheStatistics statistics() const;
  size_t size() const;  // kernels in memory

 private:
  struct Missing;
  struct Entry {
    std::string content;
    CompiledKernel kernel;
  };

  void add(std::span<Missing> missing);
  static Key key_of(const Missing& missing);
  void load(std::span<Missing> missing);
  void save(std::span<const Missing> compiled);
  const CompiledKernel* find(std::string_view content);               // the lock is held
  void keep(std::string_view content, const CompiledKernel& kernel);  // the lock is held

  KernelCacheOptions options_;
  KernelFolder folder_;
  std::string identity_;      // what code depends on besides the Program
  mutable std::mutex mutex_;  // of what follows
  std::list<Entry> kernels_;  // the last used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_content_;
  KernelCacheStatistics statistics_;
};

// The one of this process.
KernelCache& kernel_cache();

}  // namespace anneal
