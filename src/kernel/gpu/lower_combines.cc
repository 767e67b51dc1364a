#include "kernel/gpu/lower_combines.h"

#include <algorithm>
#include <map>

#include "kernel/gpu/copier.h"

namespace anneal {
namespace {

// Of words alone: narrower values are held in words, and bools are none.
bool can_exchange(DType dtype) { return !is_bool(dtype) && byte_size(dtype) <= 4; }

// All that a kernel combines in one way: one that waits for memory has no need of subgroups.
bool exchanges(const Program& program, int subgroup) {
  return subgroup > 1 && program.threads % subgroup == 0 &&
         std::ranges::all_of(program.code, [](const Instruction& each) {
           return each.code != Code::Combine || can_exchange(each.dtype);
         });
}

}  // namespace

void lower_combines(Program& program, int subgroup) {
  const int in_registers = exchanges(program, subgroup) ? subgroup : 1;
  const int groups = program.threads / in_registers;
  std::map<DType, uint64_t> scratch;  // the threads wait before each use: one of a kind is enough
  Copier copier(program);
  for (size_t i = 0; i < copier.size(); ++i) {
    const Instruction& each = copier.old(i);
    if (each.code == Code::Combine && program.threads == 1) {
      copier.replace(i, copier.now(each.operands[0]));
      continue;
    }
    copier.copy(i);
    if (each.code != Code::Combine || each.subgroup != 0) continue;
    copier.last().subgroup = static_cast<uint16_t>(in_registers);
    if (groups == 1) continue;
    const auto [place, is_new] =
        scratch.emplace(each.dtype, program.buffers.size() + program.locals.size());
    if (is_new) program.locals.push_back({each.dtype, groups});
    copier.last().bits = place->second;
  }
  copier.finish();
}

}  // namespace anneal
