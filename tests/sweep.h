// Counts what is wrong among up to millions of cases and shows the first, in hexadecimal.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include <doctest/doctest.h>

namespace anneal {

inline double two_to(int exponent) { return std::ldexp(1.0, exponent); }

class Sweep {
 public:
  void expect(bool right, double input, uint64_t got, uint64_t want) {
    ++cases_;
    if (right) return;
    if (wrong_++ != 0) return;
    char text[128];
    std::snprintf(text, sizeof text, "first wrong: %a gave %#llx, wanted %#llx", input,
                  static_cast<unsigned long long>(got), static_cast<unsigned long long>(want));
    first_ = text;
  }
  void expect(double input, uint64_t got, uint64_t want) { expect(got == want, input, got, want); }
  void finish(size_t least_cases) const {
    INFO(first_);
    CHECK(wrong_ == 0);
    CHECK(cases_ >= least_cases);
  }

 private:
  size_t cases_ = 0;
  size_t wrong_ = 0;
  std::string first_;
};

}  // namespace anneal
