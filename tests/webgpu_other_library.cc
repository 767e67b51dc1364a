// Two libraries that stand for those this machine does not have: Dawn under another of the
// interfaces that webgpu.h has had. What they define comes before Dawn's own, which they are linked
// to. With OTHER_CURRENT it is webgpu.h since May 2025; without, it is wgpu-native of 2025, which
// cannot wait and makes no pipelines asynchronously.
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include <dlfcn.h>

#include "runtime/webgpu/abi.h"

using namespace anneal::webgpu;

namespace {

template <typename Function>
Function* dawn(const char* name) {
  static void* library = dlopen(DAWN_PATH, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

#ifdef OTHER_CURRENT

namespace {

// 9, 11 and 18 are 3, 10 and 17 to this Dawn.
uint32_t older(uint32_t feature) {
  const uint32_t now[] = {abi::kFeatures.timestamp_query, abi::kFeatures.shader_f16,
                          abi::kFeatures.subgroups};
  const uint32_t before[] = {abi::kFeatures2025.timestamp_query, abi::kFeatures2025.shader_f16,
                             abi::kFeatures2025.subgroups};
  for (size_t i = 0; i < std::size(now); ++i)
    if (now[i] == feature) return before[i];
  std::abort();
}

// Limits end before those of the stages.
constexpr size_t kLimitsBytes = offsetof(abi::Limits, of_stages);

uint32_t get_limits(const char* function, void* of, abi::Limits* limits) {
  abi::Limits all{};
  const uint32_t status = dawn<uint32_t(void*, abi::Limits*)>(function)(of, &all);
  std::memcpy(limits, &all, kLimitsBytes);
  return status;
}

}  // namespace

extern "C" {

void wgpuGetInstanceFeatures(void*) {}  // by which the interface is known

void* wgpuCreateInstance(const abi::InstanceDescriptor* descriptor) {
  abi::InstanceDescriptor2025 own{};
  for (size_t i = 0; i < descriptor->feature_count; ++i)
    if (descriptor->features[i] == abi::kTimedWaitAny) own.capabilities.timed_wait_any_enable = 1;
  if (descriptor->next || descriptor->limits) std::abort();
  return dawn<void*(const void*)>("wgpuCreateInstance")(&own);
}

uint32_t wgpuAdapterHasFeature(abi::Adapter adapter, uint32_t feature) {
  return dawn<uint32_t(abi::Adapter, uint32_t)>("wgpuAdapterHasFeature")(adapter, older(feature));
}

uint32_t wgpuAdapterGetLimits(abi::Adapter adapter, abi::Limits* limits) {
  return get_limits("wgpuAdapterGetLimits", adapter, limits);
}
uint32_t wgpuDeviceGetLimits(abi::Device device, abi::Limits* limits) {
  return get_limits("wgpuDeviceGetLimits", device, limits);
}

abi::Future wgpuAdapterRequestDevice(abi::Adapter adapter, const abi::DeviceDescriptor* descriptor,
                                     abi::CallbackInfo<abi::RequestDeviceCallback> callback) {
  abi::DeviceDescriptor own = *descriptor;
  std::vector<uint32_t> features;
  for (size_t i = 0; i < own.feature_count; ++i) features.push_back(older(own.features[i]));
  own.features = features.data();
  abi::Limits limits{};
  dawn<uint32_t(void*, abi::Limits*)>("wgpuAdapterGetLimits")(adapter, &limits);
  if (own.limits) {
    std::memcpy(&limits, own.limits, kLimitsBytes);
    own.limits = &limits;
  }
  return dawn<abi::Future(abi::Adapter, const abi::DeviceDescriptor*,
                          abi::CallbackInfo<abi::RequestDeviceCallback>)>(
      "wgpuAdapterRequestDevice")(adapter, &own, callback);
}

}  // extern "C"

#else

namespace {

abi::Instance& instance() {
  static abi::Instance instance = nullptr;
  return instance;
}

void tick() { dawn<void(abi::Instance)>("wgpuInstanceProcessEvents")(instance()); }

}  // namespace

extern "C" {

abi::Instance wgpuCreateInstance(const void* descriptor) {
  return instance() = dawn<abi::Instance(const void*)>("wgpuCreateInstance")(descriptor);
}

uint32_t wgpuInstanceWaitAny(abi::Instance, size_t, abi::FutureWaitInfo*, uint64_t) {
  std::abort();
}
abi::Future wgpuDeviceCreateComputePipelineAsync(abi::Device, const abi::ComputePipelineDescriptor*,
                                                 abi::CallbackInfo<abi::CreatePipelineCallback>) {
  std::abort();
}
abi::Future wgpuQueueOnSubmittedWorkDone(abi::Queue, abi::CallbackInfo<abi::WorkDoneCallback>) {
  std::abort();  // poll instead
}

// Waits until all that was submitted has ended, and calls back what is ready.
uint32_t wgpuDevicePoll(abi::Device device, uint32_t, const uint64_t*) {
  using Done = void (*)(uint32_t, abi::StringView, void*, void*);
  abi::Queue queue = dawn<abi::Queue(abi::Device)>("wgpuDeviceGetQueue")(device);
  bool done = false;
  dawn<abi::Future(abi::Queue, abi::CallbackInfo<Done>)>("wgpuQueueOnSubmittedWorkDone")(
      queue,
      {nullptr, abi::kProcessEvents,
       [](uint32_t, abi::StringView, void* first, void*) { *static_cast<bool*>(first) = true; },
       &done, nullptr});
  while (!done) tick();
  dawn<void(abi::Queue)>("wgpuQueueRelease")(queue);
  return 1;
}

abi::BindGroupLayout wgpuDeviceCreateBindGroupLayout(
    abi::Device device, const abi::BindGroupLayoutDescriptor* descriptor) {
  const auto* entries =
      static_cast<const abi::BindGroupLayoutEntryWithoutArrays*>(descriptor->entries);
  std::vector<abi::BindGroupLayoutEntry> own;
  for (size_t i = 0; i < descriptor->entry_count; ++i) {
    const auto& entry = entries[i];
    own.push_back({entry.next, entry.binding, entry.visibility, 0, entry.buffer, entry.others});
  }
  abi::BindGroupLayoutDescriptor with_arrays = *descriptor;
  with_arrays.entries = own.data();
  return dawn<abi::BindGroupLayout(abi::Device, const abi::BindGroupLayoutDescriptor*)>(
      "wgpuDeviceCreateBindGroupLayout")(device, &with_arrays);
}

abi::ComputePass wgpuCommandEncoderBeginComputePass(abi::CommandEncoder encoder,
                                                    const abi::ComputePassDescriptor* descriptor) {
  abi::ComputePassDescriptor own = *descriptor;
  abi::TimestampWrites writes{};
  if (own.timestamp_writes) {
    const auto& times = *static_cast<const abi::TimestampWritesWithoutChain*>(own.timestamp_writes);
    writes = {nullptr, times.query_set, times.begin_index, times.end_index};
    own.timestamp_writes = &writes;
  }
  return dawn<abi::ComputePass(abi::CommandEncoder, const abi::ComputePassDescriptor*)>(
      "wgpuCommandEncoderBeginComputePass")(encoder, &own);
}

}  // extern "C"

#endif
