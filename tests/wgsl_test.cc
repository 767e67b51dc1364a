// WGSL that compilers of GPUs are quick with: shaders that branch little and are not long. Whether
// they compute what they should is the business of device_cases_test.cc.
#include "codegen/wgsl/wgsl.h"

#include <algorithm>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "codegen/wgsl/library.h"
#include "kernel/gpu/passes.h"
#include "kernel/gpu/place_locals.h"
#include "lower_check.h"
#include "schedule/schedule.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

Capabilities gpu_capabilities() {
  Capabilities gpu;
  gpu.max_buffers = 8;
  gpu.workgroup_threads = 128;
  gpu.most_workgroup_threads = 256;
  gpu.parallel_threads = 65536;
  gpu.vector_bytes = 4 * gpu.workgroup_threads;
  gpu.vector_registers = 64;
  gpu.fast_memory_bytes = gpu.nearest_memory_bytes = gpu.tile_memory_bytes = 16 << 10;
  gpu.f64 = false;
  return gpu;
}

std::vector<Program> kernels_of(const Tensor& tensor,
                                const Capabilities& capabilities = gpu_capabilities()) {
  const std::vector<NodeRef> roots = simplify_program(std::vector<NodeRef>{tensor.node()});
  ScheduleOptions options;
  options.capabilities = capabilities;
  return programs_of(schedule_program(roots, options), capabilities);
}

wgsl::Shader shader(const Program& program, const GpuPassOptions& passes = {}) {
  return wgsl::write_shader(gpu_program(program, passes));
}

// In instructions.
size_t longest_kernel(const Tensor& tensor) {
  size_t longest = 0;
  for (const Program& program : kernels_of(tensor))
    longest = std::max(longest, program.code.size());
  return longest;
}

}  // namespace

// Each is written out wherever it is called, hundreds of times in a shader with sines of f16: a
// driver that takes the square of the branches then needed minutes.
TEST_CASE("wgsl: functions that are called often do not branch") {
  for (const char* name :
       {"floor_div_i32", "mod_i32", "f32_to_i32", "f32_to_u32", "shl_64", "shr_u64", "shr_i64",
        "lt_i64", "u64_to_f32", "i64_to_f32", "f32_to_i64", "widen_f16", "narrow_f16"}) {
    const std::string text = wgsl::library_text({name});
    for (const char* branch : {"if (", "&&", "||"})
      CHECK_MESSAGE(text.find(branch) == std::string::npos, name << ": " << text);
  }
}

// With a branch for each of 32 loads in a loop, of a convolution, a driver took all memory there
// is.
TEST_CASE("wgsl: loads under a condition do not branch") {
  const Tensor x = input("x", {512, 16});
  bool any = false;
  for (const Program& program : kernels_of(sum(pad(x, {{1, 1}, {1, 1}}), {0}) * 2)) {
    const std::string text = shader(program).text;
    for (size_t at = text.find("if ("); at != std::string::npos; at = text.find("if (", at + 1)) {
      const std::string line = text.substr(at, text.find('\n', at) - at);
      CHECK_MESSAGE(line.find(" = b1[") == std::string::npos, text);
    }
    any = any || text.find("= select(0u, ") != std::string::npos;
  }
  CHECK(any);
}

// A sine is hundreds of instructions, and threads have up to 64 elements each.
TEST_CASE("wgsl: long code is not repeated for each element of a thread") {
  const Tensor a = input("a", {512, 512}), b = input("b", {512, 512});
  const size_t sine = longest_kernel(sin(a)), most = 10000;
  CHECK(sine > 200);
  CHECK(longest_kernel(matmul(a, b)) < 2000);
  CHECK(longest_kernel(sin(matmul(a, b))) < most);
  CHECK(longest_kernel(sum(sin(unsqueeze(a, 0) * unsqueeze(b, 1)), {2})) < most);
  CHECK(longest_kernel(sum(sin(a + transpose(b)), {1})) < 4 * sine);
}

// What drivers made fast products of, and slow ones without: vectors from memory, blocks without a
// loop inside, and nothing on its way while threads wait for each other.
TEST_CASE("wgsl: a product reads vectors, in one loop, ahead of what it adds") {
  const Tensor a = input("a", {1024, 512}), b = input("b", {512, 1024});
  const Tensor turned = input("turned", {1024, 512});
  for (const Tensor& product : {matmul(a, b), matmul(a, transpose(turned))}) {
    const std::vector<Program> programs = kernels_of(product);
    const std::string text = shader(programs[0]).text;
    for (const char* buffer : {"b0", "b1", "b2", "local0", "local1"})
      CHECK_MESSAGE(text.find(std::string(buffer) + ": array<vec4<f32>") != std::string::npos,
                    text);
    const size_t loop = text.find("for (");
    REQUIRE(loop != std::string::npos);
    CHECK_MESSAGE(text.find("for (", loop + 1) == std::string::npos, text);
    const size_t written = text.find("workgroupBarrier", text.find("workgroupBarrier", loop) + 1);
    CHECK(text.find(" = b1[", loop) > written);
    CHECK(text.find(" = b2[", loop) > written);
  }
}

