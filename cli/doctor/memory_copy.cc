#include "cli/doctor/memory_copy.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <thread>

namespace anneal::cli {

MemoryCopy::MemoryCopy(int threads) : threads_(threads), from_(kBytes, 1), to_(kBytes, 2) {}

// From when the first thread begins until the last one ends; this thread is one of them.
double MemoryCopy::run() {
  using Clock = std::chrono::steady_clock;
  const auto count = static_cast<size_t>(threads_);
  std::vector<Clock::time_point> begins(count), ends(count);
  std::barrier everyone(threads_);
  const auto work = [&](size_t i) {
    const size_t begin = kBytes * i / count, end = kBytes * (i + 1) / count;
    everyone.arrive_and_wait();
    begins[i] = Clock::now();
    std::memcpy(to_.data() + begin, from_.data() + begin, end - begin);
    ends[i] = Clock::now();
  };
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < count; ++i) others.emplace_back(work, i);
    work(0);
  }
  return std::chrono::duration<double>(*std::ranges::max_element(ends) -
                                       *std::ranges::min_element(begins))
      .count();
}

}  // namespace anneal::cli
