// Programs in files (tests/programs/gpu) on a GPU: what the driver makes of their WGSL computes
// what the program interpreter does.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "codegen/wgsl/wgsl.h"
#include "kernel/gpu/passes.h"
#include "program_file.h"
#include "program_interpreter.h"
#include "runtime/webgpu/gpu.h"

using namespace anneal;

namespace {

// The uniform that shaders are given: cells, then sizes as 64-bit words.
std::vector<uint32_t> uniform_of(const ProgramFile& file) {
  std::vector<uint32_t> words(4 * (1 + (file.sizes.size() + 1) / 2));
  words[0] = static_cast<uint32_t>(file.cells);
  for (size_t i = 0; i < file.sizes.size(); ++i)
    words[4 + 2 * i] = static_cast<uint32_t>(file.sizes[i]);
  return words;
}

std::vector<Value> ran_on(webgpu::Gpu& gpu, const ProgramFile& file, const Program& program) {
  const wgsl::Shader shader = wgsl::write_shader(program);
  webgpu::KernelSource source{.name = program.name, .wgsl = shader.text, .buffers = {}};
  const std::vector<uint32_t> words = uniform_of(file);
  source.uniform_bytes = static_cast<int64_t>(4 * words.size());
  std::vector<webgpu::Buffer> buffers;
  std::vector<webgpu::Binding> bindings;
  for (int number : shader.buffers) {
    source.buffers.push_back({webgpu::Access::ReadWrite, 0});
    const Storage storage = to_storage(file.values[static_cast<size_t>(number)]);
    const int64_t bytes = (static_cast<int64_t>(storage.size()) + 15) / 16 * 16;
    buffers.push_back(gpu.create_buffer(bytes));
    gpu.write(buffers.back(), 0, storage.read());
  }
  for (const webgpu::Buffer& buffer : buffers) bindings.push_back({&buffer, 0, buffer.bytes()});
  const webgpu::Buffer uniform = gpu.create_buffer(source.uniform_bytes);
  gpu.write(uniform, 0, std::as_bytes(std::span(words)));
  bindings.push_back({&uniform, 0, source.uniform_bytes});
  const webgpu::Pipeline pipeline = gpu.compile(source);
  const webgpu::BindGroup group = gpu.bind(pipeline, bindings);
  const webgpu::Dispatch dispatch{&pipeline, &group, {static_cast<uint32_t>(file.cells), 1, 1}};
  gpu.submit({&dispatch, 1});

  std::vector<Value> values = file.values;
  for (size_t i = 0; i < shader.buffers.size(); ++i) {
    Value& value = values[static_cast<size_t>(shader.buffers[i])];
    Bytes bytes(value.payload.size() * byte_size(value.dtype));
    gpu.read(buffers[i], 0, {bytes.data(), bytes.size()});
    value = to_value({value.dtype, value.shape, std::move(bytes)});
  }
  return values;
}

}  // namespace

TEST_CASE("webgpu programs: programs in files compute what the interpreter says") {
  const auto gpu = webgpu::Gpu::open();
  for (const std::filesystem::path& path : program_files("tests/programs/gpu")) {
    CAPTURE(path.filename().string());
    ProgramFile file = read_program_file(path);
    std::vector<Value> wanted = file.values;
    std::vector<Value*> pointers;
    for (Value& value : wanted) pointers.push_back(&value);
    run_program(file.program, pointers, file.sizes, file.cells);
    for (const char* left_out :
         {"", "widen-accesses", "dead-code", "index-width", "unsigned-division"}) {
      CAPTURE(left_out);
      const std::vector<Value> is =
          ran_on(*gpu, file, gpu_program(file.program, {.disabled = {left_out}}));
      for (size_t i = 0; i < is.size(); ++i)
        for (int64_t at = 0; at < is[i].size(); ++at) {
          const double a = is[i].at(at).as_double(), b = wanted[i].at(at).as_double();
          CHECK_MESSAGE(std::abs(a - b) <= 1e-6 * std::abs(b),
                        fmt::format("b{}[{}] is {}, wanted {}", i, at, a, b));
        }
    }
  }
}
