// Tensors in files. Writing is atomic: a path holds the old file or the new one, whole. Reading
// trusts nothing: a file that is not what it says is an error before anything is allocated for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <anneal/state.h>

namespace anneal::io {

using Metadata = std::vector<std::pair<std::string, std::string>>;

// What readers accept at most.
struct Limits {
  uint64_t header_bytes = 100'000'000;
  uint64_t string_bytes = 1 << 20;
  uint64_t tensors = 1'000'000;
  uint64_t rank = 32;
  uint64_t text_bytes = uint64_t{1} << 30;
};

// ---- safetensors: named tensors of every dtype, as the Python package writes them

// An open file: tensors are read from it one by one.
class Safetensors {
 public:
  explicit Safetensors(const std::string& path, const Limits& limits = {},
                       Location where = Location::current());
  ~Safetensors();
  Safetensors(Safetensors&& other) noexcept;
  Safetensors& operator=(Safetensors&& other) noexcept;

  std::vector<std::string> names() const;  // in the order of their bytes
  bool contains(std::string_view name) const;
  Tensor tensor(std::string_view name, Location where = Location::current()) const;
  State state(Location where = Location::current()) const;  // all of them
  const Metadata& metadata() const&;
  Metadata metadata() &&;  // of a temporary: for (auto& pair : Safetensors(path).metadata())

 private:
  struct File;
  std::unique_ptr<File> file_;
};
State load_safetensors(const std::string& path, Location where = Location::current());
void save_safetensors(const std::string& path, const State& state, const Metadata& metadata = {},
                      Location where = Location::current());

// The same from and to memory: of what came over a network, or where there are no files.
State read_safetensors(std::span<const std::byte> file, const Limits& limits = {},
                       Location where = Location::current());
std::vector<std::byte> write_safetensors(const State& state, const Metadata& metadata = {},
                                         Location where = Location::current());

// ---- NumPy's npy: one tensor; bool, integers, f16, f32, f64

Tensor load_npy(const std::string& path, const Limits& limits = {},
                Location where = Location::current());
void save_npy(const std::string& path, const Tensor& tensor, Location where = Location::current());
Tensor read_npy(std::span<const std::byte> file, const Limits& limits = {},
                Location where = Location::current());

// ---- IDX, the format of MNIST: one tensor of u8, i8, i16, i32, f32 or f64

Tensor load_idx(const std::string& path, const Limits& limits = {},
                Location where = Location::current());

// ---- Text

std::string load_text(const std::string& path, const Limits& limits = {},
                      Location where = Location::current());
void save_text(const std::string& path, std::string_view text,
               Location where = Location::current());

}  // namespace anneal::io
