// A map from nodes of one graph to T, keyed by the node's dense id. Sixteen neighbouring ids share
// a run of slots, so that a walk over neighbouring nodes stays in neighbouring memory; the runs are
// scattered, so that ids far apart do not pile up on each other.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/os/huge_pages.h"
#include "ir/node.h"

namespace anneal {

template <typename T>
class NodeMap {
 public:
  explicit NodeMap(size_t expected = 8) { resize_for(expected); }

  const T* find(NodeRef node) const {
    for (size_t slot = first_slot(node);; slot = (slot + 1) & mask_) {
      if (slots_[slot].first == node) return &slots_[slot].second;
      if (!slots_[slot].first) return nullptr;
    }
  }
  T* find(NodeRef node) { return const_cast<T*>(std::as_const(*this).find(node)); }
  bool contains(NodeRef node) const { return find(node) != nullptr; }

  T& operator[](NodeRef node) { return *insert(node, T{}).first; }

  // Leaves an existing entry as it is; the second result says whether the entry is new.
  std::pair<T*, bool> insert(NodeRef node, T value) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    size_t slot = first_slot(node);
    for (; slots_[slot].first; slot = (slot + 1) & mask_)
      if (slots_[slot].first == node) return {&slots_[slot].second, false};
    slots_[slot] = {node, std::move(value)};
    ++size_;
    return {&slots_[slot].second, true};
  }

  size_t size() const { return size_; }

 private:
  using Slots = std::vector<std::pair<NodeRef, T>, PageAllocator<std::pair<NodeRef, T>>>;

  size_t first_slot(NodeRef node) const {
    size_t run = (node->id >> 4) * uint64_t{0x9e3779b97f4a7c15u} >> shift_;
    return run << 4 | (node->id & 15);
  }
  void resize_for(size_t expected) {
    size_t capacity = 32;
    while (capacity < expected * 2) capacity *= 2;
    slots_.assign(capacity, {nullptr, T{}});
    mask_ = capacity - 1;
    shift_ = 68 - std::countr_zero(capacity);  // leaves as many bits as there are runs
  }
  void grow() {
    Slots old = std::move(slots_);
    resize_for(old.size());
    size_ = 0;
    for (auto& [node, value] : old)
      if (node) insert(node, std::move(value));
  }

  Slots slots_;
  size_t mask_ = 0, size_ = 0;
  int shift_ = 0;
};

}  // namespace anneal
