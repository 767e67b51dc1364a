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
  // Units that multiply 16 x 16 of f16 by as many and add them up in f32, for subgroups that always
  // have 32 threads. Only of adapters that were asked for with them.
  bool matrices = false;
  int subgroup_min = 0, subgroup_max = 0;  // 0: not known
  Limits limits;
  uint32_t vendor_id = 0, device_id = 0;
};

// What adapters are asked for that not every run wants.
struct AdapterWishes {
  // Takes switches that Dawn calls unsafe, and with them features that nobody else is offered.
  bool matrices = false;
};

// Real GPUs first, CPUs that pretend to be one last. Empty where there is a library and nothing
// else; a UserError where there is no library.
std::vector<AdapterInfo> adapters();
// The same, with `matrices` as it is where they are wished for; all else as it is where not.
std::vector<AdapterInfo> adapters_and_matrices();

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
  Adapter(const Library& library, abi::Adapter handle, const AdapterWishes& wishes);
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
std::vector<Adapter> request_adapters(Connection& connection, const AdapterWishes& wishes = {});
// By its place in adapters() ("1"), by a part of its name ("nvidia"), the first (""), or one that
// computes on the CPU ("software"): which of these that is. A UserError lists them where it is
// none.
size_t choose_among(std::span<const AdapterInfo> adapters, std::string_view selector);
// One that does not have what is wished for is as if that had not been wished.
Adapter choose_adapter(Connection& connection, std::string_view selector,
                       const AdapterWishes& wishes = {});

// The switches that adapters and devices with `matrices` are asked for with.
std::span<const char* const> matrix_toggles();

Limits limits_of(const abi::Limits& limits);
std::string text_of(abi::StringView text);
abi::StringView view_of(std::string_view text);

// What is to be said of a software driver where there is no GPU; empty where none is installed.
std::string software_offer();
// Why there is no adapter and what to do, for errors and for people who ask.
std::string how_to_get_an_adapter();

}  // namespace anneal::webgpu
