// Any bytes as an IDX file: what is accepted fills the file.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>

#include "io/layout.h"

using namespace anneal::io;

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Parsed<Layout> parsed = parse_idx(std::as_bytes(std::span(data, size)), {});
  if (const auto* problem = std::get_if<std::string>(&parsed)) {
    require(!problem->empty() && problem->size() < 10'000, "no message, or one without bound");
    return 0;
  }
  const auto& layout = std::get<Layout>(parsed);
  require(layout.begin <= layout.end && layout.end == size, "outside the file");
  require(layout.shape.size() <= 32, "too many axes");
  require(byte_count(layout.dtype, layout.shape) == layout.end - layout.begin, "other bytes");
  return 0;
}
