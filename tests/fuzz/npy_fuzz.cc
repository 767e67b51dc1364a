// Any bytes as an npy file: what is accepted fills the file, and the header written anew is
// accepted again and says the same.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>

#include "io/layout.h"

using namespace anneal::io;

namespace {

constexpr Limits kLimits{.header_bytes = 1 << 16};

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Parsed<Layout> parsed = parse_npy(std::as_bytes(std::span(data, size)), kLimits);
  if (const auto* problem = std::get_if<std::string>(&parsed)) {
    require(!problem->empty() && problem->size() < 10'000, "no message, or one without bound");
    return 0;
  }
  const auto& layout = std::get<Layout>(parsed);
  require(layout.begin <= layout.end && layout.end == size, "outside the file");
  require(byte_count(layout.dtype, layout.shape) == layout.end - layout.begin, "other bytes");
  std::string again = npy_header(layout.dtype, layout.shape).value();
  require(again.size() % 64 == 0, "not aligned");
  again.resize(again.size() + (layout.end - layout.begin));
  const Parsed<Layout> second = parse_npy(std::as_bytes(std::span(again)), kLimits);
  require(std::holds_alternative<Layout>(second), "the written header is refused");
  require(std::get<Layout>(second).dtype == layout.dtype, "another dtype");
  require(std::get<Layout>(second).shape == layout.shape, "another shape");
  return 0;
}
