// Checks a program between passes: each stage has a table of the ops it may hold, and every node
// must be what infer.cc says of it. Must not repair anything.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace anneal {

struct Stage {
  std::string_view name;
  OpSet legal;
};

constexpr OpSet tensor_ops_but(const OpSet& without) {
  OpSet set;
  for (int i = 0; i < kTensorOpCount; ++i)
    if (!without.contains(static_cast<Op>(i))) set.add(static_cast<Op>(i));
  return set;
}

// Scalars and the ops of kernels.
constexpr OpSet kernel_ops() {
  OpSet set{Op::Const, Op::Variable, Op::Buffer};
  for (int i = static_cast<int>(Op::Neg); i <= static_cast<int>(Op::Bitcast); ++i)
    set.add(static_cast<Op>(i));
  for (int i = kTensorOpCount; i < kOpCount; ++i) set.add(static_cast<Op>(i));
  return set;
}

// What the user wrote: everything but the ops of kernels.
inline constexpr Stage kTensorStage{"tensor", tensor_ops_but({})};
// Gradients are taken: nothing speaks of them any more.
inline constexpr Stage kProgramStage{"program", tensor_ops_but(kMarks)};
// What one kernel computes: Store nodes over axes.
inline constexpr Stage kKernelStage{"kernel", kernel_ops()};

// The first problem of what the roots reach, as "%2 = exp %1 : f32[4]: ...", with the lines of
// print(roots); empty when there is none. The roots are of the current graph.
std::string verify(std::span<const NodeRef> roots, const Stage& stage);

}  // namespace anneal
