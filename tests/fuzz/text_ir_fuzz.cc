// Any text: accepted text prints to text that is accepted again and prints the same, and what was
// read is well formed. Limits are small, so that a slow input is a finding.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/graph.h"
#include "ir/print.h"
#include "ir/verify.h"

using namespace anneal;

namespace {

using Roots = std::vector<NodeRef>;

constexpr ParseLimits kLimits{.text_bytes = 1 << 16,
                              .nodes = 20'000,
                              .rank = 32,
                              .string_bytes = 1 << 12,
                              .index_work = 100'000};

void require(bool holds, const char* what, const std::string& text) {
  if (holds) return;
  std::fprintf(stderr, "%s\n%s\n", what, text.c_str());
  std::abort();
}

Roots parse_again(const std::string& text) {
  auto result = parse(text);
  require(std::holds_alternative<Roots>(result), "printed text is refused", text);
  return std::get<Roots>(result);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Graph graph;
  GraphScope scope(graph);
  auto result = parse({reinterpret_cast<const char*>(data), size}, kLimits);
  if (const ParseError* error = std::get_if<ParseError>(&result)) {
    require(error->line > 0 && error->column > 0 && !error->message.empty(), "no place", "");
    require(error->message.size() < 200'000, "a message without bound", "");
    return 0;
  }
  const Roots& roots = std::get<Roots>(result);
  const std::string text = print(roots);
  const std::string problem = verify(roots, kTensorStage);
  require(problem.empty(), problem.c_str(), text);
  require(parse_again(text) == roots, "other nodes came back", text);
  for (NodeRef root : roots)
    require(!type_text(root).empty() && !to_text(root).empty(), "no text", text);

  Graph fresh;
  GraphScope inner(fresh);
  const Roots copy = parse_again(text);
  require(print(copy) == text, "not a fixpoint", text);
  require(copy.size() == roots.size(), "other roots", text);
  for (size_t i = 0; i < copy.size(); ++i)
    require(copy[i]->key == roots[i]->key, "other keys", text);
  return 0;
}
