// The parts of webgpu.h's C interface that computing needs, as they lie in memory. Where the two
// generations in use differ, both forms are here; `Library` knows which one it has loaded.
// Nothing is linked: the functions are found at run time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anneal::webgpu::abi {

// ---- objects, numbers and text

struct AdapterObject;
struct BindGroupLayoutObject;
struct BindGroupObject;
struct BufferObject;
struct CommandBufferObject;
struct CommandEncoderObject;
struct ComputePassObject;
struct ComputePipelineObject;
struct DeviceObject;
struct InstanceObject;
struct PipelineLayoutObject;
struct QuerySetObject;
struct QueueObject;
struct ShaderModuleObject;

using Adapter = AdapterObject*;
using BindGroup = BindGroupObject*;
using BindGroupLayout = BindGroupLayoutObject*;
using Buffer = BufferObject*;
using CommandBuffer = CommandBufferObject*;
using CommandEncoder = CommandEncoderObject*;
using ComputePass = ComputePassObject*;
using ComputePipeline = ComputePipelineObject*;
using Device = DeviceObject*;
using Instance = InstanceObject*;
using PipelineLayout = PipelineLayoutObject*;
using QuerySet = QuerySetObject*;
using Queue = QueueObject*;
using ShaderModule = ShaderModuleObject*;

using Bool = uint32_t;

inline constexpr size_t kZeroTerminated = SIZE_MAX;  // the length of text that ends with a zero
inline constexpr uint32_t kSuccess = 1;              // of every status

struct StringView {
  const char* data;
  size_t length;
};

struct ChainedStruct {
  ChainedStruct* next;
  uint32_t kind;
};
inline constexpr uint32_t kShaderSourceWgsl = 2;
inline constexpr uint32_t kDawnToggles = 0x0005000A;
inline constexpr uint32_t kMatrixConfigs = 0x0005003B;

struct Future {
  uint64_t id;
};
struct FutureWaitInfo {
  Future future;
  Bool completed;
};

enum CallbackMode : uint32_t { kWaitAnyOnly = 1, kProcessEvents = 2, kSpontaneous = 3 };

template <typename Function>
struct CallbackInfo {
  ChainedStruct* next;
  uint32_t mode;
  Function callback;
  void* first;
  void* second;
};

// ---- instance and adapter

struct InstanceCapabilities {
  ChainedStruct* next;
  Bool timed_wait_any_enable;
  size_t timed_wait_any_max_count;
};
struct InstanceDescriptor2025 {
  ChainedStruct* next;
  InstanceCapabilities capabilities;
};

inline constexpr uint32_t kTimedWaitAny = 1;  // an instance's feature
struct InstanceDescriptor {
  ChainedStruct* next;
  size_t feature_count;
  const uint32_t* features;
  const void* limits;
};

enum BackendType : uint32_t {
  kNull = 1,
  kWebGpu = 2,
  kD3D11 = 3,
  kD3D12 = 4,
  kMetal = 5,
  kVulkan = 6,
  kOpenGl = 7,
  kOpenGles = 8
};
enum AdapterType : uint32_t { kDiscreteGpu = 1, kIntegratedGpu = 2, kCpu = 3 };
enum PowerPreference : uint32_t { kNoPreference = 0, kLowPower = 1, kHighPerformance = 2 };
inline constexpr uint32_t kCoreFeatureLevel = 2;

struct RequestAdapterOptions {
  ChainedStruct* next;
  uint32_t feature_level;
  uint32_t power_preference;
  Bool force_fallback_adapter;
  uint32_t backend_type;
  void* compatible_surface;
};

struct AdapterInfo {
  ChainedStruct* next;
  StringView vendor, architecture, device, description;
  uint32_t backend_type, adapter_type, vendor_id, device_id, subgroup_min_size, subgroup_max_size;
};

