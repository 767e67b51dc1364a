// Pipelines of a GPU by the text they were made of: programs that share kernels compile them once.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/webgpu/gpu.h"

namespace anneal::webgpu {

// Any thread may call. Pipelines live as long as somebody holds them, here or elsewhere.
class PipelineCache {
 public:
  explicit PipelineCache(Gpu& gpu, size_t most = 512) : gpu_(gpu), most_(most) {}

  // In the order of the sources; those that are not known compile at the same time.
  std::vector<std::shared_ptr<const Pipeline>> compile(std::span<const KernelSource> sources);

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Pipeline> pipeline;
  };

  std::shared_ptr<const Pipeline> find(const std::string& key);  // the lock is held
  void keep(std::string key, std::shared_ptr<const Pipeline> pipeline);

  Gpu& gpu_;
  size_t most_;
  std::mutex mutex_;                                                         // of what follows
  std::list<Entry> entries_;                                                 // the last used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;  // views of the entries
};

}  // namespace anneal::webgpu
