// The commands that look at kernels and at the machine. Expectations come from the library's own
// functions, never from what the program printed once.
#include <algorithm>
#include <filesystem>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <anneal/device.h>

#include "base/os/files.h"
#include "base/os/machine.h"
#include "cli_runner.h"
#include "codegen/llvm/compile.h"
#include "environment_scope.h"
#include "models/program.h"
#include "models/training.h"
#include "runtime/capture/assignments.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/program/scheduled_program.h"
#include "schedule/memory/memory_plan.h"
#include "schedule/work_count.h"
#include "symbolic/bounds.h"
#include "webgpu_other_library.h"

using namespace anneal;

namespace {

// As it is compiled.
Schedule schedule_of(const models::Program& program, bool forward) {
  std::vector<NodeRef> roots{program.loss.node()};
  if (!forward)
    for (const Tensor& tensor : program.updates) roots.push_back(tensor.node());
  const Contents nothing{Bindings{}};
  const CanonicalProgram canonical(Request{
      {program.loss.node()}, forward ? std::vector<NodeRef>() : assignments(roots), &nothing});
  Graph graph;
  const GraphScope scope(graph);
  return schedule_built(canonical.build(graph), capabilities_of(host_cpu_target())).schedule;
}

}  // namespace

TEST_CASE("cli: kernels --json is the schedule") {
  for (const models::ProgramRow& row : models::programs())
    for (const bool forward : {false, true}) {
      const std::string command =
          fmt::format("kernels {} --device cpu {}", row.name, forward ? "--forward" : "--step");
      INFO(command);
      const Json shown = json_of(command);
      CHECK(shown["program"] == row.name);
      CHECK(shown["device"] == "cpu");
      CHECK(shown["scope"] == (forward ? "forward" : "step"));

      const models::Program program = row.build();
      const Schedule schedule = schedule_of(program, forward);
      const GraphScope scope(*schedule.graph);
      REQUIRE(shown["kernels"].size() == schedule.kernels.size());
      CHECK(shown["unfused"].size() == schedule.unfused.size());
      double flops = 0;
      size_t crossing = 0;
      std::set<std::string> phases;
      for (size_t i = 0; i < schedule.kernels.size(); ++i) {
        const Json& kernel = shown["kernels"][i];
        const WorkCount work = count_work(schedule.kernels[i]);
        CHECK(kernel["number"] == i);
        size_t parts = 0;
        for (const KernelPhase& phase : schedule.kernels[i].phases) parts += phase.size();
        CHECK(kernel["parts"].size() == parts);
        int64_t cells = 0;
        for (const Json& part : kernel["parts"]) cells += part["cells"].get<int64_t>();
        CHECK(kernel["cells"] == cells);
        CHECK(kernel["nodes"] == schedule.kernels[i].nodes.size());
        CHECK(kernel["work"]["ops"] == work.operations);
        CHECK(kernel["work"]["flops"] == work.flops);
        CHECK(kernel["work"]["bytes_read"] == work.bytes_read);
        CHECK(kernel["work"]["bytes_written"] == work.bytes_written);
        CHECK_FALSE(kernel["phases"].empty());
        const bool crosses = kernel["phases"].size() > 1 && kernel["phases"][0] == "forward" &&
                             kernel["phases"][1] == "backward";
        CHECK(kernel["crosses"] == crosses);
        crossing += crosses ? 1 : 0;
        flops += work.flops;
        for (const Json& phase : kernel["phases"]) phases.insert(phase);
      }
      CHECK(shown["crossing"] == crossing);
      const auto largest = [](NodeRef variable) { return bounds(variable).max; };
      CHECK(shown["memory"]["arena_bytes"] == plan_memory(schedule, largest).arena_bytes);
      CHECK(shown["memory"]["arena_bytes"].get<int64_t>() <=
            shown["memory"]["temporary_bytes"].get<int64_t>());
      CHECK(shown["work"]["flops"].get<double>() == doctest::Approx(flops));
      CHECK(phases == (forward ? std::set<std::string>{"forward"}
                               : std::set<std::string>{"forward", "backward", "update"}));
      for (size_t i = 0; i < schedule.unfused.size(); ++i) {
        const Json& edge = shown["unfused"][i];
        CHECK(edge["producer"] == schedule.unfused[i].producer);
        CHECK(edge["consumer"] == schedule.unfused[i].consumer);
        CHECK(edge["reason"] == name(schedule.unfused[i].reason));
        // Costs are there where they decided, and only there.
        const UnfusedCost& cost = schedule.unfused[i].cost;
        const bool by_cost = edge["reason"] == "reuse" || edge["reason"] == "dtype";
        CHECK(cost.decided() == by_cost);
        CHECK(edge["again_ns"].is_null() == !by_cost);
        CHECK(edge["stored_ns"].is_null() == !by_cost);
        if (!by_cost) continue;
        CHECK(edge["again_ns"] == cost.again);
        CHECK(edge["stored_ns"] == cost.stored);
        CHECK(cost.again > cost.stored);
        CHECK(cost.stored > 0);
      }
    }
}

