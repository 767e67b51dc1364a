// Targets are data: rows of facts that make sense, kernels that follow from them alone.
#include "target/target.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/anneal.h>

#include "cli_runner.h"
#include "codegen/target_kernels.h"
#include "runtime/webgpu/webgpu_device.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

#ifndef ANNEAL_SOURCE_DIR
#define ANNEAL_SOURCE_DIR "."
#endif

// What the device makes of an H200 that Dawn shows it.
webgpu::AdapterInfo h200() {
  webgpu::AdapterInfo info;
  info.kind = webgpu::AdapterKind::Discrete;
  info.f16 = info.subgroups = info.matrices = true;
  info.subgroup_min = info.subgroup_max = 32;
  info.limits.storage_buffers = 10;
  info.limits.storage_binding_bytes = (int64_t{4} << 30) - 1;
  info.limits.buffer_bytes = int64_t{1} << 40;
  info.limits.workgroup_bytes = 48 << 10;
  info.limits.workgroup_invocations = 1024;
  return info;
}

// The limits of WebGPU's standard, without optional features.
webgpu::AdapterInfo least() {
  webgpu::AdapterInfo info;
  info.kind = webgpu::AdapterKind::Integrated;
  info.limits.storage_buffers = 8;
  info.limits.storage_binding_bytes = 128 << 20;
  info.limits.buffer_bytes = 256 << 20;
  info.limits.workgroup_bytes = 16 << 10;
  info.limits.workgroup_invocations = 256;
  return info;
}

}  // namespace

TEST_CASE("target: named ones make sense") {
  std::set<std::string> names;
  for (const Target& target : named_targets()) {
    CAPTURE(target.name);
    const Hardware& hardware = target.hardware;
    CHECK(names.insert(target.name).second);
    CHECK(find_target(target.name) == &target);
    CHECK_FALSE(target.description.empty());
    CHECK(target.language != Language::None);
    CHECK(hardware.max_buffers >= 8);
    CHECK(hardware.max_binding_bytes <= hardware.max_buffer_bytes);
    CHECK(source_forms(target).size() > 2);
    const Capabilities capabilities = capabilities_of(target);
    if (hardware.execution == Execution::Simd) {
      CHECK(hardware.vector_bytes >= 16);
      CHECK(hardware.vector_registers >= capabilities.vector_registers);
      CHECK(hardware.l1_bytes < hardware.l2_bytes);
      CHECK(hardware.l2_bytes < hardware.l3_bytes);
      CHECK(capabilities.workgroup_threads == 0);
      CHECK_FALSE(target.triple.empty());
    } else {
      CHECK(hardware.workgroup_bytes >= 16 << 10);
      CHECK(hardware.max_workgroup_threads >= 256);
      CHECK(hardware.subgroup_min <= hardware.subgroup_max);
      CHECK(capabilities.most_workgroup_threads <= hardware.max_workgroup_threads);
      CHECK(capabilities.workgroup_bytes == hardware.workgroup_bytes);
      CHECK_FALSE(capabilities.f64);
    }
    for (const MatrixUnit& unit : hardware.matrix_units) {
      CHECK(unit.rows * unit.columns * unit.depth > 0);
      CHECK(unit.lanes == hardware.subgroup_max);
    }
  }
  for (const char* name : {"cpu-avx2", "cpu-avx512", "cpu-neon", "webgpu-minimum", "webgpu-h200",
                           "webgpu-apple-m", "webgpu-mobile"})
    CHECK(names.contains(name));
  CHECK(find_target("webgpu") == nullptr);
}

