// Any bytes as a safetensors file: what is accepted lies within the file without gaps, and the
// header written anew is accepted again and says the same.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "io/layout.h"

using namespace anneal::io;

namespace {

constexpr Limits kLimits{.header_bytes = 1 << 16, .string_bytes = 1 << 10, .tensors = 1000};

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  Parsed<SafetensorsHeader> parsed = parse_safetensors(file, kLimits);
  if (const auto* problem = std::get_if<std::string>(&parsed)) {
    require(!problem->empty() && problem->size() < 10'000, "no message, or one without bound");
    return 0;
  }
  auto& header = std::get<SafetensorsHeader>(parsed);
  uint64_t at = header.tensors.empty() ? size : header.tensors[0].second.begin;
  const uint64_t start = at;
  for (auto& [name, layout] : header.tensors) {
    require(layout.begin == at && layout.end >= at && layout.end <= size, "outside the file");
    require(byte_count(layout.dtype, layout.shape) == layout.end - layout.begin, "other bytes");
    at = layout.end;
    layout.begin -= start;
    layout.end -= start;
  }
  require(at == size, "bytes of no tensor");

  std::string again = safetensors_header(header.tensors, header.metadata);
  require(again.size() % 8 == 0, "not aligned");
  const uint64_t length = again.size();
  again.resize(length + size - start);
  Limits wide = kLimits;  // escapes may take more room than they did
  wide.header_bytes = 1 << 24;
  Parsed<SafetensorsHeader> second = parse_safetensors(std::as_bytes(std::span(again)), wide);
  require(std::holds_alternative<SafetensorsHeader>(second), "the written header is refused");
  const auto& copy = std::get<SafetensorsHeader>(second);
  require(copy.metadata == header.metadata, "other metadata");
  require(copy.tensors.size() == header.tensors.size(), "other tensors");
  for (size_t i = 0; i < copy.tensors.size(); ++i) {
    require(copy.tensors[i].first == header.tensors[i].first, "another name");
    require(copy.tensors[i].second.dtype == header.tensors[i].second.dtype, "another dtype");
    require(copy.tensors[i].second.shape == header.tensors[i].second.shape, "another shape");
  }
  return 0;
}