TEST_CASE("cli: kernels are those that train runs, of every model it takes") {
  for (const models::ModelRow& row : models::model_rows()) {
    CAPTURE(row.name);
    const Json shown = json_of(fmt::format("kernels {} --device cpu", row.name));
    const std::string data = row.learns_text() ? "" : "--data digits";
    const Run run =
        anneal_run(fmt::format("train {} {} --steps 1 --device cpu --json", row.name, data));
    REQUIRE(run.code == 0);
    const Json step = Json::parse(run.output.substr(0, run.output.find('\n')));
    CHECK(step["counters"]["kernels_scheduled"] == shown["kernels"].size());
  }
}

TEST_CASE("cli: kernels never tells of a cost that decided nothing") {
  for (const models::ProgramRow& row : models::programs()) {
    const std::string text = anneal_run(fmt::format("kernels {}", row.name)).output;
    CAPTURE(text);
    CHECK_FALSE(contains(text, "-0."));
    for (const char* digit : {"1", "2", "3", "4", "5", "6", "7", "8", "9"})
      CHECK_FALSE(contains(text, fmt::format(" -{}", digit)));
  }
}

TEST_CASE("cli: kernels of a step hold forward and backward nodes together, and say so") {
  const Json shown = json_of("kernels mlp");
  const Run text = anneal_run("kernels mlp");
  CHECK(text.code == 0);
  CHECK(shown["crossing"].get<int>() > 0);
  CHECK(contains(text.output, fmt::format("{} of them (*) with forward and backward nodes",
                                          shown["crossing"].get<int>())));
  CHECK(std::ranges::count(text.output, '*') == shown["crossing"].get<int>() + 1);
  CHECK(text.output == anneal_run("kernels mlp --step").output);
}

TEST_CASE("cli: kernels --time measures each kernel, on every device") {
  for (const char* device : {"cpu", "webgpu"}) {
    INFO(device);
    const Json shown = json_of(fmt::format("kernels mlp --device {} --time", device));
    CHECK(shown["kernels"].size() > 3);
    double all = 0;
    for (const Json& kernel : shown["kernels"]) {
      const double nanoseconds = kernel["time_ns"];
      CHECK(nanoseconds >= 0);
      CHECK(nanoseconds < 60e9);
      all += nanoseconds;
    }
    CHECK(all > 0);
    CHECK(json_of(fmt::format("kernels mlp --device {} --time --kernel 2", device))["kernels"]
              .size() == 1);
  }
  const Run text = anneal_run("kernels mlp --forward --device cpu --time");
  CHECK(contains(text.output, "us in kernels, each the least of 5 runs"));
  CHECK(contains(text.output, "  written        us\n"));
  CHECK_FALSE(contains(anneal_run("kernels mlp --forward --device cpu").output, " us in kernels"));
  CHECK(with_errors("kernels mlp --time --source ir").code == 2);
}

