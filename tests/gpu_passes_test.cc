// Passes over low-level programs for GPUs: what each makes of programs as text, and that what comes
// out of all of them computes the same without races, kernels kept in tests/programs/gpu included.
#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/anneal.h>

#include "codegen/target_kernels.h"
#include "kernel/gpu/dead_code.h"
#include "kernel/gpu/gpu_kernel.h"
#include "kernel/gpu/insert_barriers.h"
#include "kernel/gpu/passes.h"
#include "kernel/gpu/place_locals.h"
#include "kernel/gpu/widen_accesses.h"
#include "kernel/program/program_content.h"
#include "lower_check.h"
#include "program_checks.h"
#include "program_file.h"
#include "symbolic/bounds.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

// Every element of a buffer by another thread than the one that stored it.
constexpr std::string_view kTurned = R"(program turned
  buffer b0 f32
  buffer b1 f32 written
  local b2 f32[4]
  %0 = index 0
  %1 = index 3
  %2 = index -1
  %3 = f32x4 load b0[%0]
  store f32x4 b2[%0] = %3
  %5 = indexx4 ramp %1 by %2
  %6 = f32x4 load b2[%5]
  store f32x4 b1[%0] = %6
)";

// As lowered, and after all passes but one that may be left out, or none: the same bits, no race.
void check_all_passes(const Program& lowered, const std::vector<Value>& values, int64_t cells,
                      std::span<const int64_t> sizes) {
  CHECK(verify(lowered) == "");
  const std::vector<Value> wanted = ran(lowered, values, cells, sizes);
  std::vector<std::string> left_out{""};
  for (const auto& pass : gpu_passes().passes)
    if (!pass.required) left_out.emplace_back(pass.name);
  for (const std::string& name : left_out) {
    CAPTURE(name);
    const Program program = gpu_program(lowered, {.disabled = {name}});
    CAPTURE(to_text(program));
    REQUIRE(verify(program) == "");
    CHECK(content(parsed(to_text(program))) == content(program));
    std::vector<Value> is;
    REQUIRE_NOTHROW(is = ran(program, values, cells, sizes));
    for (size_t i = 0; i < wanted.size(); ++i) CHECK(is[i].payload == wanted[i].payload);
  }
}

}  // namespace

TEST_CASE("gpu passes: every lane is a thread") {
  CHECK(after(lanes_to_threads, kTurned).find("\nthreads 4\n") != std::string::npos);
  CHECK(after(lanes_to_threads, "program p\n%0 = cell\n").find("\nthreads 1\n") !=
        std::string::npos);
  Program program = parsed("program p\n%0 = f32x4 1.0\n%1 = f32x8 1.0\n");
  CHECK_THROWS_AS(lanes_to_threads(program), InternalError);
}

TEST_CASE("gpu passes: a barrier stands between a store and another thread's load") {
  const std::string turned = std::string(kTurned.substr(0, kTurned.find("  %0"))) +
                             "  threads 4\n" + std::string(kTurned.substr(kTurned.find("  %0")));
  const std::string text = after(insert_barriers, turned);
  CHECK_MESSAGE(
      text.find("store f32x4 b2[%0] = %3\n  barrier shared\n  %6 = index") != std::string::npos,
      text);
  CHECK(after(insert_barriers, text) == text);  // one is enough

  std::mt19937_64 random(3);
  const std::vector<Value> values{random_value(DType::F32, 4, random),
                                  random_value(DType::F32, 4, random)};
  CHECK_THROWS_WITH_AS(ran(parsed(turned), values, 1),
                       "internal error: threads race for b2[3]: 3 and 0", InternalError);
  const std::vector<Value> turned_values = ran(parsed(text), values, 1);
  for (int64_t i = 0; i < 4; ++i) CHECK(turned_values[1].at(i) == values[0].at(3 - i));
}

