// Text as numbers, character by character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace anneal::io {

// The characters a model knows, in the order of their code points. A byte that is no UTF-8 is a
// character of its own, so that every file can be learned.
class Vocabulary {
 public:
  explicit Vocabulary(std::string_view text);
  explicit Vocabulary(std::vector<int32_t> characters);  // as characters() gave them

  const std::vector<int32_t>& characters() const { return characters_; }
  int64_t size() const { return static_cast<int64_t>(characters_.size()); }

  // A UserError names the first character it does not know.
  std::vector<int32_t> encode(std::string_view text) const;
  std::string decode(int32_t token) const;

 private:
  std::vector<int32_t> characters_;
};

// A small text of our own, for runs that are given none.
std::string_view built_in_text();

}  // namespace anneal::io