TEST_CASE("cli: kernels --source shows each stage of a kernel") {
  struct Row {
    const char* form;
    const char* holds;
  };
  for (const Row& row : {Row{"ir", "sum_over"}, Row{"program", "program kernel_0_0"},
                         Row{"llvm", "define void @kernel_0_0"}, Row{"asm", "kernel_0_0:"}}) {
    INFO(row.form);
    const std::string command =
        fmt::format("kernels mlp --forward --kernel 0 --source {}", row.form);
    const Run text = anneal_run(command);
    CHECK(text.code == 0);
    CHECK(contains(text.output, "// kernel 0, part 1 of"));
    CHECK_FALSE(contains(text.output, "// kernel 1"));
    CHECK(contains(text.output, row.holds));
    const Json shown = json_of(command);
    REQUIRE(shown["kernels"].size() == 1);
    CHECK(contains(text.output, shown["kernels"][0]["parts"][0]["source"].get<std::string>()));
    for (const Json& edge : shown["unfused"])
      CHECK((edge["producer"] == 0 || edge["consumer"] == 0));
  }
}

TEST_CASE("cli: doctor tells what the machine is and whether anneal works on it") {
  const Run run = anneal_run("doctor --json");
  const Json shown = Json::parse(run.output);
  const Machine machine = describe_machine();
  CHECK(shown["machine"]["cpu"] == machine.cpu);
  CHECK(shown["machine"]["cores"] == machine.cores);
  CHECK(shown["machine"]["caches"].size() == machine.caches.size());
  CHECK(shown["machine"]["memory_bytes"] == machine.memory_bytes);
  CHECK_FALSE(shown["measured"].empty());
  for (const Json& speed : shown["measured"]) CHECK(speed["copy_gb_s"].get<double>() > 0);
  const bool broken = std::ranges::any_of(
      shown["findings"], [](const Json& finding) { return finding["broken"].get<bool>(); });
  for (const Json& finding : shown["findings"])
    CHECK_FALSE(finding["fix"].get<std::string>().empty());
  CHECK(shown["healthy"] == !broken);
  CHECK(run.code == (broken ? 1 : 0));
  const std::vector<std::string> here = devices();  // and what other tests have added
  for (const Json& device : shown["devices"])
    CHECK(std::ranges::count(here, device.get<std::string>()) == 1);
  CHECK(std::ranges::count(shown["devices"], Json("cpu")) == 1);
  CHECK(shown["compiler"]["cpu"] == host_target().cpu);
  CHECK(contains(anneal_run("doctor").output, machine.cpu));
}

TEST_CASE("cli: doctor finds a folder for kernels that cannot be used, and one that can") {
  const EnvironmentScope kept("ANNEAL_CACHE", "1");  // whatever the caller has
  const Run broken =
      shell(fmt::format("ANNEAL_CACHE_DIR=/dev/null/kernels '{}' doctor", program_path()));
  CHECK(broken.code == 1);
  CHECK(contains(broken.output, "broken: compiled kernels cannot be kept in /dev/null/kernels"));
  CHECK_FALSE(contains(broken.output, "healthy"));
  const Run fresh = shell(fmt::format(
      "folder=$(mktemp -d) && ANNEAL_CACHE_DIR=\"$folder\" '{}' doctor --json; rm -r \"$folder\"",
      program_path()));
  const Json shown = Json::parse(fresh.output);
  CHECK(shown["cache"]["writable"] == true);
  CHECK(shown["cache"]["kernels"] == 0);
  CHECK(shown["cache"]["bytes"] == 0);
}

TEST_CASE("cli: kernels of a GPU are WGSL") {
  const Run text = anneal_run("kernels mlp --forward --device webgpu --kernel 0 --source wgsl");
  CHECK(text.code == 0);
  CHECK(contains(text.output, "@compute @workgroup_size("));
  CHECK(contains(with_errors("kernels mlp --forward --device webgpu --source asm").output,
                 "kernels of device \"webgpu\" have no asm"));
  CHECK(contains(with_errors("kernels mlp --forward --device cpu --source wgsl").output,
                 "kernels of device \"cpu\" have no wgsl"));
}