TEST_CASE("gpu passes: threads that keep to their own elements do not wait") {
  const std::string text = after(insert_barriers, R"(program own
  buffer b0 f32 written
  local b1 f32[8]
  threads 4
  %0 = index 4
  %1 = f32x4 load b0[%0]
  store f32x4 b1[%0] = %1
  %3 = f32x4 load b1[%0]
  store f32x4 b0[%0] = %3
)");
  CHECK_MESSAGE(text.find("barrier") == std::string::npos, text);
}

TEST_CASE("gpu passes: what one round of a loop reads, the next does not store too soon") {
  const std::string text = after(insert_barriers, R"(program rounds
  buffer b0 f32
  buffer b1 f32 written
  local b2 f32[4]
  threads 4
  %0 = index 0
  %1 = index 8
  %2 = index 4
  %3 = index 3
  %4 = index -1
  %5 = indexx4 ramp %3 by %4
  loop %6 = %0 below %1 by %2
    %7 = f32x4 load b0[%6]
    store f32x4 b2[%0] = %7
    %9 = f32x4 load b2[%5]
    store f32x4 b1[%6] = %9
  end
)");
  CHECK_MESSAGE(text.find("by %2\n    barrier shared\n    %8 = f32x4 load b0[%6]\n    store f32x4 "
                          "b2[%0] = %8\n    barrier shared\n") != std::string::npos,
                text);
  std::mt19937_64 random(4);
  CHECK_NOTHROW(ran(parsed(text),
                    {random_value(DType::F32, 8, random), random_value(DType::F32, 8, random)}, 1));
}

TEST_CASE("gpu passes: a barrier for buffers, and for no other memory") {
  const std::string text = after(insert_barriers, R"(program through_memory
  buffer b0 f32 written
  threads 4
  %0 = index 0
  %1 = index 1
  %2 = index 3
  %3 = f32x4 1.0
  store f32x4 b0[%0] = %3
  %5 = f32 load b0[%2]
  store f32 b0[%1] = %5
)");
  CHECK_MESSAGE(text.find("  store f32x4 b0[%0] = %3\n  barrier buffers\n  %6 = f32 load b0[%2]\n"
                          "  barrier buffers\n  store f32 b0[%1] = %6\n") != std::string::npos,
                text);
}

TEST_CASE("gpu passes: large buffers of threads' own elements are private") {
  auto placed = [](int64_t elements) {
    return after(place_locals, fmt::format(R"(program own
  buffer b0 f32 written
  local b1 f32[{0}]
  local b2 f32[{0}]
  threads 4
  %0 = index 8
  %1 = index 3
  %2 = f32x4 1.0
  store f32x4 b1[%0] = %2
  store f32x4 b2[%1] = %2
)",
                                           elements));
  };
  CHECK(placed(1 << 10).find("private") == std::string::npos);  // shared memory is nearer
  const std::string text = placed(1 << 14);
  CHECK(text.find("local b1 f32[16384] private\n") != std::string::npos);
  CHECK(text.find("local b2 f32[16384]\n") != std::string::npos);
  const Program program = parsed(text);
  CHECK(gpu_local_bytes(program).of_thread == 4 << 12);
  CHECK(gpu_local_bytes(program).of_group == 4 << 14);
}

TEST_CASE("gpu passes: private memory is the own of each thread, and verified to be") {
  const std::string_view text = R"(program wrong
  local b0 f32[8] private
  threads 4
  %0 = index 2
  %1 = f32x4 1.0
  store f32x4 b0[%0] = %1
)";
  CHECK(verify(parsed(text)) == "instruction 2: private b0 at what may be another thread's");
  CHECK_THROWS_WITH_AS(ran(parsed(text), {}, 1), "internal error: thread 0 touches private b0[2]",
                       InternalError);
  CHECK(verify(parsed("program p\nlocal b0 f32[6] private\nthreads 4\n")) ==
        "a private buffer that threads cannot share out");
  CHECK(verify(parsed("program p\nbarrier shared\n")) ==
        "instruction 0: a barrier where lanes are no threads");
  CHECK(verify(parsed("program p\nthreads 4\nbarrier\n")) ==
        "instruction 0: a barrier for no memory");
  CHECK(verify(parsed("program p\nthreads 4\n%0 = f32x8 1.0\n")) ==
        "instruction 0: 8 lanes of 4 threads");
  CHECK(verify(parsed("program p\nindex_bits 31\n")) == "indices of 31 bits");
}

