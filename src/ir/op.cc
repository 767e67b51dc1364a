#include "ir/op.h"

#include <algorithm>
#include <array>

namespace anneal {
namespace {

// The letters of the accepts column.
constexpr uint8_t B = kBoolClass, I = kIntClass, F = kFloatClass, X = kIndexClass;
constexpr uint8_t BI = B | I, IF = I | F, BIF = B | I | F, IFX = I | F | X, BIFX = B | I | F | X;

constexpr std::array<OpInfo, kOpCount> kOps = {{
#define Libm(name) #name
#define NoLibm ""
#define OP(number, Name, text, sources, tail, arg, shape, type, accepts, commutative, cost, code, \
           libm, meaning)                                                                         \
  {text,        sources, Tail::tail, ArgKind::arg, ShapeRule::shape, TypeRule::type, accepts,     \
   commutative, cost,    code,       libm,         meaning},
#include "ir/ops.def"
#undef OP
#undef NoLibm
#undef Libm
}};

// 0 up to the number of ops, each once.
constexpr bool numbers_are_distinct() {
  std::array<bool, kOpCount> taken{};
  for (uint8_t number : kOpNumbers) {
    if (number >= kOpCount || taken[number]) return false;
    taken[number] = true;
  }
  return true;
}
static_assert(numbers_are_distinct(), "a new op takes the next free number");

}  // namespace

const OpInfo& info(Op op) { return kOps[static_cast<size_t>(op)]; }

std::string_view name(Op op) { return info(op).text; }

std::optional<Op> parse_op(std::string_view text) {
  auto row =
      std::find_if(kOps.begin(), kOps.end(), [&](const OpInfo& i) { return i.text == text; });
  if (row == kOps.end()) return std::nullopt;
  return static_cast<Op>(row - kOps.begin());
}

}  // namespace anneal
