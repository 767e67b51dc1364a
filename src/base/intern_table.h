// Finds an equal object among those already made; the caller's equality confirms what tags suggest.
//
// Objects are looked up near their neighbours: a line of eight slots, one cache line, is picked by
// a hint (for a node, how new its newest source is), so that a graph built in sequence stays in the
// cache. A full line passes on to lines picked by the tag, so no pattern of hints makes it slow.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/key.h"
#include "base/os/huge_pages.h"

namespace anneal {

// `Hint` answers the hint of an object, the same that find and insert are given for it.
template <typename T, typename Hint>
class InternTable {
 public:
  InternTable() : lines_(8) {}

  // Starts fetching the place of a hint: other work can go on meanwhile.
  void prefetch(uint32_t hint) const { __builtin_prefetch(&lines_[first_line(hint)]); }

  template <typename Equal>
  const T* find(const Key& key, uint32_t hint, Equal equal) const {
    const uint32_t tag = tag_of(key);
    for (size_t line = first_line(hint), next = tag;; line = next++ & mask())
      for (const Slot& slot : lines_[line]) {
        if (slot.number == 0) return nullptr;
        if (slot.tag == tag && equal(*objects_[slot.number - 1])) return objects_[slot.number - 1];
      }
  }

  void insert(const Key& key, uint32_t hint, const T* object) {
    objects_.push_back(object);
    if (objects_.size() > lines_.size() * kLineSlots / 2) {
      Lines old(lines_.size() * 2);
      old.swap(lines_);
      for (const Line& line : old)
        for (const Slot& slot : line)
          if (slot.number) place(slot, Hint()(*objects_[slot.number - 1]));
    }
    place({tag_of(key), static_cast<uint32_t>(objects_.size())}, hint);
  }

  size_t size() const { return objects_.size(); }
  // Whether this object came as number `index`, counted from 0.
  bool holds(size_t index, const T* object) const {
    return index < objects_.size() && objects_[index] == object;
  }

 private:
  struct Slot {
    uint32_t tag = 0, number = 0;  // number 0: empty; others count from 1
  };
  static constexpr size_t kLineSlots = 8;
  using Line = std::array<Slot, kLineSlots>;
  using Lines = std::vector<Line, PageAllocator<Line>>;

  static uint32_t tag_of(const Key& key) { return static_cast<uint32_t>(key.low >> 32); }
  size_t mask() const { return lines_.size() - 1; }
  // Half a line's slots for as many neighbouring hints.
  size_t first_line(uint32_t hint) const { return hint / (kLineSlots / 2) & mask(); }

  void place(const Slot& entry, uint32_t hint) {
    for (size_t line = first_line(hint), next = entry.tag;; line = next++ & mask())
      for (Slot& slot : lines_[line])
        if (slot.number == 0) {
          slot = entry;
          return;
        }
  }

  Lines lines_;
  std::vector<const T*, PageAllocator<const T*>> objects_;
};

// For objects without an order of their own: the hint is as random as the key.
struct KeyHint {
  template <typename T>
  uint32_t operator()(const T& object) const {
    return static_cast<uint32_t>(object.key.low);
  }
};

}  // namespace anneal
