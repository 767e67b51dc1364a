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

  // By what it is: its lanes are threads of workgroups, and a large one takes thousands of them to
  // be busy. A driver that computes on the CPU is a GPU, but no large one.
  bool is_gpu() const { return device_ && device_->target().hardware.execution == Execution::Simt; }
  bool is_large_gpu() const { return is_gpu() && capabilities().parallel_threads > kFewThreads; }

 private:
  static constexpr int64_t kFewThreads = 1024;

  std::string name_;
  std::unique_ptr<DeviceScope> scope_;
  Device* device_ = nullptr;
};

}  // namespace anneal::cli
