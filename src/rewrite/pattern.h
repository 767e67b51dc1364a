// Patterns: small trees that match nodes and name the parts. Written as arithmetic where that reads
// well:   x * 1    op(Op::Exp, op(Op::Log, x))    (x + c) * d    any_of({Op::Exp, Op::Log}, x)
// A pattern describes the tensor sources of a node; its sizes (the tail) are left to the rule.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "ir/node.h"
#include "rewrite/facts.h"

namespace anneal {

// A name for a part of a match. The same capture twice must match the same node twice.
struct Capture {
  uint8_t slot;
  bool constant = false;  // matches only Const nodes
};

namespace captures {
inline constexpr Capture x{0}, y{1}, z{2}, w{3};
inline constexpr Capture c{4, true}, d{5, true};
inline constexpr Capture root{6};  // the whole match, named by itself
}  // namespace captures

// What a successful match found.
class Match {
 public:
  explicit Match(const Facts& facts = {}) : facts_(facts) {}

  NodeRef operator[](const Capture& capture) const { return parts_[capture.slot]; }
  NodeRef root() const { return parts_[captures::root.slot]; }
  // What the Rewriter was given; an internal error where that is nothing, or of another type.
  template <typename T>
  const T& facts() const {
    return facts_.get<T>();
  }

 private:
  friend class Pattern;
  std::array<NodeRef, 7> parts_{};
  Facts facts_;
};

class Pattern {
 public:
  using Predicate = bool (*)(NodeRef);

  // Implicit, so that captures and numbers are patterns too.
  Pattern(Capture capture);  // NOLINT(google-explicit-constructor)
  Pattern(double number);    // NOLINT(google-explicit-constructor) a Const of that value
  Pattern(int number) : Pattern(static_cast<double>(number)) {}  // NOLINT
  Pattern(OpSet ops, std::vector<Pattern> sources);

  Pattern as(Capture capture) const;        // names this part
  Pattern when(Predicate predicate) const;  // and it must satisfy this

  // The ops a match can have; every op when the pattern is a bare capture.
  const OpSet& ops() const { return ops_; }
  bool matches_any_op() const { return any_op_; }
  const std::vector<Pattern>& sources() const { return sources_; }

  // Commutative ops match in either order: the pattern written out once for each order.
  std::vector<Pattern> orders() const;

  bool match(NodeRef node, Match& match) const;

 private:
  OpSet ops_;
  bool any_op_ = false;
  bool is_number_ = false;
  double number_ = 0;
  int capture_ = -1;
  Predicate predicate_ = nullptr;
  std::vector<Pattern> sources_;
};

template <typename... Sources>
Pattern op(Op the_op, Sources... sources) {
  return Pattern(OpSet{the_op}, {Pattern(sources)...});
}
template <typename... Sources>
Pattern any_of(OpSet ops, Sources... sources) {
  return Pattern(ops, {Pattern(sources)...});
}
// Any node with one of these ops, whatever its sources.
Pattern any_of(OpSet ops);

inline Pattern operator+(const Pattern& a, const Pattern& b) { return op(Op::Add, a, b); }
inline Pattern operator*(const Pattern& a, const Pattern& b) { return op(Op::Mul, a, b); }
inline Pattern operator/(const Pattern& a, const Pattern& b) { return op(Op::Div, a, b); }
inline Pattern operator<(const Pattern& a, const Pattern& b) { return op(Op::Lt, a, b); }
inline Pattern operator&(const Pattern& a, const Pattern& b) { return op(Op::And, a, b); }
inline Pattern operator|(const Pattern& a, const Pattern& b) { return op(Op::Or, a, b); }
inline Pattern operator^(const Pattern& a, const Pattern& b) { return op(Op::Xor, a, b); }
inline Pattern floor_div(const Pattern& a, const Pattern& b) { return op(Op::FloorDiv, a, b); }
inline Pattern mod(const Pattern& a, const Pattern& b) { return op(Op::Mod, a, b); }

}  // namespace anneal
