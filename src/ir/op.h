// The operations and what the table says of each. Nothing here computes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace anneal {

enum class Op : uint8_t {
#define OP(number, Name, ...) Name,
#include "ir/ops.def"
#undef OP
};

inline constexpr int kOpCount = 0
#define OP(...) +1
#include "ir/ops.def"
#undef OP
    ;

// What keys are made of: unlike its place in the table, an op keeps it when others join.
inline constexpr uint8_t kOpNumbers[kOpCount] = {
#define OP(number, ...) number,
#include "ir/ops.def"
#undef OP
};
constexpr uint8_t number(Op op) { return kOpNumbers[static_cast<int>(op)]; }

enum class Tail : uint8_t { None, Dims, Pairs, Inputs };
enum class ArgKind : uint8_t { None, Scalar, Axis, Axes, Symbol };
enum class ShapeRule : uint8_t {
  Tail,
  Point,
  Elementwise,
  Reduce,
  Permute,
  Expand,
  Pad,
  Shrink,
  First,
  Gather,
  Scatter,
};
enum class TypeRule : uint8_t { Given, Index, Same, Bool, Select, First };

// Classes of dtypes an op accepts, as bits.
inline constexpr uint8_t kBoolClass = 1, kIntClass = 2, kFloatClass = 4, kIndexClass = 8;

struct OpInfo {
  std::string_view text;
  uint8_t sources;
  Tail tail;
  ArgKind arg;
  ShapeRule shape;
  TypeRule type;
  uint8_t accepts;
  bool commutative;
  double cost;            // nanoseconds of one result
  double code;            // instructions of one result
  std::string_view libm;  // the function of the C library; empty: none
  std::string_view meaning;
};

const OpInfo& info(Op op);
std::string_view name(Op op);
std::optional<Op> parse_op(std::string_view text);

inline bool is_elementwise(Op op) { return info(op).shape == ShapeRule::Elementwise; }
// A transcendental function: many instructions, in f64 a call of the C library.
inline bool is_libm_function(Op op) { return !info(op).libm.empty(); }
inline bool is_movement(Op op) { return op >= Op::Reshape && op <= Op::Flip; }
inline bool is_reduce(Op op) { return op >= Op::ReduceSum && op <= Op::ReduceMin; }

// Ops that only kernels have; users cannot write them. They are the last of the table.
inline constexpr int kTensorOpCount = static_cast<int>(Op::MulAdd);
inline constexpr bool is_kernel_op(Op op) { return op >= Op::MulAdd; }
inline bool is_reduce_over(Op op) { return op >= Op::SumOver && op <= Op::MinOver; }

// A set of ops, as a pattern or a stage's table of legal nodes needs it.
class OpSet {
 public:
  constexpr OpSet() = default;
  constexpr OpSet(std::initializer_list<Op> ops) {
    for (Op op : ops) add(op);
  }
  constexpr void add(Op op) { words_[index(op) / 64] |= bit(op); }
  constexpr bool contains(Op op) const { return words_[index(op) / 64] & bit(op); }

 private:
  static constexpr int index(Op op) { return static_cast<int>(op); }
  static constexpr uint64_t bit(Op op) { return uint64_t{1} << (index(op) % 64); }
  uint64_t words_[2] = {0, 0};
};
static_assert(kOpCount <= 128, "OpSet holds 128 ops");

// Ops that pass their first source on and mean something to derivatives only.
inline constexpr OpSet kMarks{Op::StopGradient, Op::CustomGrad, Op::Named};

}  // namespace anneal