// Four neighbours of each thread, from `first` on, of buffer 0 to buffer 1.
std::string neighbours(int first, int step, std::string_view condition = "") {
  return fmt::format(R"(program neighbours
buffer b0 f32
buffer b1 bf16 written
threads 8
  %0 = index {0}
  %1 = index {1}
  %2 = index 1
  %3 = index 2
  %4 = index 3
  %5 = index {3}
  %6 = index {4}
  %7 = index {5}
  %8 = indexx8 ramp %0 by %1
  %9 = indexx8 ramp %5 by %1
  %10 = indexx8 ramp %6 by %1
  %11 = indexx8 ramp %7 by %1
  %12 = boolx8 true
  %13 = f32x8 load b0[%8]{2}
  %14 = f32x8 load b0[%9]{2}
  %15 = f32x8 load b0[%10]{2}
  %16 = f32x8 load b0[%11]{2}
  %17 = bf16x8 cast %13
  %18 = bf16x8 cast %14
  %19 = bf16x8 cast %15
  %20 = bf16x8 cast %16
  store bf16x8 b1[%8] = %17
  store bf16x8 b1[%9] = %18
  store bf16x8 b1[%10] = %19
  store bf16x8 b1[%11] = %20
)",
                     first, step, condition, first + 1, first + 2, first + 3);
}

void widen(Program& program) { widen_accesses(program, {}); }

TEST_CASE("gpu passes: four neighbours are one access, and their places dead code") {
  Program program = parsed(neighbours(8, 4, " if %12"));
  widen_accesses(program, {});
  CHECK(verify(program) == "");
  drop_dead_code(program);
  CHECK(to_text(program) == R"(program neighbours
buffer b0 f32 wide 4
buffer b1 bf16 written wide 4
threads 8
  %0 = index 4
  %1 = boolx8 true
  %2 = index 0
  %3 = indexx8 ramp %2 by %0
  %4 = f32x8 load wide 4 b0[%3 + 8] if %1
  %5 = f32x8 element 0 %4
  %6 = f32x8 element 1 %4
  %7 = f32x8 element 2 %4
  %8 = f32x8 element 3 %4
  %9 = bf16x8 cast %5
  %10 = bf16x8 cast %6
  %11 = bf16x8 cast %7
  %12 = bf16x8 cast %8
  %13 = bf16x8 pack %9 %10 %11 %12
  store bf16x8 wide 4 b1[%3 + 8] = %13
)");
  for (const auto& [first, step] : {std::pair{6, 4}, {8, 6}, {8, 1}}) {
    const std::string text = neighbours(first, step);
    CAPTURE(text);
    CHECK(after(widen, text) == text);
  }
}

TEST_CASE("gpu passes: buffers that are the same memory are vectors, all or none") {
  const std::string text = neighbours(8, 4) + "  %25 = f32x8 load b0[%9]\n";
  auto widths = [&](const ArgumentMemory& memory, std::string_view more) {
    Program program = parsed(text + std::string(more));
    program.buffers[0].written = true;
    widen_accesses(program, memory);
    return std::pair{program.buffers[0].width, program.buffers[1].width};
  };
  CHECK(widths({}, "") == std::pair{4, 4});  // parts may be loaded
  CHECK(widths({}, "  store f32x8 b0[%9] = %13\n") == std::pair{1, 4});
  CHECK(widths({.same_as = {-1, 0}}, "  store f32x8 b0[%9] = %13\n") == std::pair{1, 1});
  CHECK(widths({.same_as = {-1, 0}}, "") == std::pair{4, 4});
}

