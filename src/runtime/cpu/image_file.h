// A linked kernel as the bytes of a file, checked on the way back in: a file that is cut off,
// damaged, of another format or of another kernel is no image. Must not touch the disk itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "codegen/llvm/link.h"

namespace anneal {

// `identity` says whose image it is, in every respect that matters.
std::string write_image(const CodeImage& image, std::string_view identity);
std::optional<CodeImage> read_image(std::string_view file, std::string_view identity);

}  // namespace anneal