TEST_CASE("cli: kernels of a GPU are as many as the CPU's where its limits allow") {
  for (const char* program : {"mlp", "conv", "attention"}) {
    INFO(program);
    const Json cpu = json_of(fmt::format("kernels {} --device cpu", program));
    const Json gpu = json_of(fmt::format("kernels {} --device webgpu", program));
    CHECK(gpu["kernels"].size() == cpu["kernels"].size());
  }
}

TEST_CASE("cli: kernels says which limit of the device a value is stored for") {
  const EnvironmentScope least("ANNEAL_WEBGPU_LIMITS", "minimum");
  const std::string command = "kernels attention --device webgpu";
  const Run text = anneal_run(command);
  int limited = 0;
  const Json listing = json_of(command);
  for (const Json& edge : listing["unfused"]) {
    CHECK(edge.contains("limit") == (edge["reason"] == "limit"));
    if (edge["reason"] != "limit") continue;
    ++limited;
    const Json& limit = edge["limit"];
    CHECK(limit["name"] == "buffers a kernel");
    CHECK(limit["needed"].get<int>() > 8);
    CHECK(limit["allowed"] == 8);
    CHECK(contains(text.output, fmt::format("one kernel would bind {} buffers, the device allows 8",
                                            limit["needed"].get<int>())));
  }
  CHECK(limited > 0);
}

TEST_CASE("cli: kernels --source wgsl is the text that runs, byte by byte") {
#ifdef ANNEAL_SANITIZED  // the driver compiles attention for ten minutes then
  const char* program = "mlp";
#else
  const char* program = "attention";
#endif
  const std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("anneal-wgsl-{}", getpid())).string();
  for (const char* tiles : {"cpu", "gpu"}) {
    INFO(tiles);
    const EnvironmentScope as("ANNEAL_WEBGPU_TILES", tiles);
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    std::set<std::string> shown, ran;
    const Json listing = json_of(fmt::format("kernels {} --device webgpu --source wgsl", program));
    for (const Json& kernel : listing["kernels"])
      for (const Json& part : kernel["parts"]) shown.insert(part["source"].get<std::string>());
    {
      const EnvironmentScope dump("ANNEAL_DUMP_WGSL", folder);
      CHECK(anneal_run(fmt::format("kernels {} --device webgpu --time", program)).code == 0);
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      ran.insert(*read_file(entry.path().string(), 1 << 24));
    CHECK(shown == ran);
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("cli: a GPU is chosen by --adapter, which others do not take") {
  CHECK(anneal_run("kernels mlp --forward --device webgpu --adapter 0").code == 0);
  const Run unknown = with_errors("kernels mlp --device webgpu --adapter nosuchgpu");
  CHECK(unknown.code == 1);
  CHECK(contains(unknown.output, "there is no GPU \"nosuchgpu\""));
  CHECK(
      contains(with_errors("kernels mlp --device cpu --adapter 0").output, "add --device webgpu"));
  for (const char* command : {"train mlp", "run mlp", "sample --resume none", "bench gemm"}) {
    INFO(command);
    const Run run = with_errors(fmt::format("{} --device webgpu --adapter nosuchgpu", command));
    CHECK(run.code == 1);
  }
}

TEST_CASE("cli: how exact products are is said by --matmul-precision, which others do not take") {
  const std::string kernels = "kernels mlp --forward --device webgpu";
  {
    // An option comes before the environment, which otherwise has its say.
    const EnvironmentScope wrong("ANNEAL_MATMUL_PRECISION", "some");
    CHECK(anneal_run(kernels + " --matmul-precision full").code == 0);
    CHECK(anneal_run(kernels + " --matmul-precision high").code == 0);  // where there are no units
    const Run run = with_errors(kernels);
    CHECK(run.code == 2);
    CHECK(contains(run.output, "ANNEAL_MATMUL_PRECISION must be full or high, got \"some\""));
    CHECK(anneal_run("kernels mlp --forward --device cpu").code == 0);
  }
  const Run unknown = with_errors(kernels + " --matmul-precision some");
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.output, "there is no precision of products 'some'"));
  CHECK(contains(unknown.output, "there are: full, high"));
  for (const char* command :
       {"kernels mlp", "train mlp", "run mlp", "sample --resume none", "bench gemm"}) {
    INFO(command);
    const Run run = with_errors(fmt::format("{} --device cpu --matmul-precision high", command));
    CHECK(run.code == 2);
    CHECK(contains(run.output, "--matmul-precision high is for a GPU, and the device is \"cpu\""));
    CHECK(contains(run.output, "add --device webgpu"));
  }
}