// What units for matrices multiply: rows x depth by depth x columns. Hung to an AdapterInfo, and
// only where the adapter has the feature: otherwise the whole question is refused.
enum MatrixElement : uint32_t { kMatrixF32 = 1, kMatrixF16 = 2 };
struct MatrixConfig {
  uint32_t element, result;
  uint32_t rows, columns, depth;
};
struct MatrixConfigs {
  ChainedStruct chain;
  size_t count;
  const MatrixConfig* configs;
};

// Those of 2025 end with four more than those that came later; there is room for all.
struct Limits {
  ChainedStruct* next;
  uint32_t texture_1d, texture_2d, texture_3d, texture_layers;
  uint32_t bind_groups, bind_groups_plus_vertex_buffers, bindings_per_bind_group;
  uint32_t dynamic_uniform_buffers, dynamic_storage_buffers;
  uint32_t sampled_textures, samplers;
  uint32_t storage_buffers, storage_textures, uniform_buffers;
  uint64_t uniform_binding_bytes, storage_binding_bytes;
  uint32_t uniform_offset_alignment, storage_offset_alignment;
  uint32_t vertex_buffers;
  uint64_t buffer_bytes;
  uint32_t vertex_attributes, vertex_stride, inter_stage_variables;
  uint32_t color_attachments, color_attachment_bytes;
  uint32_t workgroup_bytes, workgroup_invocations;
  uint32_t workgroup_size_x, workgroup_size_y, workgroup_size_z;
  uint32_t workgroups_per_dimension;
  uint32_t immediate_bytes;
  uint32_t of_stages[4];
};

// What features are called in each generation.
struct FeatureNumbers {
  uint32_t timestamp_query, shader_f16, subgroups;
};
inline constexpr FeatureNumbers kFeatures2025{3, 10, 17};
inline constexpr FeatureNumbers kFeatures{9, 11, 18};
// Dawn's own, of the later generation: "chromium-experimental-subgroup-matrix".
inline constexpr uint32_t kMatrixFeature = 0x00050034;

// ---- device

using RequestAdapterCallback = void (*)(uint32_t status, Adapter, StringView, void*, void*);
using RequestDeviceCallback = void (*)(uint32_t status, Device, StringView, void*, void*);
using BufferMapCallback = void (*)(uint32_t status, StringView, void*, void*);
using PopErrorScopeCallback = void (*)(uint32_t status, uint32_t type, StringView, void*, void*);
using CreatePipelineCallback = void (*)(uint32_t status, ComputePipeline, StringView, void*, void*);
using DeviceLostCallback = void (*)(const Device*, uint32_t reason, StringView, void*, void*);
using UncapturedErrorCallback = void (*)(const Device*, uint32_t type, StringView, void*, void*);
// Its parameters changed with time, also within the generations: none of them is to be looked at.
using WorkDoneCallback = void (*)();

struct UncapturedErrorCallbackInfo {
  ChainedStruct* next;
  UncapturedErrorCallback callback;
  void* first;
  void* second;
};

struct QueueDescriptor {
  ChainedStruct* next;
  StringView label;
};

struct DeviceDescriptor {
  ChainedStruct* next;
  StringView label;
  size_t feature_count;
  const uint32_t* features;
  const Limits* limits;
  QueueDescriptor default_queue;
  CallbackInfo<DeviceLostCallback> device_lost;
  UncapturedErrorCallbackInfo uncaptured_error;
};

// Switches that only Dawn knows.
struct DawnToggles {
  ChainedStruct chain;
  size_t enabled_count;
  const char* const* enabled;
  size_t disabled_count;
  const char* const* disabled;
};

enum LostReason : uint32_t { kLostUnknown = 1, kLostDestroyed = 2 };
enum ErrorFilter : uint32_t { kFilterValidation = 1, kFilterOutOfMemory = 2, kFilterInternal = 3 };
enum ErrorType : uint32_t { kNoError = 1, kValidationError = 2, kOutOfMemoryError = 3 };

