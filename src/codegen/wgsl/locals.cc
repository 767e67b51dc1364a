#include "codegen/wgsl/locals.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <anneal/error.h>

#include "codegen/wgsl/barriers.h"
#include "codegen/wgsl/wgsl.h"

namespace anneal::wgsl {

int lanes_of(const Program& program) {
  int lanes = 1;
  for (const Instruction& each : program.code) {
    const int here = each.lanes;
    if (here > 1 && lanes > 1 && here != lanes)
      throw InternalError(fmt::format("vectors of {} and {} lanes in a kernel", lanes, here));
    lanes = std::max(lanes, here);
  }
  return lanes;
}

bool has_matrices(const Program& program) {
  return std::ranges::any_of(program.code,
                             [](const Instruction& each) { return makes_matrix(each.code); });
}

// Where there is room for all of them, memory of the group is nearer.
std::vector<bool> private_locals(const Program& program) {
  constexpr int64_t kRoom = 16 << 10;
  std::vector<bool> own;
  int64_t bytes = 0;
  for (size_t i = 0; i < program.locals.size(); ++i) {
    own.push_back(is_private(program, i));
    bytes += program.locals[i].elements *
             std::max<int64_t>(4, static_cast<int64_t>(byte_size(program.locals[i].dtype)));
  }
  const int64_t scratch = lanes_of(program) * 16;  // of combinations
  if (bytes + scratch <= kRoom) own.assign(own.size(), false);
  return own;
}

LocalBytes local_bytes(const Program& program, bool matrices) {
  LocalBytes bytes;
  const std::vector<bool> own = private_locals(program);
  for (size_t i = 0; i < program.locals.size(); ++i) {
    const LocalBuffer& local = program.locals[i];
    const int64_t narrowest =
        matrices && local.dtype == DType::F16 && has_matrices(program) ? 2 : 4;
    const int64_t each = std::max(narrowest, static_cast<int64_t>(byte_size(local.dtype)));
    if (own[i])
      bytes.of_thread += local.elements / lanes_of(program) * each;
    else
      bytes.of_group += (local.elements * each + 15) / 16 * 16;
  }
  std::map<DType, bool> combined;
  for (const Instruction& each : program.code)
    if (each.code == Code::Combine) combined[each.dtype] = true;
  for (const auto& [dtype, used] : combined)
    bytes.of_group +=
        lanes_of(program) * std::max<int64_t>(4, static_cast<int64_t>(byte_size(dtype)));
  return bytes;
}

}  // namespace anneal::wgsl
