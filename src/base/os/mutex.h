// A lock between threads; where a process has only one there is nothing to lock. What is used
// outside the backends takes this one, so that it builds on platforms without threads.
#pragma once

#ifdef __STDCPP_THREADS__
#include <mutex>
#endif

namespace anneal {

#ifdef __STDCPP_THREADS__

using Mutex = std::mutex;
using Lock = std::lock_guard<Mutex>;

#else

class Mutex {};

class [[nodiscard]] Lock {
 public:
  explicit Lock(Mutex&) {}
  ~Lock() {}  // NOLINT(modernize-use-equals-default): else a Lock would be an unused variable
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

#endif

}  // namespace anneal
