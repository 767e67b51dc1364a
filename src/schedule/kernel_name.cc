#include "schedule/kernel_name.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/call_site.h"

namespace anneal {

std::string kernel_name(const Kernel& kernel) {
  std::map<std::string_view, int> counts;
  for (NodeRef node : kernel.nodes)
    if (node->origin && !is_movement(node->op)) ++counts[node->origin->operation];
  std::vector<std::pair<int, std::string_view>> ranked;
  for (const auto& [operation, count] : counts) ranked.emplace_back(-count, operation);
  std::ranges::sort(ranked);
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(ranked.size(), kShown); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : "+", ranked[i].second);
  return ranked.size() > kShown ? text + "+…" : text;
}

}  // namespace anneal
