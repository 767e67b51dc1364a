#include "kernel/gpu/dead_code.h"

#include <vector>

#include "kernel/gpu/copier.h"

namespace anneal {

void drop_dead_code(Program& program) {
  const std::vector<Instruction>& code = program.code;
  std::vector<bool> live(code.size());
  std::vector<size_t> work;
  auto need = [&](size_t at) {
    if (live[at]) return;
    live[at] = true;
    work.push_back(at);
  };
  // What a carry becomes, by carry: it matters if the carry does.
  std::vector<std::vector<size_t>> nexts(code.size());
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i].code == Code::Next)
      nexts[static_cast<size_t>(code[i].operands[0])].push_back(i);
    else if (!makes_value(code[i].code) || code[i].code == Code::Loop)
      need(i);
  }
  while (!work.empty()) {
    const size_t at = work.back();
    work.pop_back();
    for (ValueId operand : code[at].operands)
      if (operand != kNoValue) need(static_cast<size_t>(operand));
    for (size_t next : nexts[at]) need(next);
  }
  Copier copier(program);
  for (size_t i = 0; i < copier.size(); ++i)
    if (live[i]) copier.copy(i);
  copier.finish();
}

}  // namespace anneal
