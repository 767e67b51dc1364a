// Two libraries that stand for those this machine does not have: Dawn under another of the
// interfaces that webgpu.h has had. What they define comes before Dawn's own, which they are linked
// to. With OTHER_CURRENT it is webgpu.h since May 2025; without, it is wgpu-native of 2025, which
// cannot wait and makes no pipelines asynchronously.
#include "webgpu_other_library.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include <dlfcn.h>

#include "runtime/webgpu/abi.h"

using namespace anneal;
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

bool dawn_has_feature(abi::Adapter adapter, uint32_t feature) {
  return dawn<uint32_t(abi::Adapter, uint32_t)>("wgpuAdapterHasFeature")(adapter, older(feature)) !=
         0;
}

// ---- units for matrices, which no driver of the tests has

WhatWasAsked asked;
std::set<abi::Adapter> switched;  // adapters that were asked for with the switches

bool is_switch(std::string_view name) {
  return name == "allow_unsafe_apis" || name == "vulkan_enable_f16_on_nvidia";
}
bool has_switches(const abi::ChainedStruct* chain) {
  if (!chain) return false;
  if (chain->kind != abi::kDawnToggles || chain->next) std::abort();
  const auto& toggles = *reinterpret_cast<const abi::DawnToggles*>(chain);
  return std::count_if(toggles.enabled, toggles.enabled + toggles.enabled_count, is_switch) == 2;
}

struct Offer {
  abi::MatrixConfig config;
  uint32_t subgroup_min, subgroup_max;
};
// To everybody, or to those who ask for this adapter with the switches.
std::optional<Offer> offer() {
  const char* text = std::getenv(kOfferedMatrices);
  if (!text) return std::nullopt;
  Offer given{};
  abi::MatrixConfig& config = given.config;
  if (std::sscanf(text, "%u %u %u %u %u %u %u", &config.element, &config.result, &config.rows,
                  &config.columns, &config.depth, &given.subgroup_min, &given.subgroup_max) != 7)
    std::abort();
  return given;
}
std::optional<Offer> offer_of(abi::Adapter adapter) {
  return switched.contains(adapter) ? offer() : std::nullopt;
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

const WhatWasAsked* anneal_test_what_was_asked() { return &asked; }

abi::Future wgpuInstanceRequestAdapter(abi::Instance instance,
                                       const abi::RequestAdapterOptions* options,
                                       abi::CallbackInfo<abi::RequestAdapterCallback> callback) {
  struct Request {
    abi::CallbackInfo<abi::RequestAdapterCallback> callback;
    bool with_switches;
  };
  auto request = std::make_unique<Request>(Request{callback, has_switches(options->next)});
  if (options->next && !request->with_switches) std::abort();
  if (request->with_switches) ++asked.switched_adapters;
  abi::RequestAdapterOptions own = *options;
  own.next = nullptr;
  auto answer = [](uint32_t status, abi::Adapter adapter, abi::StringView text, void* first,
                   void*) {
    const std::unique_ptr<Request> to(static_cast<Request*>(first));
    switched.erase(adapter);  // an address may come back
    if (to->with_switches) switched.insert(adapter);
    to->callback.callback(status, adapter, text, to->callback.first, to->callback.second);
  };
  return dawn<abi::Future(abi::Instance, const abi::RequestAdapterOptions*,
                          abi::CallbackInfo<abi::RequestAdapterCallback>)>(
      "wgpuInstanceRequestAdapter")(
      instance, &own, {callback.next, callback.mode, answer, request.release(), nullptr});
}

// What is asked of an adapter without switches is what was always asked: else older() ends this.
uint32_t wgpuAdapterHasFeature(abi::Adapter adapter, uint32_t feature) {
  if (switched.contains(adapter) && feature == abi::kMatrixFeature) return offer() ? 1 : 0;
  if (offer() && feature == abi::kFeatures.shader_f16) return switched.contains(adapter) ? 1 : 0;
  if (offer_of(adapter) && feature == abi::kFeatures.subgroups) return 1;
  return dawn_has_feature(adapter, feature) ? 1 : 0;
}

uint32_t wgpuAdapterGetInfo(abi::Adapter adapter, abi::AdapterInfo* info) {
  const std::optional<Offer> offered = offer_of(adapter);
  abi::ChainedStruct* const chain = info->next;
  if (chain && (!offered || chain->kind != abi::kMatrixConfigs)) return 2;  // as Dawn: an error
  info->next = nullptr;
  const uint32_t status =
      dawn<uint32_t(abi::Adapter, abi::AdapterInfo*)>("wgpuAdapterGetInfo")(adapter, info);
  info->next = chain;
  if (offered) {
    info->subgroup_min_size = offered->subgroup_min;
    info->subgroup_max_size = offered->subgroup_max;
  }
  if (chain) {
    auto& configs = *reinterpret_cast<abi::MatrixConfigs*>(chain);
    constexpr abi::MatrixConfig kOfIntegers{4, 4, 16, 16, 16};  // others come first
    configs.configs = new abi::MatrixConfig[]{kOfIntegers, offered->config};
    configs.count = 2;
    ++asked.configs_kept;
  }
  return status;
}

void wgpuAdapterPropertiesSubgroupMatrixConfigsFreeMembers(abi::MatrixConfigs configs) {
  delete[] configs.configs;
  --asked.configs_kept;
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
  std::vector<uint32_t> features(own.features, own.features + own.feature_count);
  auto wants = [&](uint32_t feature) { return std::ranges::count(features, feature) > 0; };
  const bool with_switches = has_switches(own.next);
  const bool matrices = with_switches && offer_of(adapter) && wants(abi::kMatrixFeature) &&
                        wants(abi::kFeatures.shader_f16) && wants(abi::kFeatures.subgroups);
  if (with_switches) ++asked.switched_devices;
  if (matrices) ++asked.matrix_devices;
  // Of what Dawn does not have it hears nothing, unless it shall refuse.
  const bool refused = std::getenv(kRefusedMatrices) != nullptr;
  std::erase_if(features, [&](uint32_t feature) {
    if (feature == abi::kMatrixFeature) return matrices && !refused;
    return matrices && !dawn_has_feature(adapter, feature);
  });
  for (uint32_t& feature : features)
    if (feature != abi::kMatrixFeature) feature = older(feature);
  own.feature_count = features.size();
  own.features = features.data();
  abi::DawnToggles toggles = *reinterpret_cast<const abi::DawnToggles*>(own.next);
  std::vector<const char*> enabled(toggles.enabled, toggles.enabled + toggles.enabled_count);
  std::erase_if(enabled, is_switch);
  toggles.enabled_count = enabled.size();
  toggles.enabled = enabled.data();
  own.next = &toggles.chain;
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

abi::Future wgpuInstanceRequestAdapter(abi::Instance from,
                                       const abi::RequestAdapterOptions* options,
                                       abi::CallbackInfo<abi::RequestAdapterCallback> callback) {
  if (options->next) std::abort();  // it has none of Dawn's switches
  return dawn<abi::Future(abi::Instance, const abi::RequestAdapterOptions*,
                          abi::CallbackInfo<abi::RequestAdapterCallback>)>(
      "wgpuInstanceRequestAdapter")(from, options, callback);
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
