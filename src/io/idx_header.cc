// The header of an IDX file: two zeros, a code of the dtype, the rank, then the sizes. Numbers have
// their most significant byte first.
#include <array>

#include <fmt/format.h>

#include "io/layout.h"
#include "ir/dtype.h"

namespace anneal::io {
namespace {

constexpr std::array kDTypes{
    std::pair{0x08, DType::U8},  std::pair{0x09, DType::I8},  std::pair{0x0b, DType::I16},
    std::pair{0x0c, DType::I32}, std::pair{0x0d, DType::F32}, std::pair{0x0e, DType::F64},
};

}  // namespace

Parsed<Layout> parse_idx(std::span<const std::byte> file, const Limits& limits) {
  auto byte = [&](size_t i) { return std::to_integer<uint32_t>(file[i]); };
  if (file.size() >= 2 && byte(0) == 0x1f && byte(1) == 0x8b)
    return "it is compressed: unpack it with gunzip";
  if (file.size() < 4 || byte(0) != 0 || byte(1) != 0) return "it is no IDX file";
  Layout layout;
  bool known = false;
  for (const auto& [code, dtype] : kDTypes)
    if (byte(2) == static_cast<uint32_t>(code)) {
      layout.dtype = dtype;
      known = true;
    }
  if (!known) return fmt::format("no dtype has the code {}", byte(2));
  const size_t rank = byte(3), start = 4 + 4 * rank;
  if (rank > limits.rank) return fmt::format("it has {} axes, {} are allowed", rank, limits.rank);
  if (file.size() < start) return "it is cut off in its header";
  for (size_t i = 4; i < start; i += 4)
    layout.shape.push_back(byte(i) << 24 | byte(i + 1) << 16 | byte(i + 2) << 8 | byte(i + 3));
  const std::optional<uint64_t> size = byte_count(layout.dtype, layout.shape);
  if (!size || *size != file.size() - start)
    return fmt::format("{} bytes follow the header, its shape has {}", file.size() - start,
                       size ? std::to_string(*size) : "too many to count");
  layout.swapped = byte_size(layout.dtype) > 1;
  layout.begin = start;
  layout.end = file.size();
  return layout;
}

}  // namespace anneal::io
