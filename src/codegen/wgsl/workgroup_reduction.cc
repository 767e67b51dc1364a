#include "codegen/wgsl/workgroup_reduction.h"

#include <algorithm>

#include <fmt/format.h>

namespace anneal::wgsl {

std::string WorkgroupReductions::function(Op op, DType dtype) {
  const std::string name = fmt::format("{}{}_{}", kPrefix, anneal::name(op), anneal::name(dtype));
  used_[name] = {op, dtype};
  const Operand halves[] = {{"a", dtype}, {"b", dtype}};
  static_cast<void>(arithmetic_.compute(op, dtype, halves));  // for the functions it needs
  return name;
}

bool WorkgroupReductions::use_subgroups() const {
  const bool exchanged = std::ranges::all_of(used_, [](const auto& each) {
    return !is_bool(each.second.second) && byte_size(each.second.second) <= 4;
  });
  return subgroup_ > 1 && threads_ % subgroup_ == 0 && !used_.empty() && exchanged;
}

// Upper half into lower half until one is left, the order that every device has.
std::string WorkgroupReductions::text() {
  std::string text;
  std::map<std::string, std::string> scratch;
  for (const auto& [function, what] : used_) {
    const std::string type = arithmetic_.type(what.second);
    const std::string kept = is_bool(what.second) ? "u32" : type;
    const std::string memory = fmt::format("scratch_{}", kept == "vec2<u32>" ? "words" : kept);
    const bool through_memory = !use_subgroups() || threads_ > subgroup_;
    if (through_memory && scratch.emplace(memory, kept).second)
      text += fmt::format("var<workgroup> {}: array<{}, {}>;\n", memory, kept, threads_);
    auto read = [&](const std::string& at) {
      const std::string element = fmt::format("{}[{}]", memory, at);
      return is_bool(what.second) ? fmt::format("({} != 0u)", element) : element;
    };
    const Operand halves[] = {{read("lane"), what.second}, {read("lane + half"), what.second}};
    auto kept_as = [&](const std::string& value) {
      return is_bool(what.second) ? fmt::format("u32({})", value) : value;
    };
    const std::string head =
        fmt::format("fn {}(value: {}, lane: u32) -> {} {{\n", function, type, type);
    if (use_subgroups()) {
      // Within subgroups by exchange, between them through memory.
      auto with = [&](const std::string& other) {
        const Operand pair[] = {{"total", what.second}, {other, what.second}};
        return arithmetic_.compute(what.first, what.second, pair);
      };
      text += head;
      text += "  var total = value;\n";
      for (int distance = subgroup_ / 2; distance > 0; distance /= 2)
        text += fmt::format("  total = {};\n",
                            with(fmt::format("subgroupShuffleXor(total, {}u)", distance)));
      if (!through_memory) {
        text += "  return total;\n}\n";
        continue;
      }
      text += fmt::format(
          "  workgroupBarrier();\n"
          "  if (lane % {0}u == 0u) {{ {1}[lane / {0}u] = {2}; }}\n"
          "  workgroupBarrier();\n"
          "  total = {3};\n",
          subgroup_, memory, kept_as("total"), read("0"));
      for (int i = 1; i < threads_ / subgroup_; ++i)
        text += fmt::format("  total = {};\n", with(read(std::to_string(i))));
      text += "  return total;\n}\n";
      continue;
    }
    text += head;
    text += fmt::format(
        "  workgroupBarrier();\n"
        "  {}[lane] = {};\n"
        "  for (var half = {}u; half > 0u; half = half >> 1u) {{\n"
        "    workgroupBarrier();\n"
        "    if (lane < half) {{ {}[lane] = {}; }}\n"
        "  }}\n"
        "  workgroupBarrier();\n"
        "  return {};\n"
        "}}\n",
        memory, kept_as("value"), threads_ / 2, memory,
        kept_as(arithmetic_.compute(what.first, what.second, halves)), read("0"));
  }
  return text;
}

}  // namespace anneal::wgsl
