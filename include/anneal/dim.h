// Sizes. A Dim is a number or an expression over bounded Variables; shapes are lists of them.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <anneal/root.h>

namespace anneal {

class Dim : public detail::Root {
 public:
  template <std::integral T>
  Dim(T value) : Dim(number(static_cast<int64_t>(value))) {}  // NOLINT(google-explicit-constructor)
  explicit Dim(const Node* index) : Root(index) {}

  bool is_static() const;
  int64_t value() const;             // of a static size; an error otherwise
  int64_t min() const, max() const;  // what it can be at least and at most
  std::string text() const;          // "n * 3 + 1"

 private:
  static Dim number(int64_t value);
};

Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim operator/(const Dim& a, const Dim& b);    // floor
Dim operator%(const Dim& a, const Dim& b);    // floor, the sign of b
bool operator==(const Dim& a, const Dim& b);  // whether they are provably the same

// A size that is bound when a program runs. Two Variables with one name and one range are the same.
class Variable : public Dim {
 public:
  Variable(std::string_view name, int64_t min, int64_t max);
};

using Sizes = std::vector<Dim>;
std::string to_text(const Sizes& sizes);  // "[n, 784]"

// Axes of a tensor: one, several, or (by default) all of them. Negative ones count from the end.
class Axes {
 public:
  Axes() = default;  // all
  template <std::integral T>
  Axes(T axis) : list_{{static_cast<int64_t>(axis)}} {}  // NOLINT(google-explicit-constructor)
  Axes(std::initializer_list<int64_t> axes) : list_(axes) {}
  Axes(std::vector<int64_t> axes) : list_(std::move(axes)) {}  // NOLINT

  bool is_all() const { return !list_.has_value(); }
  const std::vector<int64_t>& list() const { return *list_; }

 private:
  std::optional<std::vector<int64_t>> list_;
};

}  // namespace anneal
