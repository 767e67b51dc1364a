// Layout: magic, length and checksum of what follows; then the identity, the symbols, the code.
// Numbers are eight bytes, the lowest first.
#include "runtime/cpu/image_file.h"

#include <cstring>

#include "base/key.h"

namespace anneal {
namespace {

constexpr std::string_view kMagic = "anneal kernel 1\n";
constexpr size_t kHeaderBytes = kMagic.size() + 3 * sizeof(uint64_t);
constexpr uint64_t kChecksumSeed = 0x6b65726e656c;

class Writer {
 public:
  void number(uint64_t value) {
    for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }
  void text(std::string_view value) {
    number(value.size());
    bytes_ += value;
  }
  void raw(std::string_view value) { bytes_ += value; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// After the first read beyond the end every answer is empty, and ok() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  uint64_t number() {
    const std::string_view bytes = raw(8);
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    }
    return value;
  }
  std::string_view text() { return raw(number()); }
  std::string_view raw(uint64_t count) {
    ok_ &= count <= rest_.size();
    if (!ok_) return {};
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

Key checksum(std::string_view body) {
  KeyBuilder key(kChecksumSeed);
  key.add(body);
  return key.finish();
}

void write_symbols(Writer& writer, const std::vector<ImageSymbol>& symbols) {
  writer.number(symbols.size());
  for (const ImageSymbol& symbol : symbols) {
    writer.text(symbol.name);
    writer.number(symbol.offset);
  }
}

std::vector<ImageSymbol> read_symbols(Reader& reader) {
  std::vector<ImageSymbol> symbols;
  const uint64_t count = reader.number();
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    std::string name(reader.text());
    symbols.push_back({std::move(name), reader.number()});
  }
  return symbols;
}

bool all_below(const std::vector<ImageSymbol>& symbols, uint64_t end) {
  for (const ImageSymbol& symbol : symbols) {
    if (symbol.offset >= end) return false;
  }
  return true;
}

}  // namespace

std::string write_image(const CodeImage& image, std::string_view identity) {
  Writer body;
  body.text(identity);
  write_symbols(body, image.functions);
  write_symbols(body, image.imports);
  body.text({reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()});
  const std::string bytes = body.take();
  const Key sum = checksum(bytes);
  Writer file;
  file.raw(kMagic);
  file.number(bytes.size());
  file.number(sum.high);
  file.number(sum.low);
  file.raw(bytes);
  return file.take();
}

std::optional<CodeImage> read_image(std::string_view file, std::string_view identity) {
  Reader header(file.substr(0, kHeaderBytes));
  if (header.raw(kMagic.size()) != kMagic) return std::nullopt;
  const uint64_t length = header.number();
  Key sum;
  sum.high = header.number();
  sum.low = header.number();
  if (!header.ok() || file.size() - kHeaderBytes != length) return std::nullopt;
  const std::string_view bytes = file.substr(kHeaderBytes);
  if (checksum(bytes) != sum) return std::nullopt;

  Reader body(bytes);
  if (body.text() != identity) return std::nullopt;
  CodeImage image;
  image.functions = read_symbols(body);
  image.imports = read_symbols(body);
  const std::string_view code = body.text();
  const bool sound =
      body.ok() && body.at_end() && image.functions.size() == 1 &&
      all_below(image.functions, code.size()) &&
      (image.imports.empty() || (code.size() >= 8 && all_below(image.imports, code.size() - 7)));
  if (!sound) return std::nullopt;
  image.bytes.resize(code.size());
  std::memcpy(image.bytes.data(), code.data(), code.size());
  return image;
}

}  // namespace anneal