TEST_CASE("cli: doctor shows units for matrices, which high precision asks for and others do not") {
  const auto gpus = [](const std::string& arguments) {
    return Json::parse(anneal_run(arguments).output)["webgpu"]["gpus"];
  };
  CHECK(gpus("doctor --json --adapter 0")[0]["matrix_units"] == "none");
  CHECK(contains(anneal_run("doctor --adapter 0").output, "matrix units: none"));

  const EnvironmentScope library("ANNEAL_WEBGPU_LIB", ANNEAL_TEST_WEBGPU_CURRENT);
  const EnvironmentScope offered(kOfferedMatrices, kUsualMatrices);
  const EnvironmentScope refused(kRefusedMatrices, "1");
  const Json gpu = gpus("doctor --json --adapter 0")[0];
  CHECK(gpu["matrix_units"] == "f16 16x16x16");
  CHECK(gpu["f16"] == false);  // as for those who do not ask
  CHECK(gpu["copy_gb_s"].get<double>() > 0);
  CHECK(contains(anneal_run("doctor --adapter 0").output, "matrix units: f16 16x16x16"));

  const std::string kernels = "kernels mlp --forward --device webgpu";
  CHECK(anneal_run(kernels).code == 0);
  CHECK(anneal_run(kernels + " --matmul-precision full").code == 0);
  CHECK(contains(with_errors(kernels + " --matmul-precision high").output, "cannot be opened"));
  const EnvironmentScope high("ANNEAL_MATMUL_PRECISION", "high");
  CHECK(contains(with_errors(kernels).output, "cannot be opened"));
  CHECK(anneal_run(kernels + " --matmul-precision full").code == 0);
}

TEST_CASE("cli: doctor looks at one GPU with --adapter") {
  const Json all = Json::parse(anneal_run("doctor --json").output)["webgpu"]["gpus"];
  REQUIRE_FALSE(all.empty());
  const Json last = Json::parse(
      anneal_run(fmt::format("doctor --json --adapter {}", all.size() - 1)).output)["webgpu"];
  REQUIRE(last["gpus"].size() == 1);
  CHECK(last["gpus"][0]["number"] == all.size() - 1);
  CHECK(last["gpus"][0]["name"] == all.back()["name"]);
  CHECK(last["gpus"][0]["copy_gb_s"].get<double>() > 0);
  CHECK(last["gpus"][0]["slow"] == (last["gpus"][0]["kind"] == "CPU"));
  const Run unknown = with_errors("doctor --adapter nosuchgpu");
  CHECK(unknown.code == 1);
  CHECK(contains(unknown.output, "there is no GPU \"nosuchgpu\""));
  CHECK(contains(unknown.output, "choose one by its number or a part of its name: 0 "));
}

TEST_CASE("cli: without a library or a GPU, webgpu says what is missing") {
  {
    const EnvironmentScope none("ANNEAL_WEBGPU_LIB", "/nonexistent/libwebgpu.so");
    const Run run = with_errors("train mlp --steps 1 --device webgpu");
    CHECK(run.code == 1);
    CHECK(contains(run.output, "ANNEAL_WEBGPU_LIB names /nonexistent/libwebgpu.so"));
    CHECK(contains(run.output, "hint: "));
  }
  const EnvironmentScope none("VK_ICD_FILENAMES", "/nonexistent/icd.json");
  const Run run = with_errors("train mlp --steps 1 --device webgpu");
  CHECK(run.code == 1);
  CHECK(contains(run.output, "WebGPU finds no GPU here"));
  CHECK(contains(run.output, "VK_ICD_FILENAMES"));
  CHECK(contains(run.output, "or take --adapter software"));
}

