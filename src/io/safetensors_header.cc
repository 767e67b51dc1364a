// The header of a safetensors file: 8 bytes of length, then JSON
// {"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},..}. Bytes follow without gaps.
#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

#include <fmt/format.h>

#include "base/checked.h"
#include "io/json_text.h"
#include "io/layout.h"
#include "ir/dtype.h"

namespace anneal::io {
namespace {

// In the order of the package.
constexpr std::array kDTypes{
    std::pair{DType::Bool, "BOOL"},      std::pair{DType::U8, "U8"},
    std::pair{DType::I8, "I8"},          std::pair{DType::F8E5M2, "F8_E5M2"},
    std::pair{DType::F8E4M3, "F8_E4M3"}, std::pair{DType::I16, "I16"},
    std::pair{DType::U16, "U16"},        std::pair{DType::F16, "F16"},
    std::pair{DType::BF16, "BF16"},      std::pair{DType::I32, "I32"},
    std::pair{DType::U32, "U32"},        std::pair{DType::F32, "F32"},
    std::pair{DType::F64, "F64"},        std::pair{DType::I64, "I64"},
    std::pair{DType::U64, "U64"},
};
static_assert(kDTypes.size() + 1 == kDTypeCount);  // all but Index

class Reader {
 public:
  Reader(std::string_view text, const Limits& limits) : json_(text), limits_(limits) {}

  // Offsets count from the first byte after the header.
  Parsed<SafetensorsHeader> read() {
    if (json_.expect('{') && !json_.accept('}')) {
      do {
        entry();
      } while (!json_.failed() && json_.accept(','));
      if (!json_.failed()) json_.expect('}');
    }
    if (!json_.failed() && !json_.at_end()) json_.fail("more text after the end");
    if (const auto& error = json_.error())
      return fmt::format("its header is broken at line {}, column {}: {}", error->at.line,
                         error->at.column, error->message);
    return std::move(header_);
  }

 private:
  void entry() {
    std::optional<std::string> name = json_.string(limits_.string_bytes);
    if (!name || !json_.expect(':')) return;
    if (!names_.insert(*name).second)
      json_.fail(fmt::format("{} is there twice", quote(*name)));
    else if (*name == "__metadata__")
      metadata();
    else if (header_.tensors.size() >= limits_.tensors)
      json_.fail(fmt::format("more than {} tensors", limits_.tensors));
    else if (std::optional<Layout> found = layout())
      header_.tensors.emplace_back(std::move(*name), std::move(*found));
  }

  void metadata() {
    if (!json_.expect('{') || json_.accept('}')) return;
    do {
      std::optional<std::string> key = json_.string(limits_.string_bytes);
      if (!key || !json_.expect(':')) return;
      std::optional<std::string> value = json_.string(limits_.string_bytes);
      if (!value) return;
      if (header_.metadata.size() >= limits_.tensors)
        return json_.fail(fmt::format("more than {} entries of metadata", limits_.tensors));
      header_.metadata.emplace_back(std::move(*key), std::move(*value));
    } while (json_.accept(','));
    json_.expect('}');
  }

  std::optional<Layout> layout() {
    Layout result;
    bool dtype = false, shape = false, offsets = false;
    if (!json_.expect('{')) return {};
    do {
      std::optional<std::string> key = json_.string(limits_.string_bytes);
      if (!key || !json_.expect(':')) return {};
      if (*key == "dtype" && !dtype)
        dtype = read_dtype(result);
      else if (*key == "shape" && !shape)
        shape = read_numbers(result.shape, limits_.rank);
      else if (*key == "data_offsets" && !offsets)
        offsets = read_offsets(result);
      else
        json_.fail(fmt::format("{} in the description of a tensor", quote(*key)));
      if (json_.failed()) return {};
    } while (json_.accept(','));
    if (!json_.expect('}')) return {};
    if (dtype && shape && offsets) return result;
    json_.fail("a tensor needs dtype, shape and data_offsets");
    return {};
  }

  bool read_dtype(Layout& result) {
    std::optional<std::string> text = json_.string(limits_.string_bytes);
    if (!text) return false;
    for (const auto& [dtype, name] : kDTypes)
      if (*text == name) {
        result.dtype = dtype;
        return true;
      }
    json_.fail(fmt::format("the dtype {} is not known", quote(*text)));
    return false;
  }

