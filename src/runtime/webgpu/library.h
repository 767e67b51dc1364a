// A webgpu.h library (Dawn or wgpu-native), found and loaded when the program runs.
#pragma once

#include <string>
#include <vector>

#include "base/os/shared_library.h"
#include "runtime/webgpu/abi.h"

namespace anneal::webgpu {

// Where one was looked for, and why it was not taken.
struct TriedLibrary {
  std::string name, reason;
};

class Library {
 public:
  // The one that ANNEAL_WEBGPU_LIB names, else the first that loads. A UserError says what was
  // tried and what to do. Loaded once in a process.
  static const Library& get();
  // The same, without an error: null where there is none. `tried` gets those that did not load.
  static const Library* find(std::vector<TriedLibrary>* tried);

  std::string path;
  bool of_2025 = false;  // the older of the two generations
  bool dawn = false;     // has Dawn's toggles
  // wgpu-native neither waits for futures nor makes pipelines asynchronously: it is asked again and
  // again, and makes them at once.
  bool polled = false;
  const abi::FeatureNumbers& features() const {
    return of_2025 ? abi::kFeatures2025 : abi::kFeatures;
  }
  // Can tell whether an adapter has units for matrices. Dawn of 2025 knew them in another form.
  bool knows_matrices() const { return dawn && !of_2025 && !polled && free_matrix_configs; }
  // Some of its structures are shorter than everybody else's.
  bool wgpu_native_of_2025() const { return of_2025 && polled; }
  std::string interface() const;  // for people to read

#define ANNEAL_WEBGPU_MEMBER(member, name, result, parameters) result(*member) parameters = nullptr;
  ANNEAL_WEBGPU_FUNCTIONS(ANNEAL_WEBGPU_MEMBER)
  ANNEAL_WEBGPU_EXTRA_FUNCTIONS(ANNEAL_WEBGPU_MEMBER)
#undef ANNEAL_WEBGPU_MEMBER

 private:
  explicit Library(const SharedLibrary& file);
  std::vector<std::string> missing_;  // functions

  friend class LibraryTable;
};

// Where `./dev webgpu` puts a library and drivers; empty where there is no home.
std::string install_folder();

// What to do when there is none, for errors and for people who ask.
std::string how_to_get_a_library();

}  // namespace anneal::webgpu
