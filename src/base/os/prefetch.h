// Batches made ahead by a thread of their own, in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace anneal {

template <typename Batch>
class Prefetch {
 public:
  // make(first), make(first + 1), .. up to make(end - 1), at most `ahead` of them waiting. Only the
  // thread calls it.
  Prefetch(std::function<Batch(int64_t)> make, int64_t first, int64_t end, size_t ahead = 4)
      : ahead_(ahead),
        thread_([this, make = std::move(make), first, end] { run(make, first, end); }) {}
  ~Prefetch() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // Waits for it. What `make` threw comes out here. Not more often than there are batches.
  Batch next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty() || failure_; });
    if (ready_.empty()) std::rethrow_exception(failure_);
    Batch batch = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return batch;
  }

 private:
  void run(const std::function<Batch(int64_t)>& make, int64_t first, int64_t end) {
    try {
      for (int64_t i = first; i < end; ++i) {
        Batch batch = make(i);
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return ready_.size() < ahead_ || stopped_; });
        if (stopped_) return;
        ready_.push_back(std::move(batch));
        lock.unlock();
        changed_.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      changed_.notify_all();
    }
  }

  size_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::exception_ptr failure_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace anneal