TEST_CASE(
    "cli: --adapter software computes without a GPU, a loader or a variable, and says it is slow") {
  const EnvironmentScope no_driver("VK_ICD_FILENAMES", "/nonexistent/icd.json"),
      no_loader("LD_LIBRARY_PATH", "");
  const std::string train = "train mlp --data digits --width 16 --batch 8 --steps 2 --json";
  const Run slow = anneal_run(train + " --device webgpu --adapter software 2>&1 >/dev/null");
  CHECK(slow.code == 0);
  CHECK(contains(slow.output, "a program on the CPU: it computes the same, slowly"));
  const Json doctor = Json::parse(anneal_run("doctor --json --adapter software").output)["webgpu"];
  REQUIRE(doctor["gpus"].size() == 1);
  CHECK(doctor["gpus"][0]["slow"] == true);
  CHECK(contains(anneal_run("doctor --adapter software").output, "CPU (slow)"));
  const Json without = Json::parse(anneal_run("doctor --json").output)["webgpu"];
  CHECK(without["gpus"].empty());
  CHECK(contains(without["fix"].get<std::string>(), "--adapter software"));
}

TEST_CASE("cli: what WebGPU's library writes by itself is for --debug alone") {
  const EnvironmentScope no_driver("VK_ICD_FILENAMES", "/nonexistent/icd.json"),
      no_loader("LD_LIBRARY_PATH", "");
  const Run quiet = anneal_run("kernels mlp --device webgpu 2>&1 >/dev/null"),
            loud = anneal_run("kernels mlp --debug 1 --device webgpu 2>&1 >/dev/null");
  CHECK(quiet.output.starts_with("error: WebGPU finds no GPU"));
  if (shell("ldconfig -p | grep -q libvulkan.so.1").code == 0) return;  // nothing to complain about
  CHECK(contains(loud.output, "Warning: Couldn't load Vulkan"));
}

TEST_CASE("cli: kernels --plan shows the plan, what it takes and the runners-up") {
  const Json shown = json_of("kernels mlp --forward --plan --target cpu-avx2");
  size_t several = 0;
  for (const Json& kernel : shown["kernels"]) {
    CHECK(kernel["plans"].size() == kernel["parts"].size());
    for (const Json& part : kernel["plans"]) {
      CHECK(part["tuned"].is_null());
      REQUIRE(part["choices"].size() > 0);
      for (const Json& choice : part["choices"]) {
        CHECK(choice["plan"] != "");
        CHECK(choice["expected_ns"] > 0);
        CHECK(choice["registers"] > 0);
        CHECK(choice["memory_bytes"] >= 0);
      }
      several += part["choices"].size() > 1 ? 1 : 0;
    }
  }
  CHECK(several >= 3);  // the products, and loops whose cells may be larger or smaller
  const std::string text = anneal_run("kernels mlp --plan --kernel 0 --target cpu-avx2").output;
  CHECK(contains(text, "kernel 0, part 1 of 1"));
  CHECK(contains(text, "product grid["));
  CHECK(contains(text, "  or product grid["));
  CHECK(contains(text, "us expected, "));
  // Of a workgroup, those that fit its memory.
  const std::string gpu =
      anneal_run("kernels mlp --plan --kernel 0 --target webgpu-apple-m").output;
  CHECK(contains(gpu, "group-product"));
  CHECK(contains(gpu, "us expected, "));
  CHECK(contains(gpu, "  or group-product"));
  CHECK(contains(with_errors("kernels mlp --plan --time").output, "excludes"));
}
