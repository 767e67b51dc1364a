#include "runtime/webgpu/library.h"

#include <map>
#include <memory>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/call_site.h"
#include "base/os/environment.h"

namespace anneal::webgpu {
namespace {

#if defined(__APPLE__)
constexpr const char* kSuffix = "dylib";
#else
constexpr const char* kSuffix = "so";
#endif

// The system's own first, then what stands beside the program, then what `./dev` installs.
std::vector<std::string> usual_names() {
  std::vector<std::string> names;
  for (const char* name : {"libwebgpu_dawn", "libwgpu_native"})
    names.push_back(fmt::format("{}.{}", name, kSuffix));
#if !defined(__APPLE__)
  names.emplace_back("libwebgpu_dawn.so.0");  // all that Debian's libwebgpu-dawn0 brings
#endif
  std::vector<std::string> folders;
  if (const std::string folder = program_folder(); !folder.empty()) folders.push_back(folder);
  if (const std::string folder = install_folder(); !folder.empty()) folders.push_back(folder);
  for (const std::string& folder : folders)
    names.push_back(fmt::format("{}/libwebgpu_dawn.{}", folder, kSuffix));
  return names;
}

std::string list(const std::vector<TriedLibrary>& tried) {
  std::string text;
  for (const TriedLibrary& one : tried) text += fmt::format("\n    {}: {}", one.name, one.reason);
  return text;
}

}  // namespace

Library::Library(const SharedLibrary& file) : path(file.path("wgpuCreateInstance")) {
#define ANNEAL_WEBGPU_LOAD(member, name, result, parameters)                           \
  member = reinterpret_cast<decltype(member)>(file.symbol("wgpu" #name)); /* NOLINT */ \
  if (!member && (missing_.empty() || missing_.back() != "wgpu" #name))                \
    missing_.emplace_back("wgpu" #name);
  ANNEAL_WEBGPU_FUNCTIONS(ANNEAL_WEBGPU_LOAD)
  const size_t needed = missing_.size();
  ANNEAL_WEBGPU_EXTRA_FUNCTIONS(ANNEAL_WEBGPU_LOAD)
  missing_.resize(needed);
#undef ANNEAL_WEBGPU_LOAD
  of_2025 = !file.symbol("wgpuGetInstanceFeatures");
  if (of_2025 && !file.symbol("wgpuGetInstanceCapabilities"))
    missing_.emplace_back("wgpuGetInstanceFeatures");
  dawn = file.symbol("wgpuDeviceTick") != nullptr;
  polled = poll_device != nullptr;
}

std::string Library::interface() const {
  return fmt::format("{}, interface of {}",
                     dawn     ? "Dawn"
                     : polled ? "wgpu-native"
                              : "of a maker unknown to anneal",
                     of_2025 ? "early 2025" : "webgpu.h since May 2025");
}

// Those that were loaded, by the name they were asked for.
class LibraryTable {
 public:
  const Library* load(const std::string& name, std::string* reason) {
    std::lock_guard lock(mutex_);
    if (auto known = libraries_.find(name); known != libraries_.end()) return known->second.get();
    const SharedLibrary file(name);
    if (!file.ok()) {
      *reason = file.error();
      return nullptr;
    }
    std::unique_ptr<Library> library(new Library(file));
    if (!library->missing_.empty()) {
      *reason = fmt::format("it is no webgpu.h library that anneal knows: {} missing{}",
                            library->missing_.front(),
                            library->missing_.size() == 1
                                ? " is"
                                : fmt::format(" and {} more are", library->missing_.size() - 1));
      return nullptr;
    }
    return (libraries_[name] = std::move(library)).get();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Library>> libraries_;
};

const Library* Library::find(std::vector<TriedLibrary>* tried) {
  static auto& table = *new LibraryTable;  // lives as long as the process
  const std::string named = environment("ANNEAL_WEBGPU_LIB");
  const std::vector<std::string> names =
      named.empty() ? usual_names() : std::vector<std::string>{named};
  for (const std::string& name : names) {
    std::string reason;
    if (const Library* library = table.load(name, &reason)) return library;
    if (tried) tried->push_back({name, reason});
  }
  return nullptr;
}

const Library& Library::get() {
  std::vector<TriedLibrary> tried;
  if (const Library* library = find(&tried)) return *library;
  const std::string named = environment("ANNEAL_WEBGPU_LIB");
  if (!named.empty())
    fail(fmt::format("ANNEAL_WEBGPU_LIB names {}, which cannot be used: {}", named,
                     tried.front().reason),
         "name a webgpu.h library there (Dawn's or wgpu-native's), or unset it");
  fail(fmt::format("there is no WebGPU library; tried were{}", list(tried)),
       how_to_get_a_library());
}

std::string install_folder() {
  std::string cache = environment("XDG_CACHE_HOME");
  if (const std::string home = environment("HOME"); cache.empty() && !home.empty())
    cache = home + "/.cache";
  return cache.empty() ? "" : cache + "/anneal/webgpu";
}

std::string how_to_get_a_library() {
  return fmt::format(
      "./dev webgpu installs one; or put Dawn's libwebgpu_dawn.{0} or wgpu-native's "
      "libwgpu_native.{0} where libraries are found, or name its file in ANNEAL_WEBGPU_LIB",
      kSuffix);
}

}  // namespace anneal::webgpu
