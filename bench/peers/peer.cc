#include "peer.h"

#include <charconv>

namespace anneal::peers {
namespace {

std::vector<Offer>& offers() {
  static std::vector<Offer> list;
  return list;
}

}  // namespace

Registration::Registration(Offer offer) { offers().push_back(offer); }

std::vector<Contender> contenders(Words words) {
  std::vector<Contender> all;
  for (Offer offer : offers())
    for (Contender& contender : offer(words)) all.push_back(std::move(contender));
  return all;
}

bool parse_case(Words words, std::string_view kind, size_t sizes, Case& result) {
  if (words.size() != sizes + 2 || words[0] != kind) return false;
  result = {words[1], {}};
  for (const std::string& word : words.subspan(2)) {
    int64_t size = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), size);
    if (error != std::errc() || end != word.data() + word.size() || size < 0) return false;
    result.sizes.push_back(size);
  }
  return true;
}

void fill(std::span<float> values, size_t period) {
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (static_cast<float>(i % period) + 1) / static_cast<float>(period);
}

}  // namespace anneal::peers
