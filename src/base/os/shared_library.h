// Libraries that are looked for when the program runs, so that it also runs without them.
#pragma once

#include <string>

namespace anneal {

// Stays loaded until the process ends: libraries for GPUs keep threads of their own.
class SharedLibrary {
 public:
  // `name` is a path, or a name that the system looks for in its usual folders. One that cannot be
  // loaded is not ok(), and error() says why.
  explicit SharedLibrary(const std::string& name);

  bool ok() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }
  // Null where there is none.
  void* symbol(const char* name) const;
  // Of the file that holds the symbol; the name it was opened by where the system does not say.
  std::string path(const char* symbol_name) const;

 private:
  std::string name_, error_;
  void* handle_ = nullptr;
};

// The folder of the running program; empty where the system does not say.
std::string program_folder();

}  // namespace anneal
