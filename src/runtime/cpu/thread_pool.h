// Threads that run the cells of a grid. Which thread runs a cell differs from run to run, so no
// result may depend on it. Must not know what a cell is.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace anneal {

constexpr int kMaxThreads = 1024;

// $ANNEAL_THREADS, else as many as the machine runs at once.
int default_threads();

class ThreadPool {
 public:
  explicit ThreadPool(int threads = default_threads());
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_.load(std::memory_order_relaxed); }
  // Waits for a run that is going on. At least 1.
  void set_threads(int threads);

  // Calls body(begin, end, worker) for stretches that together are 0 <= cell < cells, and returns
  // when all have. Workers are numbered below threads(), and one number is in use once at a time.
  // The caller is one of them. A run inside a run stays on its thread. An exception is thrown again
  // here, when all have stopped.
  template <typename Body>
  void run(int64_t cells, Body&& body) {
    run_erased(cells, {[](void* context, int64_t begin, int64_t end, int worker) {
                         (*static_cast<std::remove_reference_t<Body>*>(context))(begin, end,
                                                                                 worker);
                       },
                       const_cast<void*>(static_cast<const void*>(&body))});
  }

 private:
  struct Task {
    void (*call)(void* context, int64_t begin, int64_t end, int worker) = nullptr;
    void* context = nullptr;
  };

  void run_erased(int64_t cells, Task task);
  void start(int threads);
  void stop();
  void work(int worker, uint32_t seen);
  void wait_for_next(uint32_t seen) const;
  bool enter();
  void leave();
  void run_chunks(int worker);
  void close_and_wait();

  // One run at a time, whoever asks.
  std::mutex run_mutex_;
  std::atomic<int> threads_ = 1;
  std::vector<std::thread> workers_;
  std::atomic<bool> stopping_ = false;

  // The run that is going on: written before round_ is raised.
  Task task_;
  int64_t cells_ = 0, chunk_ = 1;
  std::exception_ptr problem_;
  std::mutex problem_mutex_;

  alignas(64) std::atomic<uint32_t> round_ = 0;  // raised when there is work, or an end
  alignas(64) std::atomic<int64_t> next_cell_ = 0;
  alignas(64) std::atomic<uint32_t> gate_ = 0;  // kOpen, and how many workers are inside
};

// The one of this process.
ThreadPool& thread_pool();

}  // namespace anneal
