#include "codegen/wgsl/workgroup_reduction.h"

#include <algorithm>

#include <fmt/format.h>

namespace anneal::wgsl {

std::string WorkgroupReductions::function(const Instruction& combine, const std::string& memory) {
  const Combination wanted{combine.op, combine.dtype, combine.subgroup,
                           combine.subgroup < threads_ ? memory : ""};
  const std::string first = fmt::format("combine_{}_{}", name(combine.op), name(combine.dtype));
  std::string name = first;
  for (int others = 1; used_.contains(name) && used_.at(name) != wanted; ++others)
    name = fmt::format("{}_{}", first, others);
  used_.emplace(name, wanted);
  static_cast<void>(both(wanted, "a", "b"));  // for the functions it needs
  return name;
}

bool WorkgroupReductions::use_subgroups() const {
  return std::ranges::any_of(used_, [](const auto& each) { return each.second.subgroup > 1; });
}

std::string WorkgroupReductions::text() {
  std::string text;
  for (const auto& [function, each] : used_) {
    const std::string type = arithmetic_.type(each.dtype);
    text += fmt::format("fn {}(value: {}, lane: u32) -> {} {{\n", function, type, type);
    text += each.subgroup > 1 ? between_subgroups(each) : through_memory(each);
    text += "}\n";
  }
  return text;
}

std::string WorkgroupReductions::between_subgroups(const Combination& each) {
  std::string text = "  var total = value;\n";
  for (int distance = each.subgroup / 2; distance > 0; distance /= 2)
    text +=
        fmt::format("  total = {};\n",
                    both(each, "total", fmt::format("subgroupShuffleXor(total, {}u)", distance)));
  if (each.subgroup < threads_) {
    text += fmt::format(
        "  workgroupBarrier();\n"
        "  if (lane % {0}u == 0u) {{ {1}[lane / {0}u] = {2}; }}\n"
        "  workgroupBarrier();\n"
        "  total = {3};\n",
        each.subgroup, each.memory, kept(each, "total"), element(each, "0"));
    for (int i = 1; i < threads_ / each.subgroup; ++i)
      text += fmt::format("  total = {};\n", both(each, "total", element(each, std::to_string(i))));
  }
  return text + "  return total;\n";
}

// Upper half into lower half until one is left.
std::string WorkgroupReductions::through_memory(const Combination& each) {
  return fmt::format(
      "  workgroupBarrier();\n"
      "  {}[lane] = {};\n"
      "  for (var half = {}u; half > 0u; half = half >> 1u) {{\n"
      "    workgroupBarrier();\n"
      "    if (lane < half) {{ {}[lane] = {}; }}\n"
      "  }}\n"
      "  workgroupBarrier();\n"
      "  return {};\n",
      each.memory, kept(each, "value"), threads_ / 2, each.memory,
      kept(each, both(each, element(each, "lane"), element(each, "lane + half"))),
      element(each, "0"));
}

// Memory has no bools.
std::string WorkgroupReductions::element(const Combination& each, const std::string& at) const {
  const std::string element = fmt::format("{}[{}]", each.memory, at);
  return is_bool(each.dtype) ? fmt::format("({} != 0u)", element) : element;
}

std::string WorkgroupReductions::kept(const Combination& each, const std::string& value) const {
  return is_bool(each.dtype) ? fmt::format("u32({})", value) : value;
}

std::string WorkgroupReductions::both(const Combination& each, const std::string& a,
                                      const std::string& b) {
  const Operand operands[] = {{a, each.dtype}, {b, each.dtype}};
  return arithmetic_.compute(each.op, each.dtype, operands);
}

}  // namespace anneal::wgsl
