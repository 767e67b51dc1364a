// What things cost and from where on something pays: every number that the scheduler chooses by,
// with its unit. Nanoseconds are those of one fast core; a choice compares them with each other,
// so that only their relations matter. Numbers that were measured on one machine are data of its
// target (target/schedule_tuning.h, and Tuning in target/target.h); sizes of tiles of products are
// in target/workgroup_tiles.h. Sizes that are symbolic count at their
// largest.
#pragma once

#include <cstddef>
#include <cstdint>

#include "body/kernel_body.h"
#include "ir/node.h"

namespace anneal {

// ---- estimates

// Elements of a shape, and the size of an axis, as numbers.
double element_estimate(const Shape& shape);
double size_estimate(NodeRef size);

// Nanoseconds of one element of an elementwise op, vectorised.
double compute_cost(NodeRef node);
// Nanoseconds of moving one element of a dtype to or from memory.
double memory_cost(DType dtype);

// ---- nanoseconds

inline constexpr double kMovedByte = 0.04;   // to or from memory
inline constexpr double kLaunchCost = 2000;  // a kernel more
inline constexpr double kCondition = 0.05;   // an element may not be there
// Arithmetic that is nearly nothing, that changes a value of memory but little, and that is less
// than what is computed from values which several need.
inline constexpr double kFewOperations = 0.065, kLittleChange = 0.1, kModerate = 3;
inline constexpr double kCheapPlace = 0.5;  // a computed place; others are stored before
// The gradient of an activation that is stored beside it: what is made faster need not be.
inline constexpr double kWorthStoring = 0.3;

// ---- what is computed again where it is used

// Times that one user alone may make each element.
inline constexpr double kTimesOfOneUse = 16;
// A store between uses over the same rows of one kernel takes it apart: so many times dearer.
inline constexpr double kSplitsKernel = 2;
inline constexpr size_t kFewUses = 4;    // that share what is cheap
inline constexpr size_t kMostUses = 16;  // more would make scheduling slow
// Times that groups of threads make an operand of a product, from which on it is stored.
inline constexpr double kTimesOfOperand = 2;
// Nodes. Larger expressions are not computed twice, and not looked at; nor are larger factors of
// products. A mask is made of fewer.
inline constexpr size_t kLargestCone = 256, kLargestFactor = 256, kNodesOfMask = 24;
// Sums over elements that are sums themselves, in one kernel: each loop is unrolled for the others.
inline constexpr int kMostNested = 4;
// Gathers of gathers in one kernel: each place is part of the next one's.
inline constexpr int kMostPlaces = 8;
// Steps between a product and the activation made of it, or an operand and its product.
inline constexpr int kStepsToProduct = 16;

// ---- rows

// A kernel needs so many to work on at once, unless it is little work, in elements; for a core or
// two it may be more.
inline constexpr double kEnoughRows = 16, kLittleWork = 2048, kWorkOfFewRows = 16384;
// Elements that a reduction inside its consumer goes over, where few rows are left.
inline constexpr double kLittleWorkOfReduce = 32768;
// Buffers of one body: more make it no faster, and longer to look at.
inline constexpr int kMostBuffersOfRows = 64;
inline constexpr size_t kSiblingsAhead = 64;  // fragments of the same rows that are compared

// ---- tiles

// Elements of a product to those of its operands, from which on it may be worth computing again;
// and of a large value to those of what is made of it.
inline constexpr double kExpansion = 1, kReduction = 2;
inline constexpr double kMostSteps = 512;  // terms of one element of such a product
// Floating-point operations in the time of a byte from or to memory; and the part of its time that
// a product in tiles takes longer than in blocks of its own.
inline constexpr double kFlopsPerByte = 20, kSlowdown = 0.2;

// Whether a product is larger than what it is made of: stored it would be most of all traffic.
inline bool is_expansion(double elements, double of_operands) {
  return elements >= kExpansion * of_operands;
}

// ---- products of f32 on matrix units

inline constexpr double kTermsOfAccess = 4;  // that are read at once

// ---- lengths of kernels and of scheduling

// Kernels know 256 axes (body/axis_set.h), and split some of those they are given.
inline constexpr size_t kMostAxes = 128;
// The part of the length of a kernel that is planned for: what it loads and stores comes on top.
inline constexpr double kPlannedLength = 0.8;
// Bytes that a store and a load of their own cost, however few they move.
inline constexpr double kBytesOfValue = 64;
inline constexpr int kMostRounds = 100;  // of storing something more to keep a limit
// Of dividing what is too long: the first one nearly always does it, and a kernel that is somewhat
// too long is no mistake.
inline constexpr int kMostDivisions = 8;
// Nodes of a fragment that is divided first: it takes long to find what keeps a limit among more.
inline constexpr size_t kManyNodes = 2048;

}  // namespace anneal