// ---- buffers, shaders, pipelines

enum BufferUsage : uint64_t {
  kMapRead = 1,
  kMapWrite = 2,
  kCopySource = 4,
  kCopyTarget = 8,
  kUniform = 0x40,
  kStorage = 0x80,
  kQueryResolve = 0x200
};

struct BufferDescriptor {
  ChainedStruct* next;
  StringView label;
  uint64_t usage;
  uint64_t size;
  Bool mapped_at_creation;
};

struct ShaderSourceWgsl {
  ChainedStruct chain;
  StringView code;
};
struct ShaderModuleDescriptor {
  ChainedStruct* next;
  StringView label;
};

enum BufferBindingType : uint32_t {
  kUniformBinding = 2,
  kStorageBinding = 3,
  kReadOnlyBinding = 4
};
inline constexpr uint64_t kComputeStage = 4;

struct BufferBindingLayout {
  ChainedStruct* next;
  uint32_t type;
  Bool has_dynamic_offset;
  uint64_t min_binding_size;
};
// Of samplers and textures, which are not used.
struct OtherBindingLayouts {
  struct {
    ChainedStruct* next;
    uint32_t type;
  } sampler;
  struct {
    ChainedStruct* next;
    uint32_t sample_type, view_dimension;
    Bool multisampled;
  } texture;
  struct {
    ChainedStruct* next;
    uint32_t access, format, view_dimension;
  } storage_texture;
};
struct BindGroupLayoutEntry {
  ChainedStruct* next;
  uint32_t binding;
  uint64_t visibility;
  uint32_t binding_array_size;
  BufferBindingLayout buffer;
  OtherBindingLayouts others;
};
// wgpu-native's of 2025, before there were arrays of bindings.
struct BindGroupLayoutEntryWithoutArrays {
  ChainedStruct* next;
  uint32_t binding;
  uint64_t visibility;
  BufferBindingLayout buffer;
  OtherBindingLayouts others;
};
struct BindGroupLayoutDescriptor {
  ChainedStruct* next;
  StringView label;
  size_t entry_count;
  const void* entries;
};

struct PipelineLayoutDescriptor {
  ChainedStruct* next;
  StringView label;
  size_t layout_count;
  const BindGroupLayout* layouts;
  uint32_t immediate_size;
};

struct BindGroupEntry {
  ChainedStruct* next;
  uint32_t binding;
  Buffer buffer;
  uint64_t offset, size;
  void* sampler;
  void* texture_view;
};
struct BindGroupDescriptor {
  ChainedStruct* next;
  StringView label;
  BindGroupLayout layout;
  size_t entry_count;
  const BindGroupEntry* entries;
};

struct ComputeState {
  ChainedStruct* next;
  ShaderModule module;
  StringView entry_point;
  size_t constant_count;
  const void* constants;
};
struct ComputePipelineDescriptor {
  ChainedStruct* next;
  StringView label;
  PipelineLayout layout;
  ComputeState compute;
};

// ---- commands

struct LabelOnly {  // what encoders and command buffers are described by
  ChainedStruct* next;
  StringView label;
};

struct TimestampWrites {
  ChainedStruct* next;
  QuerySet query_set;
  uint32_t begin_index, end_index;
};
// wgpu-native's of 2025.
struct TimestampWritesWithoutChain {
  QuerySet query_set;
  uint32_t begin_index, end_index;
};
struct ComputePassDescriptor {
  ChainedStruct* next;
  StringView label;
  const void* timestamp_writes;
};
inline constexpr uint32_t kTimestampQueries = 2;
struct QuerySetDescriptor {
  ChainedStruct* next;
  StringView label;
  uint32_t type, count;
};

