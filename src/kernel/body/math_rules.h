// Rules that leave a kernel with arithmetic every device has: transcendental functions of f32
// become polynomials, narrow floats are computed in f32. f64 functions stay: they are a library's.
#pragma once

#include <span>
#include <vector>

#include "rewrite/rewriter.h"

namespace anneal {

// At most 2 ulp from the exact value for every f32, denormals included; exact at the special values
// of C's functions.
extern const RuleSet kMathRules;         // "math"
extern const RuleSet kNarrowFloatRules;  // "narrow-floats"
// For devices that do not scale by powers of two in one instruction; not a bit differs.
extern const RuleSet kScaleRules;  // "scale"

// For devices without f64: sin and cos as exact as the others are.
extern const RuleSet kAngleRules;  // "angles"

struct MathAbilities {
  bool scale = false;  // Op::Scale is one instruction
  bool f64 = true;
};

// All of them, for scalars in kernels and tensors alike.
std::vector<NodeRef> lower_math(std::span<const NodeRef> roots, RewriteLog* log = nullptr,
                                const DisabledRules& disabled = {}, MathAbilities abilities = {});

}  // namespace anneal
