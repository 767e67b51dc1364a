#include "runtime/capture/frozen_values.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/call_site.h"
#include "ir/graph.h"
#include "ir/node_map.h"
#include "ir/print.h"
#include "ir/same_arg.h"

namespace anneal {
namespace {

constexpr const char* kWayOut =
    "pass it as an input, or keep it in a parameter that the function assigns to";

std::string place_of(NodeRef node) {
  if (!node->origin) return "";
  std::string text = fmt::format(" in {} at {}:{}", node->origin->operation, node->origin->file,
                                 node->origin->line);
  if (!node->origin->layer.empty()) text += fmt::format(" (layer {})", node->origin->layer);
  return text;
}

[[noreturn]] void report(NodeRef a, NodeRef b) {
  if (a->op == Op::Const && b->op == Op::Const && a->dtype == b->dtype)
    fail(
        fmt::format("the number {}{} was {} when the function was captured again: it would stay {}",
                    to_text(a->scalar()), place_of(a), to_text(b->scalar()), to_text(a->scalar())),
        kWayOut);
  if (a->op == Op::Buffer && b->op == Op::Buffer) {
    const std::string_view name = a->arg.symbol->text();
    fail(name.empty()
             ? fmt::format("the function makes a tensor from data of the host{}, each time another",
                           place_of(a))
             : fmt::format("the function makes the parameter \"{}\"{} each time it is called", name,
                           place_of(a)),
         name.empty() ? "pass it as an input, or make it outside of the function"
                      : "make it outside of the function");
  }
  fail(fmt::format("the function builds {}{} once and {}{} when captured again", name(a->op),
                   place_of(a), name(b->op), place_of(b)),
       "what it builds must follow from its arguments alone; compile a function for each case");
}

[[noreturn]] void report_computed(NodeRef value) {
  fail(fmt::format("the function computes a value{} while it is captured: it would stay what it is",
                   place_of(value)),
       "leave realize(), evaluate() and reads to the caller: what the function builds is computed "
       "at each call");
}

// Memory without a name never changes, so what is equal now stays so.
bool same_data(NodeRef a, NodeRef b) {
  if (a->op != Op::Buffer || a->arg.symbol->length != 0 || b->arg.symbol->length != 0) return false;
  const Storage* first = current_graph().stored(a);
  const Storage* second = current_graph().stored(b);
  return first && second && std::ranges::equal(first->read(), second->read());
}

}  // namespace

bool is_draw(NodeRef node) {
  return node->op == Op::Threefry &&
         std::ranges::all_of(node->sources().subspan(1),
                             [](NodeRef word) { return word->is_const(); });
}

void check_same_program(std::span<const NodeRef> first, std::span<const NodeRef> second,
                        bool all_from_host) {
  if (first.size() != second.size())
    fail(fmt::format("the function gives {} results and updates once and {} when captured again",
                     first.size(), second.size()),
         "what it builds must follow from its arguments alone; compile a function for each case");
  // Sources before users, so that the first difference is where it comes from.
  struct Pair {
    NodeRef a, b;
    bool open;
  };
  std::vector<Pair> stack;
  NodeMap<NodeRef> same;
  for (size_t i = first.size(); i-- > 0;) stack.push_back({first[i], second[i], false});
  while (!stack.empty()) {
    const Pair pair = stack.back();
    const auto [a, b, open] = pair;
    stack.pop_back();
    if (a == b) continue;
    const NodeRef* known = same.find(a);
    if (known && *known == b) continue;
    const size_t compared = is_draw(a) && is_draw(b) ? 1 : a->source_count;
    if (a->op != b->op || a->dtype != b->dtype || a->source_count != b->source_count) report(a, b);
    if (!open) {
      stack.push_back({a, b, true});
      for (size_t i = compared; i-- > 0;) stack.push_back({a->source(i), b->source(i), false});
      continue;
    }
    // The number of a mark says which one it is, not what it computes.
    if (!same_arg(a->op, a->arg, b->arg) && !kMarks.contains(a->op)) {
      if (!same_data(a, b)) report(a, b);
      if (!all_from_host) report_computed(a);
    }
    same[a] = b;
  }
}

}  // namespace anneal