// These lie in memory as they do in C on every machine we know; a slip here would be found late.
static_assert(sizeof(void*) != 8 || (sizeof(Limits) == 168 && sizeof(DeviceDescriptor) == 144 &&
                                     sizeof(BindGroupLayoutEntry) == 120 &&
                                     sizeof(BindGroupLayoutEntryWithoutArrays) == 112 &&
                                     sizeof(AdapterInfo) == 96 && sizeof(BufferDescriptor) == 48 &&
                                     sizeof(MatrixConfig) == 20 && sizeof(MatrixConfigs) == 32));

}  // namespace anneal::webgpu::abi

// ---- functions: member of Library, name in the library without "wgpu", result, parameters.

// clang-format off
#define ANNEAL_WEBGPU_FUNCTIONS(X) \
  X(create_instance, CreateInstance, abi::Instance, (const void*)) \
  X(request_adapter, InstanceRequestAdapter, abi::Future, (abi::Instance, const abi::RequestAdapterOptions*, abi::CallbackInfo<abi::RequestAdapterCallback>)) \
  X(wait_any, InstanceWaitAny, uint32_t, (abi::Instance, size_t, abi::FutureWaitInfo*, uint64_t)) \
  X(process_events, InstanceProcessEvents, void, (abi::Instance)) \
  X(adapter_info, AdapterGetInfo, uint32_t, (abi::Adapter, abi::AdapterInfo*)) \
  X(free_adapter_info, AdapterInfoFreeMembers, void, (abi::AdapterInfo)) \
  X(adapter_limits, AdapterGetLimits, uint32_t, (abi::Adapter, abi::Limits*)) \
  X(adapter_has_feature, AdapterHasFeature, abi::Bool, (abi::Adapter, uint32_t)) \
  X(request_device, AdapterRequestDevice, abi::Future, (abi::Adapter, const abi::DeviceDescriptor*, abi::CallbackInfo<abi::RequestDeviceCallback>)) \
  X(release_adapter, AdapterRelease, void, (abi::Adapter)) \
  X(device_limits, DeviceGetLimits, uint32_t, (abi::Device, abi::Limits*)) \
  X(get_queue, DeviceGetQueue, abi::Queue, (abi::Device)) \
  X(push_error_scope, DevicePushErrorScope, void, (abi::Device, uint32_t)) \
  X(pop_error_scope, DevicePopErrorScope, abi::Future, (abi::Device, abi::CallbackInfo<abi::PopErrorScopeCallback>)) \
  X(destroy_device, DeviceDestroy, void, (abi::Device)) \
  X(release_device, DeviceRelease, void, (abi::Device)) \
  X(release_queue, QueueRelease, void, (abi::Queue)) \
  X(create_buffer, DeviceCreateBuffer, abi::Buffer, (abi::Device, const abi::BufferDescriptor*)) \
  X(map_buffer, BufferMapAsync, abi::Future, (abi::Buffer, uint64_t, size_t, size_t, abi::CallbackInfo<abi::BufferMapCallback>)) \
  X(mapped_range, BufferGetMappedRange, void*, (abi::Buffer, size_t, size_t)) \
  X(const_mapped_range, BufferGetConstMappedRange, const void*, (abi::Buffer, size_t, size_t)) \
  X(unmap_buffer, BufferUnmap, void, (abi::Buffer)) \
  X(destroy_buffer, BufferDestroy, void, (abi::Buffer)) \
  X(release_buffer, BufferRelease, void, (abi::Buffer)) \
  X(create_shader_module, DeviceCreateShaderModule, abi::ShaderModule, (abi::Device, const abi::ShaderModuleDescriptor*)) \
  X(release_shader_module, ShaderModuleRelease, void, (abi::ShaderModule)) \
  X(create_bind_group_layout, DeviceCreateBindGroupLayout, abi::BindGroupLayout, (abi::Device, const abi::BindGroupLayoutDescriptor*)) \
  X(release_bind_group_layout, BindGroupLayoutRelease, void, (abi::BindGroupLayout)) \
  X(create_pipeline_layout, DeviceCreatePipelineLayout, abi::PipelineLayout, (abi::Device, const abi::PipelineLayoutDescriptor*)) \
  X(release_pipeline_layout, PipelineLayoutRelease, void, (abi::PipelineLayout)) \
  X(create_pipeline, DeviceCreateComputePipeline, abi::ComputePipeline, (abi::Device, const abi::ComputePipelineDescriptor*)) \
  X(create_pipeline_async, DeviceCreateComputePipelineAsync, abi::Future, (abi::Device, const abi::ComputePipelineDescriptor*, abi::CallbackInfo<abi::CreatePipelineCallback>)) \
  X(release_pipeline, ComputePipelineRelease, void, (abi::ComputePipeline)) \
  X(create_bind_group, DeviceCreateBindGroup, abi::BindGroup, (abi::Device, const abi::BindGroupDescriptor*)) \
  X(release_bind_group, BindGroupRelease, void, (abi::BindGroup)) \
  X(create_query_set, DeviceCreateQuerySet, abi::QuerySet, (abi::Device, const abi::QuerySetDescriptor*)) \
  X(destroy_query_set, QuerySetDestroy, void, (abi::QuerySet)) \
  X(release_query_set, QuerySetRelease, void, (abi::QuerySet)) \
  X(create_command_encoder, DeviceCreateCommandEncoder, abi::CommandEncoder, (abi::Device, const abi::LabelOnly*)) \
  X(begin_compute_pass, CommandEncoderBeginComputePass, abi::ComputePass, (abi::CommandEncoder, const abi::ComputePassDescriptor*)) \
  X(copy_buffer, CommandEncoderCopyBufferToBuffer, void, (abi::CommandEncoder, abi::Buffer, uint64_t, abi::Buffer, uint64_t, uint64_t)) \
  X(resolve_queries, CommandEncoderResolveQuerySet, void, (abi::CommandEncoder, abi::QuerySet, uint32_t, uint32_t, abi::Buffer, uint64_t)) \
  X(finish, CommandEncoderFinish, abi::CommandBuffer, (abi::CommandEncoder, const abi::LabelOnly*)) \
  X(release_command_encoder, CommandEncoderRelease, void, (abi::CommandEncoder)) \
  X(release_command_buffer, CommandBufferRelease, void, (abi::CommandBuffer)) \
  X(set_pipeline, ComputePassEncoderSetPipeline, void, (abi::ComputePass, abi::ComputePipeline)) \
  X(set_bind_group, ComputePassEncoderSetBindGroup, void, (abi::ComputePass, uint32_t, abi::BindGroup, size_t, const uint32_t*)) \
  X(dispatch, ComputePassEncoderDispatchWorkgroups, void, (abi::ComputePass, uint32_t, uint32_t, uint32_t)) \
  X(end_compute_pass, ComputePassEncoderEnd, void, (abi::ComputePass)) \
  X(release_compute_pass, ComputePassEncoderRelease, void, (abi::ComputePass)) \
  X(submit, QueueSubmit, void, (abi::Queue, size_t, const abi::CommandBuffer*)) \
  X(write_buffer, QueueWriteBuffer, void, (abi::Queue, abi::Buffer, uint64_t, const void*, size_t)) \
  X(work_done, QueueOnSubmittedWorkDone, abi::Future, (abi::Queue, abi::CallbackInfo<abi::WorkDoneCallback>))

// What only one maker's library has: Dawn's way to lose a device and what it tells of units for
// matrices, wgpu-native's way to wait.
#define ANNEAL_WEBGPU_EXTRA_FUNCTIONS(X) \
  X(force_loss, DeviceForceLoss, void, (abi::Device, uint32_t, abi::StringView)) \
  X(free_matrix_configs, AdapterPropertiesSubgroupMatrixConfigsFreeMembers, void, (abi::MatrixConfigs)) \
  X(poll_device, DevicePoll, abi::Bool, (abi::Device, abi::Bool, const uint64_t*))
// clang-format on
