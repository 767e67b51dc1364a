// Finds an equal object among those already made. A 32-bit tag picks the slot; the caller's equality
// confirms. Objects are numbered in the order they came.
#pragma once

#include <cstdint>
#include <vector>

#include "base/key.h"

namespace anneal {

template <typename T>
class InternTable {
 public:
  InternTable() : slots_(64) {}

  template <typename Equal>
  const T* find(const Key& key, Equal equal) const {
    uint32_t tag = tag_of(key);
    for (size_t slot = tag & mask();; slot = (slot + 1) & mask()) {
      const Slot& entry = slots_[slot];
      if (entry.number == 0) return nullptr;
      if (entry.tag == tag && equal(*objects_[entry.number - 1])) return objects_[entry.number - 1];
    }
  }

  void insert(const Key& key, const T* object) {
    objects_.push_back(object);
    if (objects_.size() * 2 > slots_.size()) {
      std::vector<Slot> old(slots_.size() * 2);
      old.swap(slots_);
      for (const Slot& entry : old)
        if (entry.number) place(entry);
    }
    place({tag_of(key), static_cast<uint32_t>(objects_.size())});
  }

  size_t size() const { return objects_.size(); }
  const std::vector<const T*>& objects() const { return objects_; }

 private:
  struct Slot {
    uint32_t tag = 0, number = 0;  // number 0: empty
  };
  static uint32_t tag_of(const Key& key) { return static_cast<uint32_t>(key.low >> 32); }
  size_t mask() const { return slots_.size() - 1; }
  void place(const Slot& entry) {
    size_t slot = entry.tag & mask();
    while (slots_[slot].number) slot = (slot + 1) & mask();
    slots_[slot] = entry;
  }

  std::vector<Slot> slots_;
  std::vector<const T*> objects_;
};

}  // namespace anneal