TEST_CASE("target: the page has a row for each") {
  std::ifstream file(ANNEAL_SOURCE_DIR "/docs/target.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const Target& target : named_targets())
    CHECK(contains(page, fmt::format("| `{}` | {} |\n", target.name, target.description)));
}

TEST_CASE("target: what a device makes of limits is the named target of such limits") {
  struct Row {
    const char* name;
    webgpu::AdapterInfo adapter;
  };
  for (const Row& row : {Row{"webgpu-h200", h200()}, Row{"webgpu-minimum", least()}})
    for (const MatmulPrecision precision : {MatmulPrecision::Full, MatmulPrecision::High}) {
      CAPTURE(row.name);
      const Wishes wishes{.precision = precision};
      Target made = target_of(row.adapter, {});
      // WebGPU tells neither. What kernels are expected to take follows from the speeds, no kernel.
      const Hardware& named = find_target(row.name)->hardware;
      CHECK(made.hardware.memory_bytes == 0);
      CHECK(made.hardware.memory_gb_per_second == 0);
      made.hardware.memory_bytes = named.memory_bytes;
      made.hardware.memory_gb_per_second = named.memory_gb_per_second;
      made.hardware.f32_gflop_per_second = named.f32_gflop_per_second;
      CHECK(capabilities_of(made, wishes) == capabilities_of(*find_target(row.name), wishes));
      CHECK(made.tuning == find_target(row.name)->tuning);
      CHECK(made.language == Language::Wgsl);
    }
}

TEST_CASE("target: matrix units are used where precision allows it") {
  const Target& target = *find_target("webgpu-h200");
  CHECK(capabilities_of(target).matrix_element_bytes == 0);
  const Wishes high{.precision = MatmulPrecision::High};
  CHECK(capabilities_of(target, high).matrix_element_bytes == 2);
  // Kernels are written for one kind of unit; others are facts that nothing uses so far.
  CHECK(capabilities_of(*find_target("webgpu-apple-m"), high).matrix_element_bytes == 0);
  Target small = target;
  small.hardware.workgroup_bytes = 16 << 10;
  CHECK(capabilities_of(small, high).matrix_element_bytes == 0);
}

TEST_CASE("target: what the scheduler splits and turns is the target's tuning") {
  auto schedule_of = [](const Target& target, const Tensor& tensor) {
    const Wishes wishes{.precision = MatmulPrecision::High};
    return schedule_for(simplify_program(std::vector<NodeRef>{tensor.node()}),
                        capabilities_of(target, wishes));
  };
  auto kernels = [&](const Target& target, const Tensor& tensor) {
    return schedule_of(target, tensor).kernels.size();
  };
  auto phases = [&](const Target& target, const Tensor& tensor) {
    const Schedule schedule = schedule_of(target, tensor);
    size_t count = 0;
    for (const Kernel& kernel : schedule.kernels) count += kernel.phases.size();
    return count;
  };
  const Tensor total = sum(input("x", {1 << 20}));
  Target cpu = *find_target("cpu-avx512"), gpu = *find_target("webgpu-h200");
  CHECK(phases(cpu, total) == 2);
  cpu.tuning.schedule.least_work = 1 << 21;
  CHECK(phases(cpu, total) == 1);

  CHECK(phases(gpu, total) == 2);
  gpu.tuning.schedule.terms_of_thread = 1 << 20;
  gpu.tuning.schedule.least_work = 1 << 21;
  CHECK(phases(gpu, total) == 1);

  // Values that are added in turn are a second phase of their own, a sum over them is none.
  const Tensor added =
      scatter_add(zeros({8, 4}), 0, input("place", {200, 4}, DType::I32), input("value", {200, 4}));
  gpu = *find_target("webgpu-h200");
  const size_t as_sums = phases(gpu, added);
  gpu.tuning.schedule.scatter_values = 200;
  CHECK(phases(gpu, added) != as_sums);

  // Of what goes to matrix units, the largest numbers are found before.
  const Tensor product = matmul(input("a", {1024, 1024}), input("b", {1024, 1024}));
  CHECK(kernels(gpu, product) == 2);
  gpu.tuning.schedule.least_matrix_terms = 2048;
  CHECK(kernels(gpu, product) == 1);
  gpu.tuning.schedule = {.least_matrix_side = 2048};
  CHECK(kernels(gpu, product) == 1);
}

TEST_CASE("target: the memory budget decides what is stored, and nothing else does") {
  const Target& target = *find_target("webgpu-h200");
  const Tensor q = input("q", {8, 4096, 64}), k = input("k", {8, 4096, 64}),
               v = input("v", {8, 4096, 64});
  const std::vector<NodeRef> roots =
      simplify_program(std::vector<NodeRef>{matmul(softmax(matmul(q, transpose(k))), v).node()});
  auto keeps_tiles = [&](int64_t budget) {
    const Schedule schedule =
        schedule_for(roots, capabilities_of(target, {.memory_bytes = budget}));
    return std::ranges::any_of(schedule.buffers, &ScheduleBuffer::tile);
  };
  constexpr int64_t kScores = int64_t{8} * 4096 * 4096 * 4;  // half a GiB
  CHECK_FALSE(keeps_tiles(0));
  CHECK_FALSE(keeps_tiles(3 * kScores));
  CHECK(keeps_tiles(kScores / 2));
  CHECK(capabilities_of(target).arena_bytes == target.hardware.memory_bytes);
  CHECK(capabilities_of(target, {.memory_bytes = 5}).arena_bytes == 5);
}

TEST_CASE("target: kernels of every named one can be shown in every form it has") {
  for (const Target& target : named_targets())
    for (const std::string_view form : source_forms(target)) {
      const std::string command = fmt::format(
          "kernels mlp --forward --kernel 0 --target {} --source {}", target.name, form);
      CAPTURE(command);
      const Run run = anneal_run(command);
      CHECK(run.code == 0);
      CHECK(contains(run.output, "// kernel 0, part 1 of"));
    }
  CHECK(
      contains(anneal_run("kernels mlp --forward --target cpu-neon --source asm").output, "fmla"));
  CHECK(contains(anneal_run("kernels mlp --forward --target cpu-avx2 --source asm").output, "ymm"));
}

TEST_CASE("target: no library of a GPU and no free memory is asked for, in any process") {
  const std::string command = program_path() +
                              " kernels attention --target webgpu-h200 --source "
                              "wgsl --matmul-precision high";
  const Run plain = shell(command);
  CHECK(plain.code == 0);
  CHECK(contains(plain.output, "@compute @workgroup_size("));
  const Run bare = shell(
      "ANNEAL_WEBGPU_LIB=/nonexistent/libwebgpu.so LD_LIBRARY_PATH= "
      "VK_ICD_FILENAMES=/nonexistent " +
      command);
  CHECK(bare.code == 0);
  CHECK(bare.output == plain.output);
#ifndef ANNEAL_SANITIZED  // sanitizers reserve more address space than that
  // However little there is.
  const Run tight = shell("ulimit -v 3000000; " + command);
  CHECK(tight.code == 0);
  CHECK(tight.output == plain.output);
#endif

  const Json listing = json_of("kernels attention --target webgpu-h200 --memory-budget 1M");
  CHECK(listing["target"] == "webgpu-h200");
  CHECK(listing["device"].is_null());
  CHECK(listing["memory_budget_bytes"] == 1 << 20);
}

TEST_CASE("target: mistakes are usage errors") {
  const Run unknown = with_errors("kernels mlp --target webgpu-h20");
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.output, "there is no target 'webgpu-h20'"));
  for (const Target& target : named_targets()) CHECK(contains(unknown.output, target.name));

  for (const char* other : {"--device cpu", "--adapter 0", "--time"}) {
    CAPTURE(other);
    CHECK(with_errors(fmt::format("kernels mlp --target cpu-avx2 {}", other)).code == 2);
  }
  const Run form = with_errors("kernels mlp --target webgpu-minimum --source asm");
  CHECK(form.code == 2);
  CHECK(contains(form.output, "kernels of target \"webgpu-minimum\" have no asm"));
  CHECK(contains(form.output, "add --target cpu-avx2"));

  CHECK(with_errors("kernels mlp --target webgpu-h200 --memory-budget much").code == 2);
  const Run budget = with_errors("kernels mlp --device cpu --memory-budget 1G");
  CHECK(budget.code == 2);
  CHECK(contains(budget.output, "--memory-budget 1G is for a GPU, and the device is \"cpu\""));
}
