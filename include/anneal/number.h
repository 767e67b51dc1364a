// A number of the host as it was written: no digit is lost before it meets a dtype.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

namespace anneal {

class Number {
 public:
  enum class Kind { Bool, Int, Float };

  template <typename T>
    requires std::is_arithmetic_v<T>
  constexpr Number(T value)  // NOLINT(google-explicit-constructor)
      : kind_(std::same_as<T, bool>    ? Kind::Bool
              : std::floating_point<T> ? Kind::Float
                                       : Kind::Int),
        above_i64_(std::unsigned_integral<T> && sizeof(T) == 8 &&
                   static_cast<uint64_t>(value) >> 63 != 0),
        real_(static_cast<double>(value)),
        integer_(std::floating_point<T> ? 0 : static_cast<int64_t>(value)) {}

  Kind kind() const { return kind_; }
  double real() const { return real_; }         // the nearest double
  int64_t integer() const { return integer_; }  // 0 of a Float
  // An unsigned integer of 2^63 or more: integer() has its bits.
  bool above_i64() const { return above_i64_; }
  std::string text() const;

 private:
  Kind kind_;
  bool above_i64_;
  double real_;
  int64_t integer_;
};

}  // namespace anneal
