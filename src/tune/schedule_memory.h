// Memory for all buffers of a schedule, with made up numbers in them: to measure its kernels where
// there is no data. Must not run anything.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/device/device.h"

namespace anneal {

// The symbolic sizes of its buffers, which are those of its loops, too; and the largest of each.
std::vector<NodeRef> variables_of(const Schedule& schedule);
std::vector<int64_t> largest_sizes(std::span<const NodeRef> variables);

class ScheduleMemory {
 public:
  ScheduleMemory(const Schedule& schedule, Device& device);
  std::span<const BufferRef> places() const { return places_; }

 private:
  BufferRef allocate(int64_t bytes);

  Device& device_;
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
  std::vector<BufferRef> places_;
};

}  // namespace anneal
