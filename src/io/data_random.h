// Random numbers of the host from counters: what is drawn for a place depends on the seed and the
// place alone, so that data can be made in any order and a run can go on from any step.
#pragma once

#include <cstdint>

namespace anneal::io {

// splitmix64: every call a new number.
class HostRandom {
 public:
  explicit HostRandom(uint64_t seed, uint64_t stream = 0) : state_(mix(seed) ^ mix(~stream)) {}

  uint64_t bits() { return mix(state_ += 0x9e3779b97f4a7c15); }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // in [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // In [0, count); the bias is below count / 2^64.
  int64_t below(int64_t count) {
    return static_cast<int64_t>(bits() % static_cast<uint64_t>(count));
  }

 private:
  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  uint64_t state_;
};

}  // namespace anneal::io
