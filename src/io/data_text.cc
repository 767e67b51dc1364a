#include "io/data_text.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/call_site.h"
#include "corpus.h"

namespace anneal::io {
namespace {

// Where no character can be: bytes that are not UTF-8 go here.
constexpr int32_t kBareBytes = 0xdc00;

struct Character {
  int32_t code;
  size_t bytes;
};

Character first_character(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  const size_t bytes = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : 4;
  if (bytes == 1) return {lead, 1};
  const Character bare{kBareBytes + lead, 1};
  if ((bytes == 4 && lead >> 3 != 30) || text.size() < bytes) return bare;
  int32_t code = lead & (0xff >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if (byte(i) >> 6 != 2) return bare;
    code = code << 6 | (byte(i) & 0x3f);
  }
  // What could be written shorter, or is half of a pair, would not come back as it was.
  constexpr int32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool valid =
      code >= kLeast[bytes] && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000);
  return valid ? Character{code, bytes} : bare;
}

template <typename F>
void for_each_character(std::string_view text, F use) {
  while (!text.empty()) {
    const Character character = first_character(text);
    use(character.code);
    text.remove_prefix(character.bytes);
  }
}

std::string to_utf8(int32_t code) {
  if (code >= kBareBytes && code < kBareBytes + 256) return {static_cast<char>(code - kBareBytes)};
  if (code < 0x80) return {static_cast<char>(code)};
  std::string text;
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  text += static_cast<char>((0xff00 >> (more + 1) & 0xff) | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
  return text;
}

}  // namespace

Vocabulary::Vocabulary(std::string_view text) {
  std::set<int32_t> known;
  for_each_character(text, [&](int32_t code) { known.insert(code); });
  characters_.assign(known.begin(), known.end());
}

Vocabulary::Vocabulary(std::vector<int32_t> characters) : characters_(std::move(characters)) {
  const bool in_range =
      std::ranges::all_of(characters_, [](int32_t code) { return code >= 0 && code <= 0x10ffff; });
  if (characters_.empty() || !in_range || !std::ranges::is_sorted(characters_))
    fail("the vocabulary is no list of characters", "it is damaged: take another file");
}

std::vector<int32_t> Vocabulary::encode(std::string_view text) const {
  std::vector<int32_t> tokens;
  tokens.reserve(text.size());
  for_each_character(text, [&](int32_t code) {
    const auto place = std::ranges::lower_bound(characters_, code);
    if (place == characters_.end() || *place != code)
      fail(
          fmt::format("the model does not know the character '{}' (U+{:04X})", to_utf8(code), code),
          fmt::format("it knows the {} characters of the text it was trained on", size()));
    tokens.push_back(static_cast<int32_t>(place - characters_.begin()));
  });
  return tokens;
}

std::string Vocabulary::decode(int32_t token) const {
  return to_utf8(characters_.at(static_cast<size_t>(token)));
}

std::string_view built_in_text() { return kCorpus; }

}  // namespace anneal::io
