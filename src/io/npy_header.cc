// The header of an npy file: "\x93NUMPY", version, length, then a Python dictionary
// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } filled up with blanks.
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/cursor.h"
#include "io/layout.h"
#include "ir/dtype.h"

namespace anneal::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

constexpr std::array kDTypes{
    std::pair{DType::Bool, "b1"}, std::pair{DType::I8, "i1"},  std::pair{DType::I16, "i2"},
    std::pair{DType::I32, "i4"},  std::pair{DType::I64, "i8"}, std::pair{DType::U8, "u1"},
    std::pair{DType::U16, "u2"},  std::pair{DType::U32, "u4"}, std::pair{DType::U64, "u8"},
    std::pair{DType::F16, "f2"},  std::pair{DType::F32, "f4"}, std::pair{DType::F64, "f8"},
};

class Reader {
 public:
  Reader(std::string_view text, const Limits& limits) : cursor_(text), limits_(limits) {}

  Parsed<Layout> read() {
    bool dtype = false, order = false, shape = false;
    if (cursor_.expect('{')) {
      while (!cursor_.failed() && !next_is('}')) {
        const std::string key = string();
        if (!next_is(':')) cursor_.fail("expected ':', found " + cursor_.found());
        if (key == "descr" && !dtype)
          dtype = read_dtype();
        else if (key == "fortran_order" && !order)
          order = read_order();
        else if (key == "shape" && !shape)
          shape = read_shape();
        else
          cursor_.fail(fmt::format("{} in the header", quote(key)));
        if (!next_is(',') && !cursor_.failed() && !at('}'))
          cursor_.fail("expected ',', found " + cursor_.found());
      }
      if (!cursor_.failed() && !(dtype && order && shape))
        cursor_.fail("descr, fortran_order and shape are needed");
    }
    if (const auto& error = cursor_.error())
      return fmt::format("its header is broken at column {}: {}", error->at.column, error->message);
    return layout_;
  }

 private:
  bool at(char c) {
    cursor_.skip_blanks();
    return cursor_.peek() == c;
  }
  bool next_is(char c) {
    cursor_.skip_blanks();
    return cursor_.accept(c);
  }

  // Names have no escapes.
  std::string string() {
    cursor_.skip_blanks();
    const char mark = cursor_.peek();
    if (mark != '\'' && mark != '"') {
      cursor_.fail("expected a name in quotes, found " + cursor_.found());
      return "";
    }
    cursor_.advance();
    const std::string_view text =
        cursor_.take_while([](char c) { return c != '\'' && c != '"' && c != '\n' && c != '\\'; });
    if (!cursor_.expect(mark)) return "";
    return std::string(text.substr(0, 64));
  }

  bool read_dtype() {
    if (at('[')) {
      cursor_.fail("records of several fields cannot be a tensor");
      return false;
    }
    const std::string text = string();
    if (cursor_.failed()) return false;
    const char endian = text.empty() ? ' ' : text[0];
    for (const auto& [dtype, name] : kDTypes) {
      if (text.size() != 3 || text.substr(1) != name) continue;
      const bool one_byte = byte_size(dtype) == 1;
      if (endian != '<' && endian != '>' && !(one_byte && endian == '|')) continue;
      layout_.dtype = dtype;
      layout_.swapped = endian == '>' && !one_byte;
      return true;
    }
    cursor_.fail(fmt::format("no dtype of tensors is {}", quote(text)));
    return false;
  }

  bool read_order() {
    cursor_.skip_blanks();
    layout_.columns_first = cursor_.accept("True");
    return layout_.columns_first || cursor_.expect("False");
  }

  bool read_shape() {
    if (!next_is('(')) cursor_.fail("expected '(', found " + cursor_.found());
    while (!cursor_.failed() && !next_is(')')) {
      cursor_.skip_blanks();
      const std::optional<int64_t> size = cursor_.integer();
      if (!size) return false;
      if (*size < 0) cursor_.fail(fmt::format("a size of {}", *size));
      layout_.shape.push_back(*size);
      if (layout_.shape.size() > limits_.rank)
        cursor_.fail(fmt::format("more than {} axes", limits_.rank));
      if (!next_is(',') && !at(')')) cursor_.fail("expected ')', found " + cursor_.found());
    }
    return !cursor_.failed();
  }

  Cursor cursor_;
  const Limits& limits_;
  Layout layout_;
};

}  // namespace

Parsed<Layout> parse_npy(std::span<const std::byte> file, const Limits& limits) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.size() < 10 || !text.starts_with(kMagic)) return "it is no npy file";
  const int version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3) return fmt::format("its version is {}, not 1 to 3", version);
  const size_t length_bytes = version == 1 ? 2 : 4, start = 8 + length_bytes;
  uint32_t length = 0;
  if (text.size() < start) return "it is cut off in its header";
  std::memcpy(&length, text.data() + 8, length_bytes);
  if (length > limits.header_bytes)
    return fmt::format("its header has {} bytes, {} are allowed", length, limits.header_bytes);
  if (length > text.size() - start)
    return fmt::format("it is cut off: its header has {} bytes, and {} are there", length,
                       text.size() - start);
  Parsed<Layout> parsed = Reader(text.substr(start, length), limits).read();
  if (auto* layout = std::get_if<Layout>(&parsed)) {
    const std::optional<uint64_t> size = byte_count(layout->dtype, layout->shape);
    const uint64_t there = text.size() - start - length;
    if (!size || *size != there)
      return fmt::format("{} bytes follow the header, its shape has {}", there,
                         size ? std::to_string(*size) : "too many to count");
    layout->begin = start + length;
    layout->end = text.size();
  }
  return parsed;
}

// NumPy leaves room for a first size of 21 digits, and starts the data at a multiple of 64.
std::optional<std::string> npy_header(DType dtype, std::span<const int64_t> shape) {
  for (const auto& [known, name] : kDTypes) {
    if (known != dtype) continue;
    std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   byte_size(dtype) == 1 ? '|' : '<', name, fmt::join(shape, ", "),
                                   shape.size() == 1 ? "," : "");
    if (!shape.empty()) text.append(21 - std::to_string(shape[0]).size(), ' ');
    const bool short_form = text.size() + 1 + 64 < 65536;
    const size_t before = short_form ? 10 : 12;
    text.append((64 - (before + text.size() + 1) % 64) % 64, ' ');
    text += '\n';
    const auto length = static_cast<uint32_t>(text.size());
    std::string header(kMagic);
    header += static_cast<char>(short_form ? 1 : 2);
    header += '\0';
    header.append(reinterpret_cast<const char*>(&length), short_form ? 2 : 4);
    return header + text;
  }
  return {};
}

}  // namespace anneal::io
