// Which kernel in the making must come before which. Must not change what they compute.
#pragma once

#include <span>
#include <vector>

#include "schedule/fuse/rangeify.h"

namespace anneal {

// The order that reads and writes impose. An external buffer is written after every other fragment
// has read it.
class Dataflow {
 public:
  explicit Dataflow(const Rangified& program);

  // The value's writer comes after all who read the target.
  void write_after_reads(const AssignedBuffer& assigned);
  // The program has one more fragment, the last one, which writes buffers of its own alone.
  void extend(const Rangified& program);
  // One fragment comes before another, for reasons of the caller's.
  void add(int from, int to);
  // One fragment becomes part of another.
  void merge(int fragment, int into);

  const std::vector<int>& before(int fragment) const { return before_[index(fragment)]; }
  const std::vector<int>& after(int fragment) const { return after_[index(fragment)]; }
  int writer(int buffer) const { return writer_[index(buffer)]; }
  const std::vector<int>& readers(int buffer) const { return readers_[index(buffer)]; }

  bool masked_ranges(int from, int to) const { return not_reached(from, {to}).empty(); }
  std::vector<int> not_reached(int from, std::vector<int> among) const;
  // A way from one to the other that is not the direct edge alone.
  bool has_detour(int from, int to) const;

  // Producers first; among those that could come next, the one made first.
  std::vector<int> order() const;
  // By fragment: how many come one after the other before it, at least.
  std::vector<int> levels() const;

 private:
  static size_t index(int number) { return static_cast<size_t>(number); }
  // Leaves of those wanted what cannot be reached.
  void search(std::span<const int> from, std::vector<int>& wanted) const;
  void note_buffers(const Fragment& fragment, int number);
  void read(const Rangified& program, int buffer, int reader);
  const std::vector<int>& ranks() const;
  void raise(int fragment, int least);

  std::vector<std::vector<int>> before_, after_, readers_;
  std::vector<std::vector<int>> buffers_;  // by fragment: those it reads or writes
  std::vector<int> writer_;
  std::vector<char> merged_;
  // By fragment, rising along the order, once it was asked for: who has a higher one comes before
  // none that has a lower.
  mutable std::vector<int> ranks_;
  mutable std::vector<int> searches_;  // by fragment: the last search that came by
  mutable int search_ = 0;
};

}  // namespace anneal
