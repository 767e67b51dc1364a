#include "cli/chosen_device.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/failure.h"
#include "cli/library_messages.h"
#include "runtime/execute/executor.h"

namespace anneal::cli {

ChosenDevice::ChosenDevice(const std::string& name) : name_(name.empty() ? device_name() : name) {
  const std::vector<std::string> names = devices();
  if (std::ranges::find(names, name_) == names.end())
    fail_unknown("device", name_, std::vector<std::string_view>(names.begin(), names.end()));
  const MutedLibraries muted;
  scope_ = std::make_unique<DeviceScope>(name_);
  if (auto* executor = dynamic_cast<Executor*>(&current_evaluator())) device_ = &executor->device();
}

Device& ChosenDevice::kernel_device() const {
  if (!device_)
    throw UsageError(fmt::format("the device \"{}\" makes no kernels", name_),
                     "choose another one with --device");
  return *device_;
}

}  // namespace anneal::cli
