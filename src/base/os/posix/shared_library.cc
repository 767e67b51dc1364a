#include "base/os/shared_library.h"

#include <filesystem>

#include <dlfcn.h>

namespace anneal {

SharedLibrary::SharedLibrary(const std::string& name) : name_(name) {
  handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_) return;
  const char* reason = dlerror();
  error_ = reason ? reason : "it cannot be loaded";
}

void* SharedLibrary::symbol(const char* name) const {
  return handle_ ? dlsym(handle_, name) : nullptr;
}

std::string SharedLibrary::path(const char* symbol_name) const {
  Dl_info info{};
  void* address = symbol(symbol_name);
  return address && dladdr(address, &info) && info.dli_fname ? info.dli_fname : name_;
}

std::string program_folder() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "" : program.parent_path().string();
}

}  // namespace anneal
