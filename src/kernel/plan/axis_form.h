// Index expressions as sums over axes: slope * axis + ... + rest. What memory access looks like
// along each axis. Rewrites nothing.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "body/kernel_body.h"
#include "ir/node_map.h"
#include "symbolic/polynomial.h"

namespace anneal {

// A set of axes by their number.
class AxisSet {
 public:
  static constexpr size_t kMost = 256;

  AxisSet() = default;
  void add(size_t axis) { words_[axis / 64] |= uint64_t{1} << axis % 64; }
  void remove(size_t axis) { words_[axis / 64] &= ~(uint64_t{1} << axis % 64); }
  bool contains(size_t axis) const { return words_[axis / 64] >> axis % 64 & 1; }
  bool empty() const { return *this == AxisSet(); }
  AxisSet operator|(const AxisSet& other) const { return zip(other, std::bit_or<>()); }
  AxisSet operator&(const AxisSet& other) const { return zip(other, std::bit_and<>()); }
  AxisSet without(const AxisSet& other) const {
    return zip(other, [](uint64_t a, uint64_t b) { return a & ~b; });
  }
  bool contains(const AxisSet& other) const { return other.without(*this).empty(); }
  friend bool operator==(const AxisSet&, const AxisSet&) = default;
  std::vector<size_t> list() const;  // increasing

 private:
  template <typename Function>
  AxisSet zip(const AxisSet& other, Function function) const {
    AxisSet result;
    for (size_t i = 0; i < words_.size(); ++i)
      result.words_[i] = function(words_[i], other.words_[i]);
    return result;
  }
  std::array<uint64_t, kMost / 64> words_{};
};

// Which axes of a body are free in each of its nodes: those it depends on. A reduction's own axes
// are not free in it.
class FreeAxes {
 public:
  explicit FreeAxes(std::span<const Axis> axes);
  // What is in a tile depends on the tile's axes, though positions do not speak of them.
  explicit FreeAxes(const KernelBody& body);

  AxisSet of(NodeRef node);
  size_t count() const { return variables_.size(); }
  // The number of an axis; count() for other nodes.
  size_t number(NodeRef variable) const;
  NodeRef variable(size_t axis) const { return variables_[axis]; }

 private:
  std::vector<NodeRef> variables_;
  NodeMap<size_t> numbers_;
  NodeMap<AxisSet> free_;
  std::vector<NodeRef> tiles_;
  AxisSet tile_axes_;
};

// expression == sum of slope * axis + rest, where no slope holds an axis; axes that appear in any
// other way are in the rest.
struct AxisForm {
  struct Term {
    size_t axis;
    LinearForm slope;
  };
  std::vector<Term> terms;  // ordered by axis
  LinearForm rest;
  AxisSet in_rest;
  bool overflow = false;  // then it says nothing

  // Of an axis that is not in the rest; zero where it does not appear.
  LinearForm slope(size_t axis) const;
};
AxisForm axis_form(NodeRef expression, FreeAxes& free);

}  // namespace anneal
