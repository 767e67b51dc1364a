#include "runtime/cpu/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "base/os/environment.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace anneal {
namespace {

// Kernels follow each other closely: whoever sleeps in between is late.
constexpr std::chrono::microseconds kSpin(50);
constexpr uint32_t kOpen = uint32_t{1} << 31;
// Chunks of a run for each thread: few cost little, many even out what cells cost.
constexpr int64_t kChunksPerThread = 16;

// The worker this thread is in a run of `inside_pool`.
thread_local const ThreadPool* inside_pool = nullptr;
thread_local int inside_worker = 0;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits actively for a while until the condition holds; answers whether it does.
template <typename Condition>
bool spin_until(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (condition()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return condition();
}

}  // namespace

int default_threads() {
  const int64_t cores = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, kMaxThreads);
  return static_cast<int>(environment_number("ANNEAL_THREADS", 1, kMaxThreads).value_or(cores));
}

ThreadPool::ThreadPool(int threads) { start(threads); }

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::set_threads(int threads) {
  const std::lock_guard lock(run_mutex_);
  stop();
  start(threads);
}

void ThreadPool::start(int threads) {
  threads_ = std::clamp(threads, 1, kMaxThreads);
  stopping_ = false;
  const uint32_t seen = round_.load();
  for (int worker = 1; worker < threads_; ++worker) {
    workers_.emplace_back([this, worker, seen] { work(worker, seen); });
  }
}

void ThreadPool::stop() {
  stopping_ = true;
  ++round_;
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void ThreadPool::wait_for_next(uint32_t seen) const {
  if (spin_until([&] { return round_.load(std::memory_order_acquire) != seen; })) return;
  round_.wait(seen, std::memory_order_acquire);
}

void ThreadPool::work(int worker, uint32_t seen) {
  inside_pool = this;
  inside_worker = worker;
  while (true) {
    wait_for_next(seen);
    seen = round_.load(std::memory_order_acquire);
    // Who comes late finds the gate closed: the caller does not wait for those asleep. While one is
    // inside, nothing of the run changes, and stopping is not begun.
    if (enter()) {
      run_chunks(worker);
      leave();
    } else if (stopping_) {
      return;
    }
  }
}

bool ThreadPool::enter() {
  uint32_t gate = gate_.load(std::memory_order_acquire);
  while ((gate & kOpen) != 0) {
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire)) return true;
  }
  return false;
}

void ThreadPool::leave() {
  if (gate_.fetch_sub(1, std::memory_order_acq_rel) == 1) gate_.notify_all();
}

void ThreadPool::run_chunks(int worker) {
  while (true) {
    const int64_t begin = next_cell_.fetch_add(chunk_, std::memory_order_relaxed);
    if (begin >= cells_) return;
    try {
      task_.call(task_.context, begin, std::min(begin + chunk_, cells_), worker);
    } catch (...) {
      const std::lock_guard lock(problem_mutex_);
      if (!problem_) problem_ = std::current_exception();
      next_cell_.store(cells_, std::memory_order_relaxed);
    }
  }
}

void ThreadPool::close_and_wait() {
  uint32_t gate = gate_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
  if (gate == 0) return;
  if (spin_until([&] { return gate_.load(std::memory_order_acquire) == 0; })) return;
  while ((gate = gate_.load(std::memory_order_acquire)) != 0) gate_.wait(gate);
}

void ThreadPool::run_erased(int64_t cells, Task task) {
  if (cells <= 0) return;
  if (inside_pool == this) return task.call(task.context, 0, cells, inside_worker);
  const std::lock_guard lock(run_mutex_);
  const ThreadPool* const outer_pool = std::exchange(inside_pool, this);
  const int outer_worker = std::exchange(inside_worker, 0);
  struct Restore {
    const ThreadPool* pool;
    int worker;
    ~Restore() {
      inside_pool = pool;
      inside_worker = worker;
    }
  } restore{outer_pool, outer_worker};
  if (cells == 1 || threads_ == 1) return task.call(task.context, 0, cells, 0);

  task_ = task;
  cells_ = cells;
  chunk_ = std::max<int64_t>(1, cells / (threads_ * kChunksPerThread));
  problem_ = nullptr;
  next_cell_.store(0, std::memory_order_relaxed);
  gate_.store(kOpen, std::memory_order_release);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  run_chunks(0);
  close_and_wait();
  if (problem_) std::rethrow_exception(std::exchange(problem_, nullptr));
}

ThreadPool& thread_pool() {
  static ThreadPool pool;
  return pool;
}

}  // namespace anneal
