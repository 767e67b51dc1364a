// The GPUs of this machine as WebGPU shows them: what they are called, what they can do.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/webgpu/library.h"

namespace anneal::webgpu {

struct Limits {
  int storage_buffers = 0, uniform_buffers = 0;  // of one kernel
  int64_t storage_binding_bytes = 0, uniform_binding_bytes = 0;
  int storage_offset_alignment = 0, uniform_offset_alignment = 0;
  int64_t buffer_bytes = 0;
  int64_t workgroup_bytes = 0;
  int workgroup_invocations = 0;
  std::array<int, 3> workgroup_size{};
  int workgroups_per_dimension = 0;
};

enum class AdapterKind { Discrete, Integrated, Cpu, Unknown };
std::string_view name_of(AdapterKind kind);

struct AdapterInfo {
  std::string name, vendor, architecture;
  std::string driver;   // and its version, as it describes itself
  std::string backend;  // "Vulkan"
  AdapterKind kind = AdapterKind::Unknown;
  bool f16 = false, subgroups = false, timestamps = false;
  int subgroup_min = 0, subgroup_max = 0;  // 0: not known
  Limits limits;
  uint32_t vendor_id = 0, device_id = 0;
};

// Real GPUs first, CPUs that pretend to be one last. Empty where there is a library and nothing
// else; a UserError where there is no library.
std::vector<AdapterInfo> adapters();

// A connection to the library: where adapters are asked for and waited for.
class Connection {
 public:
  // Made on first use, of the library that is current; lives as long as the process.
  static Connection& get();

  const Library& library() const { return library_; }
  abi::Instance handle() const { return handle_; }

  // Until the callback has set `done`. `device` may be null before there is one.
  void wait(abi::Future future, const bool& done, abi::Device device = nullptr) const;
  // The same for what has no callback to speak of, of a library that is not polled.
  void wait(abi::Future future) const;
  // How callbacks shall come that wait() waits for.
  uint32_t callback_mode() const { return library_.polled ? abi::kSpontaneous : abi::kWaitAnyOnly; }

 private:
  explicit Connection(const Library& library);

  const Library& library_;
  abi::Instance handle_ = nullptr;
};

// An adapter of the library, released when this ends.
class Adapter {
 public:
  Adapter(const Library& library, abi::Adapter handle);
  ~Adapter();
  Adapter(Adapter&& other) noexcept;
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;
  Adapter& operator=(Adapter&&) = delete;

  abi::Adapter handle() const { return handle_; }
  const AdapterInfo& info() const { return info_; }

 private:
  const Library& library_;
  abi::Adapter handle_;
  AdapterInfo info_;
};

// In the order of adapters().
std::vector<Adapter> request_adapters(Connection& connection);
// By its place in adapters() ("1"), by a part of its name ("nvidia"), or the first (""): which of
// these that is. A UserError lists them where it is none.
size_t choose_among(std::span<const AdapterInfo> adapters, std::string_view selector);
Adapter choose_adapter(Connection& connection, std::string_view selector);

Limits limits_of(const abi::Limits& limits);
std::string text_of(abi::StringView text);
abi::StringView view_of(std::string_view text);

// Why there is no adapter and what to do, for errors and for people who ask.
std::string how_to_get_an_adapter();

}  // namespace anneal::webgpu
