#include "runtime/webgpu/software_driver.h"

#include <cstdlib>
#include <filesystem>

#include "base/os/files.h"
#include "base/os/shared_library.h"
#include "runtime/webgpu/library.h"

namespace anneal::webgpu {

std::string software_driver() {
  const std::string folder = install_folder();
  if (folder.empty()) return "";
  const std::filesystem::path manifest = std::filesystem::path(folder) / "vulkan" / "icd.json";
  std::error_code missing;
  return std::filesystem::is_regular_file(manifest, missing) ? manifest.string() : "";
}

void use_software_driver() {
  const std::string manifest = software_driver();
  if (manifest.empty()) return;
  // WebGPU looks for the loader, and that for what the driver needs, by name: what is loaded by
  // then is found. The system's own come first.
  const std::filesystem::path libraries = std::filesystem::path(manifest).parent_path() / "lib";
  for (const FileEntry& file : list_files(libraries.string(), "")) {
    const std::string name = std::filesystem::path(file.path).filename().string();
    if (const SharedLibrary system(name); system.ok()) continue;
    [[maybe_unused]] const SharedLibrary installed(file.path);
  }
  for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"})
    setenv(variable, manifest.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace anneal::webgpu
