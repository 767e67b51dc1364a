// How much memory was asked for and how much crossed between the host and tensors, in all threads:
// for counters that show what a step does not do.
#pragma once

#include <atomic>
#include <cstdint>

namespace anneal {

struct Traffic {
  std::atomic<int64_t> allocated{0};       // bytes of memory for tensors and kernels
  std::atomic<int64_t> host_to_device{0};  // bytes written into tensors
  std::atomic<int64_t> device_to_host{0};  // bytes read from them
};

inline Traffic& traffic() {
  static Traffic all;
  return all;
}

}  // namespace anneal