// Memory that is stored to could be what is loaded, for all that a driver knows: it would wait for
// each load in turn.
TEST_CASE("wgsl: what sums become is loaded before any of it is stored") {
  const Tensor a = input("a", {4096, 512}), b = input("b", {512, 4096}),
               c = input("c", {4096, 4096});
  const std::string text = shader(kernels_of(matmul(a, b) * c)[0]).text;
  size_t loads = 0;
  const size_t store = text.find("  b0[");
  REQUIRE(store != std::string::npos);
  const std::string load = text.substr(text.rfind(" = b"), 6);  // of c, which is needed last
  for (size_t at = text.find(load); at < store; at = text.find(load, at + 1)) ++loads;
  CHECK_MESSAGE(loads == 8, text);  // vectors of four
}

// Short rows need no more threads than run together, which have no need to wait for each other.
TEST_CASE("wgsl: short rows are reduced within a subgroup") {
  auto rows_shader = [](const Tensor& x) {
    return shader(kernels_of(softmax(x))[0], {.subgroup = 32}).text;
  };
  const std::string rows = rows_shader(input("x", {4096, 256}));
  CHECK_MESSAGE(rows.find("@workgroup_size(32)") != std::string::npos, rows);
  CHECK_MESSAGE(rows.find("workgroupBarrier") == std::string::npos, rows);
  CHECK_MESSAGE(rows.find("b1: array<vec4<f32>>") != std::string::npos, rows);
  for (const Tensor& x : {input("x", {4096, 4096}), input("x", {16, 256})}) {
    const std::string others = rows_shader(x);
    CHECK_MESSAGE(others.find("@workgroup_size(128)") != std::string::npos, others);
    CHECK_MESSAGE(others.find("workgroupBarrier") != std::string::npos, others);
  }
}

TEST_CASE("wgsl: matrices are the adapter's, or emulated") {
  Capabilities units = gpu_capabilities();
  units.fast_memory_bytes = 48 << 10;
  units.matrix_element_bytes = 2;
  const Tensor a = input("a", {1024, 512}), turned = input("turned", {512, 1024});
  const std::vector<Program> programs = kernels_of(matmul(a, turned), units);
  const Program& product = *std::ranges::find_if(programs, [](const Program& program) {
    return std::ranges::count(program.code, Code::MatrixMultiplyAdd, &Instruction::code) > 0;
  });
  const std::string text = shader(product, {.matrix_units = true}).text;
  CHECK(text.starts_with("enable f16;\n"));
  for (const char* part :
       {"local0: array<f16, ", "subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>",
        "subgroup_matrix_right<f16, 16, 16>", "subgroupMatrixMultiplyAccumulate(",
        "subgroupMatrixStore<row_major>(&local2"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  // Both halves of two numbers at a time; what is widened again is not what drivers take it for.
  const size_t pair = text.find("pack2x16float(vec2<f32>(v");
  REQUIRE(pair != std::string::npos);
  CHECK_MESSAGE(text.substr(pair, 60).find(")) ^ given[0].y;") != std::string::npos,
                text.substr(pair, 60));
  CHECK(text.find(", 0.0f)") == std::string::npos);

  const std::string emulated = shader(product).text;
  CHECK_MESSAGE(emulated.find("fn multiply_0_1(") != std::string::npos, emulated);
  for (const char* part : {"enable ", "subgroup", "f16,"})
    CHECK_MESSAGE(emulated.find(part) == std::string::npos, emulated);
  const int64_t difference = gpu_local_bytes(gpu_program(product)).of_group -
                             gpu_local_bytes(gpu_program(product, {.matrix_units = true})).of_group;
  CHECK(difference == 2 * (product.locals[0].elements + product.locals[1].elements));
}

TEST_CASE("wgsl: what is named is used") {
  for (const Program& program :
       kernels_of(matmul(input("a", {512, 512}), input("b", {512, 512})))) {
    const std::string text = shader(program).text;
    size_t names = 0;
    for (size_t at = text.find("let v"); at != std::string::npos; at = text.find("let v", at + 1)) {
      const std::string name = text.substr(at + 4, text.find(' ', at + 4) - at - 4);
      const size_t use = text.find(name, at + 4 + name.size());
      CHECK_MESSAGE(use != std::string::npos, name);
      ++names;
    }
    CHECK(names > 20);
  }
}

TEST_CASE("wgsl: sums of bf16 in pieces add products as they are") {
  const Tensor a = input("a", {256, 4096}, DType::BF16), b = input("b", {4096, 256}, DType::BF16);
  const std::vector<Program> programs = kernels_of(matmul(a, b));
  REQUIRE(programs.size() == 2);
  CHECK(shader(programs[0]).text.find("narrow_bf16") == std::string::npos);
  const std::string last = shader(programs[1]).text;
  CHECK(last.find("narrow_bf16") != std::string::npos);
  CHECK(last.find("atomic") == std::string::npos);  // whole words
}