  bool read_numbers(std::vector<int64_t>& numbers, uint64_t most) {
    if (!json_.expect('[')) return false;
    if (json_.accept(']')) return true;
    do {
      if (numbers.size() >= most) {
        json_.fail(fmt::format("more than {} numbers", most));
        return false;
      }
      std::optional<int64_t> number = json_.whole();
      if (!number) return false;
      numbers.push_back(*number);
    } while (json_.accept(','));
    return json_.expect(']');
  }

  bool read_offsets(Layout& result) {
    std::vector<int64_t> offsets;
    if (!read_numbers(offsets, 2)) return false;
    if (offsets.size() != 2) {
      json_.fail("data_offsets are two numbers");
      return false;
    }
    result.begin = static_cast<uint64_t>(offsets[0]);
    result.end = static_cast<uint64_t>(offsets[1]);
    return true;
  }

  JsonText json_;
  const Limits& limits_;
  SafetensorsHeader header_;
  std::unordered_set<std::string> names_;
};

// Whether the tensors fill the bytes after the header exactly; else what is wrong.
std::string problem_of(const SafetensorsHeader& header, uint64_t bytes) {
  uint64_t expected = 0;
  for (const auto& [name, layout] : header.tensors) {
    const std::optional<uint64_t> size = byte_count(layout.dtype, layout.shape);
    if (layout.begin != expected || layout.end < layout.begin)
      return fmt::format("{} is at bytes {} to {}, but the one before it ends at {}", quote(name),
                         layout.begin, layout.end, expected);
    if (!size || *size != layout.end - layout.begin)
      return fmt::format("{} has {} bytes, which do not fill its shape", quote(name),
                         layout.end - layout.begin);
    expected = layout.end;
  }
  if (expected > bytes)
    return fmt::format("it is cut off: its tensors have {} bytes, and {} are there", expected,
                       bytes);
  if (expected < bytes) return fmt::format("{} bytes belong to no tensor", bytes - expected);
  return "";
}

}  // namespace

std::optional<uint64_t> byte_count(DType dtype, std::span<const int64_t> shape) {
  std::optional<int64_t> count = static_cast<int64_t>(byte_size(dtype));
  for (int64_t size : shape) {
    if (size < 0) return {};
    count = checked_mul(*count, size);
    if (!count) return {};
  }
  return static_cast<uint64_t>(*count);
}

Parsed<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file, const Limits& limits) {
  uint64_t length = 0;
  if (file.size() < sizeof length)
    return fmt::format("it has {} bytes, too few for a safetensors file", file.size());
  std::memcpy(&length, file.data(), sizeof length);
  const uint64_t rest = file.size() - sizeof length;
  if (length > limits.header_bytes)
    return fmt::format(
        "its header says to have {} bytes, {} are allowed: it is no safetensors file", length,
        limits.header_bytes);
  if (length > rest)
    return fmt::format("it is cut off: its header has {} bytes, and {} are there", length, rest);
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + sizeof length, length);
  Parsed<SafetensorsHeader> parsed = Reader(text, limits).read();
  if (auto* header = std::get_if<SafetensorsHeader>(&parsed)) {
    std::ranges::stable_sort(header->tensors, {}, [](const auto& entry) {
      return std::pair(entry.second.begin, entry.second.end);
    });
    if (std::string problem = problem_of(*header, rest - length); !problem.empty()) return problem;
    for (auto& [name, layout] : header->tensors) {
      layout.begin += sizeof length + length;
      layout.end += sizeof length + length;
    }
  }
  return parsed;
}

int safetensors_order(DType dtype) {
  int place = 0;
  while (kDTypes[static_cast<size_t>(place)].first != dtype) ++place;
  return place;
}

std::string safetensors_header(std::span<const std::pair<std::string, Layout>> tensors,
                               const Metadata& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (size_t i = 0; i < metadata.size(); ++i)
      text += fmt::format("{}{}:{}", i ? "," : "", json_quote(metadata[i].first),
                          json_quote(metadata[i].second));
    text += "}";
  }
  for (const auto& [name, layout] : tensors)
    text += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        text.size() > 1 ? "," : "", json_quote(name),
                        kDTypes[static_cast<size_t>(safetensors_order(layout.dtype))].second,
                        fmt::join(layout.shape, ","), layout.begin, layout.end);
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::string header(sizeof length, '\0');
  std::memcpy(header.data(), &length, sizeof length);
  return header + text;
}

}  // namespace anneal::io
