#include "kernel/gpu/lower_combines.h"

#include <algorithm>
#include <map>

#include "kernel/gpu/copier.h"
#include "kernel/plan/workgroup_memory.h"

namespace anneal {
void lower_combines(Program& program, int subgroup) {
  const bool all_exchange = std::ranges::all_of(program.code, [](const Instruction& each) {
    return each.code != Code::Combine || can_exchange(each.dtype);
  });
  const int in_registers = threads_in_registers(program.threads, subgroup, all_exchange);
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
