#include "kernel/gpu/place_locals.h"

#include <algorithm>
#include <vector>

#include "kernel/gpu/thread_accesses.h"
#include "kernel/plan/cost.h"

namespace anneal {
namespace {

constexpr int64_t kWord = 4;

int64_t bytes_of(DType dtype, int64_t least) {
  return std::max(least, static_cast<int64_t>(byte_size(dtype)));
}

}  // namespace

void place_locals(Program& program) {
  int64_t bytes = program.threads * int64_t{16};  // for what is combined
  for (const LocalBuffer& local : program.locals)
    bytes += local.elements * bytes_of(local.dtype, kWord);
  if (bytes <= kRoomOfGroup) return;
  const ThreadAccesses accesses(program);
  for (size_t i = 0; i < program.locals.size(); ++i) {
    LocalBuffer& local = program.locals[i];
    const bool even = local.elements > 0 && local.elements % program.threads == 0;
    if (even && accesses.has_own_elements(program.buffers.size() + i, 1))
      local.space = MemorySpace::Private;
  }
}

LocalBytes gpu_local_bytes(const Program& program) {
  LocalBytes bytes;
  const bool halves = program.matrix_unit && !program.emulates_matrices;
  for (const LocalBuffer& local : program.locals) {
    const int64_t each = bytes_of(local.dtype, halves && local.dtype == DType::F16 ? 2 : kWord);
    if (local.space == MemorySpace::Private)
      bytes.of_thread += local.elements / program.threads * each;
    else
      bytes.of_group += (local.elements * each + 15) / 16 * 16;
  }
  return bytes;
}

}  // namespace anneal
