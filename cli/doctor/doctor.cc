// Everything is looked up or measured when asked; nothing here is taken for granted.
#include "cli/doctor/doctor.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <anneal/device.h>

#include "anneal_version.h"
#include "base/os/machine.h"
#include "base/os/own_files.h"
#include "cli/doctor/fma_speed.h"
#include "cli/doctor/memory_copy.h"
#include "cli/doctor/webgpu.h"
#include "cli/json.h"
#include "cli/output.h"
#include "codegen/llvm/compile.h"
#include "runtime/disk/kernel_folder.h"

namespace anneal::cli {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// Something that is wrong, or only slow, and what to do about it.
struct Finding {
  enum Kind { Missing, Slow, Broken } kind = Slow;
  std::string what, fix;
};

// ---- what is measured

struct Speed {
  int threads = 1;
  double copy = 0;        // GB/s
  double arithmetic = 0;  // GFLOP/s
};

double copy_speed(int threads) {
  constexpr int kRuns = 8;
  MemoryCopy copy(threads);
  double least = copy.run();
  for (int i = 1; i < kRuns; ++i) least = std::min(least, copy.run());
  return MemoryCopy::gigabytes() / least;
}

std::vector<Speed> measure(const Machine& machine) {
  std::vector<Speed> speeds;
  for (int threads : {1, machine.cores})
    if (speeds.empty() || threads > 1)
      speeds.push_back({threads, copy_speed(threads), fma_speed(threads)});
  return speeds;
}

// ---- kernels on disk

struct CacheState {
  std::string directory;  // empty: nothing is kept
  int64_t kernels = 0, bytes = 0, limit = 0;
  bool writable = false;
  std::string not_own = {};  // why what is there is not used; empty: it is
};

// Tries it: permissions alone do not tell.
bool can_write_in(const std::filesystem::path& folder) {
  make_own_folder(folder.string());
  const std::filesystem::path probe = folder / fmt::format(".doctor-{}", getpid());
  std::ofstream file(probe);
  file << "anneal doctor was here\n";
  file.close();
  const bool written = file.good();
  std::error_code ignored;
  std::filesystem::remove(probe, ignored);
  return written;
}

CacheState cache_state() {
  CacheState state{default_cache_directory()};
  if (state.directory.empty()) return state;
  state.writable = can_write_in(state.directory);
  const KernelFolderLimits limits = cache_limits(state.directory);
  const KernelFolder folder(state.directory, limits);
  const KernelFolder::Contents held = folder.contents();
  state.kernels = held.files;
  state.bytes = held.bytes;
  state.limit = limits.bytes;
  state.not_own = folder.not_own();
  return state;
}

std::string cache_text(const CacheState& cache) {
  if (cache.directory.empty()) return "not kept on disk";
  return fmt::format("{} compiled, {} of {} in {}{}", cache.kernels, bytes_text(cache.bytes),
                     bytes_text(cache.limit), cache.directory,
                     cache.writable ? "" : ", which cannot be written to");
}

Json cache_json(const CacheState& cache) {
  return Json::object()
      .set("directory", cache.directory)
      .set("kernels", cache.kernels)
      .set("bytes", cache.bytes)
      .set("limit_bytes", cache.limit)
      .set("writable", cache.writable)
      .set("not_used_because", cache.not_own);
}

// ---- what is found

std::vector<Finding> findings_of(const Machine& machine, const CacheState& cache,
                                 const GpuDiagnosis& gpus) {
  std::vector<Finding> findings;
  if (!gpus.missing.empty()) findings.push_back({Finding::Missing, gpus.missing, gpus.fix});
  for (const GpuDiagnosis::Gpu& gpu : gpus.gpus)
    if (!gpu.problem.empty())
      findings.push_back(
          {Finding::Broken,
           fmt::format("the GPU \"{}\" does not work: {}", gpu.info.name, gpu.problem),
           "update its driver"});
  if (cache.directory.empty()) {
    findings.push_back({Finding::Slow, "compiled kernels are not kept: each process compiles again",
                        "unset ANNEAL_CACHE, or name a folder in ANNEAL_CACHE_DIR"});
  } else if (!cache.writable) {
    findings.push_back({Finding::Broken,
                        fmt::format("compiled kernels cannot be kept in {}", cache.directory),
                        "make it writable, or name another folder in ANNEAL_CACHE_DIR"});
  } else if (!cache.not_own.empty()) {
    findings.push_back({Finding::Broken,
                        fmt::format("compiled kernels on disk are not used: {}", cache.not_own),
                        "chmod 700 it, or name another folder in ANNEAL_CACHE_DIR"});
  }
  if (machine.huge_pages == "never")
    findings.push_back({Finding::Slow,
                        "huge pages are switched off: fresh memory costs several times more",
                        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"});
  if (machine.load > 0.5 * machine.cores)
    findings.push_back({Finding::Slow,
                        fmt::format("the machine is busy: {:.1f} processes ran or waited over the "
                                    "last minute, on {} cores",
                                    machine.load, machine.cores),
                        "measure again when it is quiet"});
  if (machine.free_bytes > 0 && static_cast<double>(machine.free_bytes) < kGiB)
    findings.push_back({Finding::Slow,
                        fmt::format("only {} of memory are free", bytes_text(machine.free_bytes)),
                        "end what is not needed"});
  return findings;
}

// ---- text and JSON

struct Diagnosis {
  Machine machine;
  std::vector<std::string> devices;
  CpuTarget target;
  CacheState cache;
  std::vector<Speed> speeds;
  GpuDiagnosis gpus;
  std::vector<Finding> findings;

  bool healthy() const {
    return std::ranges::count(findings, Finding::Broken, &Finding::kind) == 0;
  }
};

std::string caches_text(const Machine& machine) {
  std::vector<std::string> parts;
  for (const CacheLevel& cache : machine.caches)
    if (cache.kind != "instruction")
      parts.push_back(fmt::format(
          "L{} {}{}", cache.level, bytes_text(cache.bytes),
          cache.shared_by > 1 ? fmt::format(" for {} cores", cache.shared_by) : std::string()));
  return parts.empty() ? "unknown" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string speed_text(const std::vector<Speed>& speeds, double Speed::* figure,
                       std::string_view unit) {
  std::vector<std::string> parts;
  for (const Speed& speed : speeds)
    parts.push_back(fmt::format("{:.1f} {} on {} {}", speed.*figure, unit, speed.threads,
                                speed.threads == 1 ? "thread" : "threads"));
  return fmt::format("{}", fmt::join(parts, ", "));
}

void write_fact(std::string_view name, std::string_view text) {
  write(fmt::format("{} {}\n", paint(Colour::Dim, fmt::format("{:<10}", name)), text));
}

std::string kind_text(Finding::Kind kind) {
  switch (kind) {
    case Finding::Missing: return paint(Colour::Gold, "missing:");
    case Finding::Slow: return paint(Colour::Gold, "slow:");
    case Finding::Broken: return paint(Colour::Ember, "broken:");
  }
  return "";
}

void write_text(const Diagnosis& diagnosis) {
  const Machine& machine = diagnosis.machine;
  write_fact("anneal", ANNEAL_VERSION);
  write_fact("cpu", fmt::format("{}, {} {}", machine.cpu.empty() ? "unknown" : machine.cpu,
                                machine.cores, machine.cores == 1 ? "core" : "cores"));
  write_fact("vectors", machine.features.empty() ? "unknown"
                                                 : fmt::format("{} bits: {}", machine.vector_bits,
                                                               fmt::join(machine.features, ", ")));
  write_fact("caches", caches_text(machine));
  write_fact("memory", fmt::format("{}, {} free; huge pages: {}", bytes_text(machine.memory_bytes),
                                   bytes_text(machine.free_bytes),
                                   machine.huge_pages.empty() ? "unknown" : machine.huge_pages));
  write_fact("devices", fmt::format("{}", fmt::join(diagnosis.devices, ", ")));
  write_fact("compiler", fmt::format("LLVM {}, for {}", llvm_version(), diagnosis.target.cpu));
  write_fact("kernels", cache_text(diagnosis.cache));
  write_fact("copying", speed_text(diagnosis.speeds, &Speed::copy, "GB/s"));
  write_fact("computing", speed_text(diagnosis.speeds, &Speed::arithmetic, "GFLOP/s"));
  std::string_view name = "webgpu";
  for (const std::string& line : lines_of(diagnosis.gpus)) {
    write_fact(name, line);
    name = "";
  }
  write("\n");
  for (const Finding& finding : diagnosis.findings)
    write(fmt::format("{} {}\n  fix: {}\n", kind_text(finding.kind), finding.what, finding.fix));
  write(diagnosis.healthy() ? paint(Colour::Teal, "healthy") + "\n" : "");
}

Json machine_json(const Machine& machine) {
  Json features = Json::array(), caches = Json::array();
  for (const std::string& feature : machine.features) features.add(feature);
  for (const CacheLevel& cache : machine.caches)
    caches.add(Json::object()
                   .set("level", cache.level)
                   .set("kind", cache.kind)
                   .set("bytes", cache.bytes)
                   .set("shared_by", cache.shared_by));
  return Json::object()
      .set("cpu", machine.cpu)
      .set("cores", machine.cores)
      .set("vector_bits", machine.vector_bits)
      .set("features", features)
      .set("caches", caches)
      .set("memory_bytes", machine.memory_bytes)
      .set("free_bytes", machine.free_bytes)
      .set("huge_pages", machine.huge_pages)
      .set("load", machine.load);
}

void write_json(const Diagnosis& diagnosis) {
  Json speeds = Json::array(), findings = Json::array(), devices = Json::array();
  for (const Speed& speed : diagnosis.speeds)
    speeds.add(Json::object()
                   .set("threads", speed.threads)
                   .set("copy_gb_s", speed.copy)
                   .set("fma_gflop_s", speed.arithmetic));
  for (const std::string& device : diagnosis.devices) devices.add(device);
  for (const Finding& finding : diagnosis.findings)
    findings.add(Json::object()
                     .set("broken", finding.kind == Finding::Broken)
                     .set("what", finding.what)
                     .set("fix", finding.fix));
  write(Json::object()
            .set("version", ANNEAL_VERSION)
            .set("machine", machine_json(diagnosis.machine))
            .set("devices", devices)
            .set("compiler", Json::object()
                                 .set("llvm", llvm_version())
                                 .set("identity", codegen_identity())
                                 .set("cpu", diagnosis.target.cpu)
                                 .set("vector_bytes", diagnosis.target.vector_bytes))
            .set("cache", cache_json(diagnosis.cache))
            .set("measured", speeds)
            .set("webgpu", to_json(diagnosis.gpus))
            .set("findings", findings)
            .set("healthy", diagnosis.healthy())
            .text() +
        "\n");
}

}  // namespace

bool doctor(const DoctorOptions& options) {
  Diagnosis diagnosis;
  diagnosis.machine = describe_machine();
  diagnosis.devices = devices();
  diagnosis.target = host_target();
  diagnosis.cache = cache_state();
  diagnosis.speeds = measure(diagnosis.machine);
  diagnosis.gpus = diagnose_gpus(options.adapter);
  diagnosis.findings = findings_of(diagnosis.machine, diagnosis.cache, diagnosis.gpus);
  options.json ? write_json(diagnosis) : write_text(diagnosis);
  return diagnosis.healthy();
}

}  // namespace anneal::cli
