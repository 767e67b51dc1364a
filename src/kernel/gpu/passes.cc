#include "kernel/gpu/passes.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include <anneal/error.h>

#include "kernel/gpu/dead_code.h"
#include "kernel/gpu/insert_barriers.h"
#include "kernel/gpu/lower_combines.h"
#include "kernel/gpu/pair_halves.h"
#include "kernel/gpu/place_locals.h"
#include "kernel/gpu/unsigned_division.h"
#include "kernel/gpu/widen_accesses.h"
#include "kernel/program/program_content.h"

namespace anneal {
namespace {

template <void (*function)(Program&)>
void apply(Program& program, const GpuPassOptions&) {
  function(program);
}

// 64-bit positions are made of two words.
void choose_index_width(Program& program, const GpuPassOptions& options) {
  program.index_bits = options.most_elements > INT32_MAX ? 64 : 32;
}

}  // namespace

void lanes_to_threads(Program& program) {
  int threads = 1;
  for (const Instruction& each : program.code) {
    const int here = each.lanes;
    if (here > 1 && threads > 1 && here != threads)
      throw InternalError(fmt::format("vectors of {} and {} lanes in a kernel", threads, here));
    threads = std::max(threads, here);
  }
  program.threads = threads;
}

const PassTable<Program, GpuPassOptions>& gpu_passes() {
  constexpr bool kRequired = true;
  static const PassTable<Program, GpuPassOptions> table{
      "gpu program",
      "instructions",
      {
          {"lanes-to-threads", apply<lanes_to_threads>, nullptr, {}, kRequired},
          {"index-width", choose_index_width},
          {"place-locals", apply<place_locals>},
          {"insert-barriers", apply<insert_barriers>, nullptr, {}, kRequired},
          {"widen-accesses",
           [](Program& program, const GpuPassOptions& options) {
             widen_accesses(program, options.memory);
           }},
          {"dead-code", apply<drop_dead_code>},
          {"lower-combines",
           [](Program& program, const GpuPassOptions& options) {
             lower_combines(program, options.subgroup);
           },
           nullptr,
           {},
           kRequired},
          {"emulate-matrices",
           [](Program& program, const GpuPassOptions&) { program.emulates_matrices = true; },
           [](const Program& program, const GpuPassOptions& options) {
             return program.matrix_unit && !options.matrix_units;
           },
           {},
           kRequired},
          {"pair-halves", apply<pair_halves>},
          {"unsigned-division", apply<mark_unsigned_divisions>},
      },
      to_text,
      verify,
      [](const Program& program) -> uint64_t { return std::hash<std::string>{}(content(program)); },
      [](const Program& program) {
        return StateSize{0, static_cast<int64_t>(program.code.size())};
      }};
  return table;
}

Program gpu_program(Program program, const GpuPassOptions& options) {
  run_passes(gpu_passes(), program, options);
  if (const std::string problem = verify(program); !problem.empty())
    throw InternalError(fmt::format("{}\n{}", problem, to_text(program)));
  return program;
}

}  // namespace anneal
