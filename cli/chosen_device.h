// The device that a command's --device names.
#pragma once

#include <memory>
#include <string>

#include <anneal/device.h>

#include "runtime/device/device.h"

namespace anneal::cli {

// The current device of this thread while it lives: the one of that name, or the one that programs
// run on anyway where the name is empty. A UserError lists the devices when there is none.
class ChosenDevice {
 public:
  explicit ChosenDevice(const std::string& name);

  const std::string& name() const { return name_; }
  Device* device() const { return device_; }  // null: it makes no kernels
  // A UserError where it makes no kernels.
  Device& kernel_device() const;
  const Capabilities& capabilities() const { return kernel_device().capabilities(); }

  // Memory of its own, and threads that are not the host's: what it is compared with must have
  // such, too.
  bool runs_beside_host() const { return device_ && !device_->shares_host_memory(); }
  // It takes more than a driver that computes on the CPU has.
  bool takes_thousands_of_threads() const {
    return device_ && capabilities().parallel_threads > kFewThreads;
  }

 private:
  static constexpr int64_t kFewThreads = 1024;

  std::string name_;
  std::unique_ptr<DeviceScope> scope_;
  Device* device_ = nullptr;
};

}  // namespace anneal::cli
