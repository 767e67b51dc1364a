#include "memory_copy.h"

#include <barrier>
#include <chrono>
#include <cstring>
#include <thread>

namespace anneal::cli {

MemoryCopy::MemoryCopy(int threads) : threads_(threads), from_(kBytes, 1), to_(kBytes, 2) {}

// From when all threads are there until all have ended.
double MemoryCopy::run() {
  std::barrier both_ends(threads_ + 1);
  std::vector<std::jthread> workers;
  for (int i = 0; i < threads_; ++i)
    workers.emplace_back([this, i, &both_ends] {
      const size_t count = static_cast<size_t>(threads_), number = static_cast<size_t>(i);
      const size_t begin = kBytes * number / count, end = kBytes * (number + 1) / count;
      both_ends.arrive_and_wait();
      std::memcpy(to_.data() + begin, from_.data() + begin, end - begin);
      both_ends.arrive_and_wait();
    });
  both_ends.arrive_and_wait();
  const auto start = std::chrono::steady_clock::now();
  both_ends.arrive_and_wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace anneal::cli
