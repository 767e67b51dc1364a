#include "cli/doctor/webgpu.h"

#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <anneal/error.h>

#include "base/os/environment.h"
#include "base/os/files.h"
#include "base/os/shared_library.h"
#include "cli/library_messages.h"
#include "runtime/webgpu/software_driver.h"

namespace anneal::cli {
namespace {

constexpr uint64_t kMostManifestBytes = 1 << 20;

// ---- Vulkan's drivers on Linux

// "library_path": "libvulkan_lvp.so"
std::string library_in(const std::string& manifest) {
  const size_t key = manifest.find("\"library_path\"");
  if (key == std::string::npos) return "";
  const size_t begin = manifest.find('"', manifest.find(':', key));
  const size_t end = begin == std::string::npos ? begin : manifest.find('"', begin + 1);
  return end == std::string::npos ? "" : manifest.substr(begin + 1, end - begin - 1);
}

DriverManifest read_manifest(const std::string& path) {
  DriverManifest manifest{path, "", ""};
  const std::optional<std::string> text = read_file(path, kMostManifestBytes);
  if (!text) {
    manifest.problem = "it cannot be read";
    return manifest;
  }
  manifest.library = library_in(*text);
  if (manifest.library.empty()) {
    manifest.problem = "it names no library";
    return manifest;
  }
  // A path with a slash is relative to the manifest, another one is a name.
  std::filesystem::path library = manifest.library;
  if (manifest.library.find('/') != std::string::npos && library.is_relative())
    library = std::filesystem::path(path).parent_path() / library;
  const SharedLibrary loaded(library.string());
  if (!loaded.ok()) manifest.problem = loaded.error();
  return manifest;
}

std::vector<DriverManifest> find_manifests() {
  std::vector<std::string> paths;
  std::string named = environment("VK_DRIVER_FILES");
  if (named.empty()) named = environment("VK_ICD_FILENAMES");
  auto add = [&](const std::string& list) {
    std::istringstream in(list);
    for (std::string path; std::getline(in, path, ':');)
      if (!path.empty()) paths.push_back(path);
  };
  add(named);
  if (named.empty()) {
    add(environment("VK_ADD_DRIVER_FILES"));
    for (const char* folder :
         {"/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/share/vulkan/icd.d"})
      for (const FileEntry& file : list_files(folder, ".json")) paths.push_back(file.path);
  }
  std::vector<DriverManifest> manifests;
  for (const std::string& path : paths) manifests.push_back(read_manifest(path));
  return manifests;
}

bool has_nvidia() { return std::filesystem::exists("/proc/driver/nvidia/version"); }

constexpr std::string_view kNvidiaFix =
    R"(without a display NVIDIA's driver is reached through EGL: write
         {"file_format_version": "1.0.0", "ICD": {"library_path": "libEGL_nvidia.so.0", "api_version": "1.3.0"}}
       to a file and name it in VK_ICD_FILENAMES (in a container the driver's graphics libraries are
       needed, too: NVIDIA_DRIVER_CAPABILITIES=all))";

// ---- what is missing

void explain(GpuDiagnosis& diagnosis) {
  auto say = [&](std::string what, std::string fix) {
    diagnosis.missing = std::move(what);
    diagnosis.fix = std::move(fix);
  };
  if (diagnosis.library.empty())
    return say("no GPU: there is no WebGPU library", webgpu::how_to_get_a_library());
  if (!diagnosis.gpus.empty()) return;
  if (!diagnosis.loader)
    return say("no GPU: the Vulkan loader (libvulkan.so.1) is missing",
               webgpu::how_to_get_an_adapter());
  if (diagnosis.manifests.empty())
    return say("no GPU: no Vulkan driver is installed, or no manifest tells of it",
               has_nvidia() ? std::string(kNvidiaFix) : webgpu::how_to_get_an_adapter());
  std::vector<std::string> problems;
  for (const DriverManifest& manifest : diagnosis.manifests)
    if (!manifest.problem.empty())
      problems.push_back(fmt::format("{}: {}", manifest.path, manifest.problem));
  if (has_nvidia())
    return say("no GPU: NVIDIA's driver is here and offers none", std::string(kNvidiaFix));
  if (!problems.empty())
    return say(fmt::format("no GPU: drivers cannot be loaded: {}", fmt::join(problems, "; ")),
               "install what they miss, or name a working manifest in VK_ICD_FILENAMES");
  say("no GPU: the drivers can be loaded and offer none that is good enough for WebGPU",
      webgpu::how_to_get_an_adapter());
}

std::string bytes_text(int64_t bytes) {
  if (bytes % (1 << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
  if (bytes >= int64_t{1} << 30)
    return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
  return fmt::format("{:.0f} KiB", static_cast<double>(bytes) / 1024);
}

std::vector<std::string> features_of(const webgpu::AdapterInfo& info) {
  std::vector<std::string> features;
  if (info.f16) features.emplace_back("f16");
  if (info.subgroups)
    features.push_back(
        info.subgroup_min == info.subgroup_max
            ? fmt::format("subgroups of {}", info.subgroup_max)
            : fmt::format("subgroups of {} to {}", info.subgroup_min, info.subgroup_max));
  if (info.timestamps) features.emplace_back("timestamps");
  return features;
}

// A driver that computes on the CPU.
bool is_slow(const webgpu::AdapterInfo& info) { return info.kind == webgpu::AdapterKind::Cpu; }

// That --matmul-precision high uses.
std::string_view matrices_of(const webgpu::AdapterInfo& info) {
  return info.matrices ? "f16 16x16x16" : "none";
}

}  // namespace

GpuDiagnosis diagnose_gpus(const std::string& adapter) {
  GpuDiagnosis diagnosis;
  const MutedLibraries muted;
  if (adapter == webgpu::kSoftware) webgpu::use_software_driver();
  const webgpu::Library* library = webgpu::Library::find(&diagnosis.tried);
#if defined(__linux__)
  diagnosis.loader = SharedLibrary("libvulkan.so.1").ok();
  diagnosis.manifests = find_manifests();
#else
  diagnosis.loader = true;
#endif
  if (library) {
    diagnosis.library = library->path;
    diagnosis.interface = library->interface();
    try {
      for (webgpu::AdapterInfo& info : webgpu::adapters_and_matrices())
        diagnosis.gpus.push_back({diagnosis.gpus.size(), std::move(info), std::nullopt, ""});
    } catch (const UserError& error) {
      diagnosis.missing = error.message();
      diagnosis.fix = error.hint();
    }
  }
  if (!adapter.empty() && !diagnosis.gpus.empty()) {
    std::vector<webgpu::AdapterInfo> infos;
    for (const GpuDiagnosis::Gpu& gpu : diagnosis.gpus) infos.push_back(gpu.info);
    diagnosis.gpus = {diagnosis.gpus[webgpu::choose_among(infos, adapter)]};
  }
  for (GpuDiagnosis::Gpu& gpu : diagnosis.gpus) try {
      gpu.speed = gpu_speed(*webgpu::Gpu::open(std::to_string(gpu.number)));
    } catch (const std::exception& error) {
      gpu.problem = error.what();
    }
  if (diagnosis.missing.empty()) explain(diagnosis);
  if (diagnosis.gpus.empty() && !diagnosis.library.empty())
    diagnosis.fix += webgpu::software_offer();
  return diagnosis;
}

std::vector<std::string> lines_of(const GpuDiagnosis& diagnosis) {
  if (diagnosis.library.empty()) return {"no library"};
  std::vector<std::string> lines{fmt::format("{} ({})", diagnosis.library, diagnosis.interface)};
  for (const GpuDiagnosis::Gpu& gpu : diagnosis.gpus) {
    const webgpu::AdapterInfo& info = gpu.info;
    const webgpu::Limits& limits = info.limits;
    lines.push_back(fmt::format("{} \"{}\", {}{}, {}{}", gpu.number, info.name, name_of(info.kind),
                                is_slow(info) ? " (slow)" : "", info.backend,
                                info.driver.empty() ? "" : ": " + info.driver));
    const std::vector<std::string> features = features_of(info);
    lines.push_back(fmt::format("  {}{}{} buffers a kernel, {} a binding, groups of {} with {}",
                                fmt::join(features, ", "), features.empty() ? "" : "; ",
                                limits.storage_buffers, bytes_text(limits.storage_binding_bytes),
                                limits.workgroup_invocations, bytes_text(limits.workgroup_bytes)));
    lines.push_back(fmt::format("  matrix units: {}", matrices_of(info)));
    if (const std::optional<GpuSpeed>& speed = gpu.speed)
      lines.push_back(fmt::format(
          "  copying {:.1f} GB/s, computing {:.1f} GFLOP/s, to it {:.1f} GB/s, from it {:.1f} GB/s",
          speed->copy, speed->arithmetic, speed->upload, speed->download));
    else
      lines.emplace_back("  it does not work");
  }
  if (diagnosis.gpus.empty()) lines.emplace_back("no GPU");
  return lines;
}

Json to_json(const GpuDiagnosis& diagnosis) {
  Json tried = Json::array(), manifests = Json::array(), gpus = Json::array();
  for (const webgpu::TriedLibrary& one : diagnosis.tried)
    tried.add(Json::object().set("name", one.name).set("reason", one.reason));
  for (const DriverManifest& manifest : diagnosis.manifests)
    manifests.add(Json::object()
                      .set("path", manifest.path)
                      .set("library", manifest.library)
                      .set("problem", manifest.problem));
  for (const GpuDiagnosis::Gpu& gpu : diagnosis.gpus) {
    const webgpu::AdapterInfo& info = gpu.info;
    const webgpu::Limits& limits = info.limits;
    Json one = Json::object();
    one.set("number", gpu.number)
        .set("name", info.name)
        .set("vendor", info.vendor)
        .set("architecture", info.architecture)
        .set("driver", info.driver)
        .set("backend", info.backend)
        .set("kind", name_of(info.kind))
        .set("slow", is_slow(info))
        .set("f16", info.f16)
        .set("subgroups", info.subgroups)
        .set("subgroup_min", info.subgroup_min)
        .set("subgroup_max", info.subgroup_max)
        .set("timestamps", info.timestamps)
        .set("matrix_units", matrices_of(info))
        .set("limits", Json::object()
                           .set("storage_buffers", limits.storage_buffers)
                           .set("storage_binding_bytes", limits.storage_binding_bytes)
                           .set("storage_offset_alignment", limits.storage_offset_alignment)
                           .set("buffer_bytes", limits.buffer_bytes)
                           .set("workgroup_bytes", limits.workgroup_bytes)
                           .set("workgroup_invocations", limits.workgroup_invocations)
                           .set("workgroups_per_dimension", limits.workgroups_per_dimension));
    if (gpu.speed)
      one.set("copy_gb_s", gpu.speed->copy)
          .set("fma_gflop_s", gpu.speed->arithmetic)
          .set("upload_gb_s", gpu.speed->upload)
          .set("download_gb_s", gpu.speed->download);
    else
      one.set("problem", gpu.problem);
    gpus.add(one);
  }
  return Json::object()
      .set("library", diagnosis.library)
      .set("interface", diagnosis.interface)
      .set("tried", tried)
      .set("vulkan_loader", diagnosis.loader)
      .set("manifests", manifests)
      .set("gpus", gpus)
      .set("missing", diagnosis.missing)
      .set("fix", diagnosis.fix);
}

}  // namespace anneal::cli
