// What a parser finds in a file: where tensors are, not their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <anneal/dtype.h>
#include <anneal/io.h>

namespace anneal::io {

// A stretch of a file.
struct Layout {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes of the file
  bool columns_first = false;   // the first axis is the one that varies fastest
  bool swapped = false;         // the most significant byte comes first
};

template <typename T>
using Parsed = std::variant<T, std::string>;  // or what is wrong with the file

// How many bytes a tensor has; nothing when that is no number of 63 bits.
std::optional<uint64_t> byte_count(DType dtype, std::span<const int64_t> shape);

struct SafetensorsHeader {
  std::vector<std::pair<std::string, Layout>> tensors;  // in the order of their bytes
  Metadata metadata;
};
Parsed<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file, const Limits& limits);
// The header of a file with these tensors in this order, its length included.
std::string safetensors_header(std::span<const std::pair<std::string, Layout>> tensors,
                               const Metadata& metadata);
// Where the package writes a dtype: later ones come first in a file.
int safetensors_order(DType dtype);

Parsed<Layout> parse_npy(std::span<const std::byte> file, const Limits& limits);
// Nothing for dtypes that NumPy does not have.
std::optional<std::string> npy_header(DType dtype, std::span<const int64_t> shape);

Parsed<Layout> parse_idx(std::span<const std::byte> file, const Limits& limits);

}  // namespace anneal::io
