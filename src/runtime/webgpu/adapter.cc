#include "runtime/webgpu/adapter.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <anneal/error.h>

#include "base/call_site.h"
#include "base/os/shared_library.h"
#include "runtime/webgpu/software_driver.h"

namespace anneal::webgpu {
namespace {

std::string_view backend_name(uint32_t backend) {
  switch (backend) {
    case abi::kD3D11: return "D3D11";
    case abi::kD3D12: return "D3D12";
    case abi::kMetal: return "Metal";
    case abi::kVulkan: return "Vulkan";
    case abi::kOpenGl: return "OpenGL";
    case abi::kOpenGles: return "OpenGL ES";
    case abi::kWebGpu: return "WebGPU";
    default: return "unknown";
  }
}

AdapterKind kind_of(uint32_t type) {
  switch (type) {
    case abi::kDiscreteGpu: return AdapterKind::Discrete;
    case abi::kIntegratedGpu: return AdapterKind::Integrated;
    case abi::kCpu: return AdapterKind::Cpu;
    default: return AdapterKind::Unknown;
  }
}

bool has_matrices(const Library& library, abi::Adapter adapter, const AdapterInfo& info) {
  constexpr int kThreads = 32;
  constexpr uint32_t kEdge = 16;
  if (!library.knows_matrices() || !info.f16 || !info.subgroups) return false;
  if (info.subgroup_min != kThreads || info.subgroup_max != kThreads) return false;
  if (!library.adapter_has_feature(adapter, abi::kMatrixFeature)) return false;
  abi::MatrixConfigs all{{nullptr, abi::kMatrixConfigs}, 0, nullptr};
  abi::AdapterInfo raw{};
  raw.next = &all.chain;
  if (library.adapter_info(adapter, &raw) != abi::kSuccess) return false;
  const bool found =
      std::ranges::any_of(std::span(all.configs, all.count), [](const abi::MatrixConfig& config) {
        return config.element == abi::kMatrixF16 && config.result == abi::kMatrixF32 &&
               config.rows == kEdge && config.columns == kEdge && config.depth == kEdge;
      });
  library.free_matrix_configs(all);
  library.free_adapter_info(raw);
  return found;
}

AdapterInfo describe(const Library& library, abi::Adapter adapter, const AdapterWishes& wishes) {
  abi::AdapterInfo raw{};
  library.adapter_info(adapter, &raw);
  AdapterInfo info;
  info.name = text_of(raw.device);
  info.vendor = text_of(raw.vendor);
  info.architecture = text_of(raw.architecture);
  info.driver = text_of(raw.description);
  if (info.name.empty()) info.name = info.driver;
  info.backend = backend_name(raw.backend_type);
  info.kind = kind_of(raw.adapter_type);
  info.subgroup_min = static_cast<int>(raw.subgroup_min_size);
  info.subgroup_max = static_cast<int>(raw.subgroup_max_size);
  info.vendor_id = raw.vendor_id;
  info.device_id = raw.device_id;
  library.free_adapter_info(raw);
  const abi::FeatureNumbers& feature = library.features();
  info.f16 = library.adapter_has_feature(adapter, feature.shader_f16) != 0;
  info.subgroups = library.adapter_has_feature(adapter, feature.subgroups) != 0;
  info.timestamps = library.adapter_has_feature(adapter, feature.timestamp_query) != 0;
  abi::Limits limits{};
  library.adapter_limits(adapter, &limits);
  info.limits = limits_of(limits);
  info.matrices = wishes.matrices && has_matrices(library, adapter, info);
  return info;
}

// Null where there is none. Dawn without a driver answers with its Null backend, which computes
// nothing.
abi::Adapter request(Connection& connection, uint32_t backend, uint32_t preference,
                     const AdapterWishes& wishes) {
  struct Answer {
    abi::Adapter adapter = nullptr;
    bool done = false;
  } answer;
  abi::RequestAdapterOptions options{};
  options.feature_level = abi::kCoreFeatureLevel;
  options.power_preference = preference;
  options.backend_type = backend;
  const Library& library = connection.library();
  const std::span<const char* const> enabled = matrix_toggles();
  abi::DawnToggles toggles{
      {nullptr, abi::kDawnToggles}, enabled.size(), enabled.data(), 0, nullptr};
  if (wishes.matrices && library.knows_matrices()) options.next = &toggles.chain;
  const abi::Future future = library.request_adapter(
      connection.handle(), &options,
      {nullptr, connection.callback_mode(),
       [](uint32_t status, abi::Adapter adapter, abi::StringView, void* first, void*) {
         auto& to = *static_cast<Answer*>(first);
         to.adapter = status == abi::kSuccess ? adapter : nullptr;
         to.done = true;
       },
       &answer, nullptr});
  connection.wait(future, answer.done);
  if (!answer.adapter) return nullptr;
  abi::AdapterInfo info{};
  library.adapter_info(answer.adapter, &info);
  const bool null = info.backend_type == abi::kNull;
  library.free_adapter_info(info);
  if (!null) return answer.adapter;
  library.release_adapter(answer.adapter);
  return nullptr;
}

bool same(const AdapterInfo& a, const AdapterInfo& b) {
  return a.name == b.name && a.backend == b.backend && a.vendor_id == b.vendor_id &&
         a.device_id == b.device_id;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

}  // namespace

std::string_view name_of(AdapterKind kind) {
  switch (kind) {
    case AdapterKind::Discrete: return "discrete GPU";
    case AdapterKind::Integrated: return "integrated GPU";
    case AdapterKind::Cpu: return "CPU";
    case AdapterKind::Unknown: break;
  }
  return "unknown kind";
}

std::string text_of(abi::StringView text) {
  if (!text.data) return "";
  return {text.data, text.length == abi::kZeroTerminated ? std::strlen(text.data) : text.length};
}

abi::StringView view_of(std::string_view text) { return {text.data(), text.size()}; }

Limits limits_of(const abi::Limits& raw) {
  auto number = [](uint64_t value) {
    return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
  };
  auto count = [](uint32_t value) {
    return static_cast<int>(std::min<uint32_t>(value, INT32_MAX));
  };
  Limits limits;
  limits.storage_buffers = count(raw.storage_buffers);
  limits.uniform_buffers = count(raw.uniform_buffers);
  limits.storage_binding_bytes = number(raw.storage_binding_bytes);
  limits.uniform_binding_bytes = number(raw.uniform_binding_bytes);
  limits.storage_offset_alignment = count(raw.storage_offset_alignment);
  limits.uniform_offset_alignment = count(raw.uniform_offset_alignment);
  limits.buffer_bytes = number(raw.buffer_bytes);
  limits.workgroup_bytes = raw.workgroup_bytes;
  limits.workgroup_invocations = count(raw.workgroup_invocations);
  limits.workgroup_size = {count(raw.workgroup_size_x), count(raw.workgroup_size_y),
                           count(raw.workgroup_size_z)};
  limits.workgroups_per_dimension = count(raw.workgroups_per_dimension);
  return limits;
}

// ---- connection

Connection::Connection(const Library& library) : library_(library) {
  if (library.of_2025) {
    abi::InstanceDescriptor2025 descriptor{};
    descriptor.capabilities.timed_wait_any_enable = library.polled ? 0 : 1;
    handle_ = library.create_instance(&descriptor);
  } else {
    const uint32_t feature = abi::kTimedWaitAny;
    abi::InstanceDescriptor descriptor{};
    descriptor.feature_count = library.polled ? 0 : 1;
    descriptor.features = &feature;
    handle_ = library.create_instance(&descriptor);
  }
  if (!handle_)
    fail(fmt::format("{} makes no WebGPU instance that can wait", library.path),
         how_to_get_a_library());
}

Connection& Connection::get() {
  static auto& mutex = *new std::mutex;
  static auto& known = *new std::map<const Library*, std::unique_ptr<Connection>>;
  const Library& library = Library::get();
  std::lock_guard lock(mutex);
  std::unique_ptr<Connection>& connection = known[&library];
  if (!connection) connection.reset(new Connection(library));
  return *connection;
}

void Connection::wait(abi::Future future, const bool& done, abi::Device device) const {
  if (!library_.polled) {
    wait(future);
    if (!done) throw InternalError("WebGPU ended a call without an answer");
  }
  while (!done) {
    if (device)
      library_.poll_device(device, 1, nullptr);
    else
      library_.process_events(handle_);
  }
}

void Connection::wait(abi::Future future) const {
  abi::FutureWaitInfo info{future, 0};
  const uint32_t status = library_.wait_any(handle_, 1, &info, UINT64_MAX);
  if (status != abi::kSuccess || !info.completed)
    throw InternalError(fmt::format("waiting for the GPU ended with status {}", status));
}

// ---- adapters

Adapter::Adapter(const Library& library, abi::Adapter handle, const AdapterWishes& wishes)
    : library_(library), handle_(handle), info_(describe(library, handle, wishes)) {}

Adapter::~Adapter() {
  if (handle_) library_.release_adapter(handle_);
}

Adapter::Adapter(Adapter&& other) noexcept
    : library_(other.library_),
      handle_(std::exchange(other.handle_, nullptr)),
      info_(std::move(other.info_)) {}

// WebGPU does not list adapters, it offers one for each wish; so each wish is tried.
std::vector<Adapter> request_adapters(Connection& connection, const AdapterWishes& wishes) {
  std::vector<Adapter> found;
  for (uint32_t backend : {abi::kVulkan, abi::kMetal, abi::kD3D12})
    for (uint32_t preference : {abi::kHighPerformance, abi::kLowPower}) {
      abi::Adapter handle = request(connection, backend, preference, wishes);
      if (!handle) continue;
      Adapter adapter(connection.library(), handle, wishes);
      if (std::ranges::none_of(
              found, [&](const Adapter& known) { return same(known.info(), adapter.info()); }))
        found.push_back(std::move(adapter));
    }
  std::vector<Adapter> sorted;
  for (AdapterKind kind :
       {AdapterKind::Discrete, AdapterKind::Integrated, AdapterKind::Unknown, AdapterKind::Cpu})
    for (Adapter& adapter : found)
      if (adapter.info().kind == kind) sorted.push_back(std::move(adapter));
  return sorted;
}

std::vector<AdapterInfo> adapters() {
  std::vector<AdapterInfo> infos;
  for (const Adapter& adapter : request_adapters(Connection::get()))
    infos.push_back(adapter.info());
  return infos;
}

std::vector<AdapterInfo> adapters_and_matrices() {
  std::vector<AdapterInfo> infos = adapters();
  for (const Adapter& wished : request_adapters(Connection::get(), {.matrices = true}))
    for (AdapterInfo& info : infos)
      if (same(info, wished.info())) info.matrices = wished.info().matrices;
  return infos;
}

size_t choose_among(std::span<const AdapterInfo> adapters, std::string_view selector) {
  if (selector == kSoftware) {
    const auto cpu = std::ranges::find(adapters, AdapterKind::Cpu, &AdapterInfo::kind);
    if (cpu != adapters.end()) return static_cast<size_t>(cpu - adapters.begin());
  }
  // More digits than a number of adapters has are a name that nobody has.
  const bool is_number =
      !selector.empty() && selector.size() < 6 &&
      std::ranges::all_of(selector, [](unsigned char c) { return std::isdigit(c) != 0; });
  const size_t number = is_number ? std::stoul(std::string(selector)) : 0;
  std::vector<std::string> names;
  for (size_t i = 0; i < adapters.size(); ++i) {
    const AdapterInfo& info = adapters[i];
    names.push_back(fmt::format("{} \"{}\" ({})", i, info.name, info.backend));
    if (is_number ? i == number
                  : lower(info.name + " " + info.vendor).find(lower(selector)) != std::string::npos)
      return i;
  }
  fail(fmt::format("there is no GPU \"{}\"", selector),
       fmt::format("choose one by its number or a part of its name: {}", fmt::join(names, ", ")));
}

Adapter choose_adapter(Connection& connection, std::string_view selector,
                       const AdapterWishes& wishes) {
  std::vector<Adapter> found = request_adapters(connection, wishes);
  if (found.empty())
    fail(fmt::format("WebGPU finds no GPU here (library {})", connection.library().path),
         how_to_get_an_adapter() + "; `anneal doctor` shows each part" + software_offer());
  std::vector<AdapterInfo> infos;
  for (const Adapter& adapter : found) infos.push_back(adapter.info());
  const size_t chosen = choose_among(infos, selector);
  if (wishes.matrices && !infos[chosen].matrices) return choose_adapter(connection, selector);
  return std::move(found[chosen]);
}

// NVIDIA's driver is not trusted with f16 otherwise.
std::span<const char* const> matrix_toggles() {
  static constexpr std::array kToggles{"allow_unsafe_apis", "vulkan_enable_f16_on_nvidia"};
  return kToggles;
}

std::string software_offer() {
  if (software_driver().empty()) return "";
  return "; or take --adapter software, a driver that is installed and computes on the CPU, slowly";
}

std::string how_to_get_an_adapter() {
#if defined(__linux__)
  if (!SharedLibrary("libvulkan.so.1").ok())
    return "install the Vulkan loader, libvulkan1 (Debian) or vulkan-loader (Fedora), and your "
           "GPU's "
           "Vulkan driver";
  return "install your GPU's Vulkan driver (mesa-vulkan-drivers, NVIDIA's), and see that its "
         "manifest "
         "is in /usr/share/vulkan/icd.d or named by VK_ICD_FILENAMES; without a display NVIDIA's "
         "must "
         "name libEGL_nvidia.so.0";
#else
  return "install your GPU's driver";
#endif
}

}  // namespace anneal::webgpu