TEST_CASE("gpu passes: accesses that others come between stay as they are") {
  std::string text = neighbours(8, 4);
  const size_t at = text.find("  store bf16x8 b1[%9]");
  const std::string barrier = text.substr(0, at) + "  barrier buffers\n" + text.substr(at);
  const std::string widened = after(widen, barrier);
  CHECK(widened.find("load wide 4") != std::string::npos);
  CHECK(widened.find("pack") == std::string::npos);
  CHECK(widened.find("buffer b1 bf16 written\n") != std::string::npos);
}

TEST_CASE("gpu passes: stores into shared vectors share what their places have in common") {
  const std::string text = after(widen, R"(program shared
local b0 f32[128]
threads 8
  %0 = index 0
  %1 = index 4
  %2 = index 64
  %3 = indexx8 ramp %0 by %1
  %4 = indexx8 splat %2
  %5 = indexx8 64
  %6 = indexx8 add %3 %5
  %7 = f32x8 1.0
  store f32x8 b0[%6] = %7
  barrier shared
  %10 = index 1
  %11 = index 2
  %12 = index 3
  %13 = indexx8 ramp %10 by %1
  %14 = indexx8 ramp %11 by %1
  %15 = indexx8 ramp %12 by %1
  %16 = f32x8 load b0[%3]
  %17 = f32x8 load b0[%13]
  %18 = f32x8 load b0[%14]
  %19 = f32x8 load b0[%15]
)");
  CHECK_MESSAGE(text.find("  store f32x8 b0[%3 + 64] = %7\n") != std::string::npos, text);
  CHECK_MESSAGE(text.find(" load wide 4 b0[") != std::string::npos, text);
}

TEST_CASE("gpu passes: what nobody uses is dead, in loops too") {
  CHECK(after(drop_dead_code, R"(program dead
buffer b0 f32 written
  %0 = index 0
  %1 = index 4
  %2 = index 1
  %3 = f32 1.0
  %4 = f32 2.0
  loop %5 = %0 below %1 by %2
    %6 = f32 carry %3
    %7 = f32 carry %4
    %8 = f32 add %6 %6
    %9 = f32 add %7 %3
    next %6 = %8
    next %7 = %9
  end
  store f32 b0[%0] = %7
)") == R"(program dead
buffer b0 f32 written
  %0 = index 0
  %1 = index 4
  %2 = index 1
  %3 = f32 1.0
  %4 = f32 2.0
  loop %5 = %0 below %1 by %2
    %6 = f32 carry %4
    %7 = f32 add %6 %3
    next %6 = %7
  end
  store f32 b0[%0] = %6
)");
}

TEST_CASE("gpu passes: a place that is reached in very many ways is soon given up") {
  std::string text = "program deep\nlocal b0 f32[8] private\nthreads 4\n  %0 = index 4\n";
  for (int i = 1; i <= 64; ++i) text += fmt::format("  %{0} = index add %{1} %{1}\n", i, i - 1);
  text += "  %65 = f32x4 load b0[%64]\n";
  CHECK(verify(parsed(text)) == "instruction 65: private b0 at what may be another thread's");
}

TEST_CASE("gpu passes: wide accesses that cannot be are found") {
  auto problem = [](std::string_view line) {
    return verify(parsed(fmt::format(R"(program wide
buffer b0 f32 written wide 4
local b1 f32[32] wide 4
threads 8
  %0 = index 2
  %1 = index 4
  %2 = indexx8 ramp %1 by %1
  %3 = indexx8 ramp %0 by %1
  %4 = f32x8 1.0
  {}
)",
                                     line)));
  };
  CHECK(problem("%5 = f32x8 load wide 4 b0[%2 + 8]") == "");
  CHECK(problem("%5 = f32x8 load wide 4 b0[%2 - 4]") == "");
  CHECK(problem("%5 = f32x8 load b0[%3]") == "");
  CHECK(problem("store f32x8 b1[%3] = %4") == "");
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"%5 = f32x8 load wide 4 b0[%3]", "neighbours that may be no whole vector"},
      {"%5 = f32x8 load wide 4 b0[%2 + 2]", "neighbours that may be no whole vector"},
      {"%5 = f32x8 load wide 2 b0[%2]", "2 elements at once of vectors of 4"},
      {"%5 = f32x8 load wide 3 b0[%2]", "a width of 3"},
      {"store f32x8 b0[%2] = %4", "stores a part of a vector"},
      {"store f32x8 wide 4 b0[%2] = %4", "stores 4 of 1 elements"},
      {"%5 = f32x8 element 0 %4", "element 0 of 1"},
      {"%5 = f32x8 pack %4", "packs one element"},
  };
  for (const auto& [line, wanted] : cases) {
    CAPTURE(line);
    CHECK(problem(line) == fmt::format("instruction 5: {}", wanted));
  }
  CHECK(problem("%5 = f32x8 pack %4 %4\n  %6 = f32x8 add %5 %4") ==
        "instruction 6: operand 0 is wide");
  CHECK(problem("%5 = f32x8 pack %4 %4\n  %6 = f32x8 element 2 %5") ==
        "instruction 6: element 2 of 2");
}

