// What this library was built to make kernels for and to run them on: a row for each backend, which
// CMake's options choose. Nothing outside a backend names one; a library without any has the
// interpreter.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "codegen/target_kernels.h"

namespace anneal {

class Device;

// The threads of a device that computes on this processor's cores.
struct BackendThreads {
  void (*set)(int count);  // a UserError where that cannot be
  int (*count)();
};

struct Backend {
  std::string_view name;  // of its device
  std::unique_ptr<Device> (*make_device)();
  bool computes_f64 = true;  // if not, another one computes what is made once and needs it
  std::span<const std::string_view> settings = {};  // that the device reads when it is made
  std::span<const SourceForm> forms = {};           // that it adds to those of every library
  const BackendThreads* threads = nullptr;
};

// The first one is the device that programs run on unless told otherwise. Defined by a file that
// CMake writes (generated/backends.cc).
std::span<const Backend* const> backends();

}  // namespace anneal
