// What a GPU offers so that schedules can run on it (executable.h): code of kernels, launches bound
// to memory, commands that run them. Nothing here says by which interface a GPU is reached.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/gpu/argument_memory.h"
#include "kernel/gpu/gpu_kernel.h"
#include "runtime/device/device.h"

namespace anneal::gpu {

// Code of a kernel whose arguments are in such memory.
class Code {
 public:
  explicit Code(std::vector<int> buffers) : buffers_(std::move(buffers)) {}
  virtual ~Code() = default;
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  const std::vector<int>& buffers() const { return buffers_; }  // arguments it wants, in order

 private:
  std::vector<int> buffers_;
};

struct CodeRequest {
  const GpuKernel* kernel;
  std::string_view name;  // for people
  const ArgumentMemory* memory;
};

struct Argument {
  BufferRef place;  // without memory: it has no elements
  int64_t bytes = 0;
};

struct Launch {
  const Code* code = nullptr;            // null: there is nothing to do
  std::vector<Argument> arguments = {};  // of code->buffers()
  int64_t cells = 0;
  std::vector<int64_t> sizes = {};  // the kernel's symbolic sizes
};

// Launches with all that was prepared for them. The code they were made of lives longer.
class Bound {
 public:
  Bound() = default;
  virtual ~Bound() = default;
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;
};

// Some of them, to be submitted once.
class Commands {
 public:
  Commands() = default;
  virtual ~Commands() = default;
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;
};

class Backend {
 public:
  Backend() = default;
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  // All at the same time. A UserError for the first that does not compile.
  virtual std::vector<std::shared_ptr<const Code>> compile(
      std::span<const CodeRequest> requests) = 0;
  // What memory is to the GPU: where it is equal, what was bound before is still good.
  virtual const void* identity(BufferRef place) const = 0;
  virtual std::unique_ptr<Bound> bind(std::span<const Launch> launches) = 0;

  // The launches from begin on and before end, each of which sees what those before it wrote.
  virtual std::unique_ptr<Commands> encode(const Bound& bound, size_t begin, size_t end) = 0;
  virtual void submit(std::unique_ptr<Commands> commands) = 0;
  // The launches between each bound and the next: waits, and gives the seconds of each, by the
  // clock of the GPU. A UserError where it has none.
  virtual std::vector<double> submit_timed(const Bound& bound, std::span<const size_t> bounds) = 0;
};

}  // namespace anneal::gpu
