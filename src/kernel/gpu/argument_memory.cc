#include "kernel/gpu/argument_memory.h"

#include <algorithm>

namespace anneal {

ArgumentMemory memory_of(const Program& program, std::span<const ArgumentPlace> arguments) {
  ArgumentMemory memory;
  memory.same_as.assign(arguments.size(), -1);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentPlace& mine = arguments[i];
    bool only_read = mine.piece != nullptr;
    for (size_t k = 0; k < arguments.size(); ++k) {
      if (!mine.piece || mine.piece != arguments[k].piece) continue;
      if (program.buffers[k].written) only_read = false;
      if (k < i && memory.same_as[i] < 0 && mine.offset == arguments[k].offset)
        memory.same_as[i] = memory.same_as[k] < 0 ? static_cast<int>(k) : memory.same_as[k];
    }
    memory.only_read.push_back(only_read);
  }
  if (std::ranges::count(memory.same_as, -1) == std::ssize(memory.same_as)) memory.same_as.clear();
  return memory;
}

ArgumentMemory expected_memory(const Program& program, const Schedule& schedule,
                               std::span<const int> arguments) {
  std::vector<ArgumentPlace> places;
  for (int number : arguments) {
    const ScheduleBuffer& buffer = schedule.buffers[static_cast<size_t>(number)];
    if (buffer.is_temporary())
      places.push_back({&schedule, number});
    else
      places.push_back({&buffer, 0});
  }
  return memory_of(program, places);
}

}  // namespace anneal
