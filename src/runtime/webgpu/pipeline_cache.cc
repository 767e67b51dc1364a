#include "runtime/webgpu/pipeline_cache.h"

#include <fmt/format.h>

namespace anneal::webgpu {
namespace {

// All that a pipeline depends on; its name is for people.
std::string key_of(const KernelSource& source) {
  std::string key = source.wgsl + source.entry_point;
  key += fmt::format("\n{}", source.uniform_bytes);
  for (const BufferSlot& slot : source.buffers)
    key += fmt::format(" {}{}", slot.access == Access::Read ? "r" : "w", slot.min_bytes);
  return key;
}

}  // namespace

std::shared_ptr<const Pipeline> PipelineCache::find(const std::string& key) {
  const auto known = by_key_.find(key);
  if (known == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, known->second);
  return known->second->pipeline;
}

void PipelineCache::keep(std::string key, std::shared_ptr<const Pipeline> pipeline) {
  if (by_key_.contains(key)) return;
  entries_.push_front({std::move(key), std::move(pipeline)});
  by_key_.emplace(entries_.front().key, entries_.begin());
  if (entries_.size() <= most_) return;
  by_key_.erase(entries_.back().key);
  entries_.pop_back();
}

std::vector<std::shared_ptr<const Pipeline>> PipelineCache::compile(
    std::span<const KernelSource> sources) {
  std::vector<std::shared_ptr<const Pipeline>> pipelines(sources.size());
  std::vector<std::string> keys;
  std::vector<size_t> missing;  // the first of each text
  std::unordered_map<std::string_view, size_t> first;
  for (const KernelSource& source : sources) keys.push_back(key_of(source));
  {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < sources.size(); ++i) {
      pipelines[i] = find(keys[i]);
      if (!pipelines[i] && first.emplace(keys[i], i).second) missing.push_back(i);
    }
  }
  std::vector<KernelSource> unknown;
  for (size_t i : missing) unknown.push_back(sources[i]);
  std::vector<Pipeline> made = gpu_.compile(unknown);
  for (size_t k = 0; k < missing.size(); ++k)
    pipelines[missing[k]] = std::make_shared<const Pipeline>(std::move(made[k]));
  for (size_t i = 0; i < sources.size(); ++i)
    if (!pipelines[i]) pipelines[i] = pipelines[first.at(keys[i])];
  std::lock_guard lock(mutex_);
  for (size_t i : missing) keep(keys[i], pipelines[i]);
  return pipelines;
}

}  // namespace anneal::webgpu