TEST_CASE("gpu passes: indices take 64 bits where a buffer needs them") {
  const Program program = parsed("program p\n%0 = cell\n");
  CHECK(gpu_program(program, {.most_elements = INT32_MAX}).index_bits == 32);
  CHECK(gpu_program(program, {.most_elements = int64_t{1} + INT32_MAX}).index_bits == 64);
  CHECK(gpu_program(program, {.disabled = {"index-width"}}).index_bits == 64);
}

TEST_CASE("gpu passes: programs in files compute the same after all passes") {
  for (const std::filesystem::path& path : program_files("tests/programs/gpu")) {
    CAPTURE(path.filename().string());
    const ProgramFile file = read_program_file(path);
    check_all_passes(file.program, file.values, file.cells, file.sizes);
  }
}

TEST_CASE("gpu passes: kernels of small programs compute the same, without races") {
  const Tensor x = input("x", {70, 40}), y = input("y", {40, 33}),
               h = input("h", {64, 48}, DType::BF16);
  const std::vector<Tensor> programs{
      softmax(x),       matmul(x, y),
      sum(x, {0}),      matmul(relu(x), y) + 1,
      transpose(x) * 2, h.cast(DType::F32) * 3,
      sum(h, {1}),      cumsum(x, 1),
      layer_norm(x),    conv2d(input("image", {1, 2, 9, 9}), input("weight", {3, 2, 3, 3}))};
  std::mt19937_64 random(5);
  for (const Target& target : named_targets()) {
    if (target.hardware.execution == Execution::Simd) continue;
    CAPTURE(target.name);
    const Capabilities capabilities = capabilities_of(target, {.precision = MatmulPrecision::High});
    for (const Tensor& program : programs) {
      const Schedule schedule =
          schedule_for(simplify_program(std::vector<NodeRef>{program.node()}), capabilities);
      GraphScope scope(*schedule.graph);
      for (const Kernel& kernel : schedule.kernels)
        for (const KernelPhase& phase : kernel.phases)
          for (const KernelPart& part : phase) {
            const GpuKernel made = make_gpu_kernel(part.body, {.capabilities = capabilities});
            std::vector<Value> values;
            for (NodeRef buffer : part.body.buffers)
              values.push_back(random_value(buffer->dtype, bounds(buffer->dim(0)).max, random));
            check_all_passes(made.program, values, bounds(made.cells).max, {});
          }
    }
  }
}
