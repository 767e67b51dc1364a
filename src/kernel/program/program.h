// The last form before code: a list of typed vector instructions with structured loops, which every
// backend translates one by one. It runs once for each cell of a grid; cells are independent.
// Knows nothing of tensors, and decides nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/cursor.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "target/matrix_unit.h"

namespace anneal {

// A value is named by the instruction that makes it.
using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

enum class Code : uint8_t {
  Constant,  // `bits` is a Scalar's payload (double bits for floats); all lanes alike
  Size,      // symbolic size number `bits`: index scalar
  Cell,      // the number of this cell: index scalar
  Compute,   // elementwise `op` of operands, lane by lane; every operand has `lanes` lanes.
             // Meaning: semantics.h, in f32 for f32. Cast and Bitcast give `dtype`. A Cast of
             // pairs of f32 to f16, `width` 2, may round as the device's own instruction does.
  Splat,     // operand 0, a scalar, in every lane
  Ramp,      // operand 0 + lane * operand 1, both index scalars: index lanes
  Combine,   // all lanes of operand 0 by `op` (Add Mul Max Min And Or): a scalar. Fixed tree: upper
             // half into lower half until one is left (lower first operand). Where `subgroup` is
             // not 0, threads do it, so many of which exchange values by such a tree; what these
             // subgroups have goes through local buffer `bits`: by such a tree, too, where a
             // subgroup is a thread, in the order of subgroups otherwise. All threads wait for
             // each other before the buffer is touched and between its stores and loads.
  Zip,       // lanes of operands 0 and 1 in turns: of their lower halves (bits 0) or upper ones (1)
  Load,      // buffer `bits`. Operand 0 is the element's place: an index scalar, from which `lanes`
             // neighbours are read, or index lanes. Operand 1: condition (bool lanes) or none;
             // lanes where it fails are 0 and their memory is not touched.
  Store,     // the same with operand 2, the value to store; makes no value
  Prefetch,  // buffer `bits` will be loaded at place operand 0, an index scalar, soon; a place
             // outside of it does no harm. Makes no value
  Loop,      // operands begin, end, step (index scalars, step > 0); its value is the counter
  Carry,     // right after a Loop: a value that starts as operand 0 and is replaced every round by
             // what Next says. After the loop it keeps its last value.
  Next,      // operand 0: a Carry of the loop that ends next, operand 1: its value in the next
             // round. All of them come right before EndLoop.
  EndLoop,   //
  If,        // operand 0: a bool scalar; holds until EndIf and makes no value
  EndIf,
  // Matrices, of the shapes and dtypes of the program's matrix unit, whose lanes, which follow each
  // other, hold one together; which lane has what is the device's own. Places are index lanes,
  // alike in all lanes of a matrix, strides constant index scalars; memory is a local buffer's.
  MatrixZero,         // a matrix of sums
  MatrixLeft,         // of buffer `bits`: element (i, j) lies at operand 0 + i * operand 1
  MatrixRight,        //   + j * operand 2, one of which is 1. Memory must not change before the
                      // matrix is multiplied: a device may read it as late as that.
  MatrixMultiplyAdd,  // operand 0, a left one, times operand 1, a right one, plus operand 2, sums.
                      // In which order and how exactly it is added is the device's own.
  MatrixStore,        // sums, operand 2, into buffer `bits`; operand 1 is the stride of rows
  Barrier,  // the threads wait for each other: what any of them did to memory of the kinds that
            // `bits` names (kBarrierShared, kBarrierBuffers), all of them see behind it
  // Wide values: each lane holds several elements, in `width` of what makes them. Load, at places
  // that are multiples of the width, and Pack make such, Element and Store take them.
  Element,  // element `bits` of operand 0
  Pack,     // operands side by side, as many as the width
};

inline constexpr uint64_t kBarrierShared = 1, kBarrierBuffers = 2;

struct Instruction {
  Code code;
  Op op = Op::Add;
  DType dtype = DType::F32;  // of the value; of what is stored
  uint16_t lanes = 1;        // 1: a scalar
  std::array<ValueId, 4> operands{kNoValue, kNoValue, kNoValue, kNoValue};
  uint64_t bits = 0;
  bool streaming = false;    // a Store of whole aligned vectors that are not read again soon
  bool is_unsigned = false;  // a FloorDiv or Mod of indices that is plain to divide: operand 0 is
                             // never negative, operand 1 a positive constant
  uint8_t width = 1;  // of a Load, Store, Pack or Cast: neighbours that each lane has, 1, 2 or 4
  uint16_t subgroup = 0;  // of a Combine: threads that exchange values without memory; 1: none do
  int32_t offset = 0;     // of a Load or Store: elements that are added to the place

  friend bool operator==(const Instruction&, const Instruction&) = default;
};

// dtypes of values: f32, f64, every integer, bool and index compute; f16, bf16 and fp8 are only
// loaded, stored, cast and bitcast.
struct ProgramBuffer {
  DType dtype = DType::F32;
  bool written = false;
  int width = 1;  // its memory is vectors of so many elements, none of which is stored in part
  friend bool operator==(const ProgramBuffer&, const ProgramBuffer&) = default;
};

enum class MemorySpace : uint8_t {
  Shared,   // by the threads of the cell, where lanes are threads
  Private,  // element e is the own of thread e modulo the number of threads
};

// Memory of one cell's own, uninitialised, 64-byte aligned, fast: buffer number
// program.buffers.size() + i.
struct LocalBuffer {
  DType dtype = DType::F32;
  int64_t elements = 0;
  MemorySpace space = MemorySpace::Shared;
  int width = 1;  // its memory is vectors of so many elements
  friend bool operator==(const LocalBuffer&, const LocalBuffer&) = default;
};

struct Program {
  std::string name;                    // an identifier; no part of what it does
  std::vector<ProgramBuffer> buffers;  // the parameters
  std::vector<LocalBuffer> locals;
  int sizes = 0;  // symbolic sizes among the parameters
  // Lanes are so many threads of a workgroup, each of which goes through the code: values with one
  // lane are alike in all of them, and thread 0 stores those. 0: lanes are parts of registers.
  int threads = 0;
  int index_bits = 64;                         // 32: no index in it needs more
  std::optional<MatrixUnit> matrix_unit = {};  // of all its matrices
  bool emulates_matrices = false;              // the device has no such unit: loops do the same
  std::vector<Instruction> code;

  DType buffer_dtype(uint64_t number) const {
    return number < buffers.size() ? buffers[number].dtype : locals[number - buffers.size()].dtype;
  }
  int buffer_width(uint64_t number) const {
    return number < buffers.size() ? buffers[number].width : locals[number - buffers.size()].width;
  }
};

bool makes_matrix(Code code);  // Carries make what they start with
bool makes_value(Code code);

// Whether an index is a multiple of a number, whatever its variables are. `at` has the instruction
// of every value.
template <typename At>
bool is_multiple(const At& at, ValueId value, int64_t of) {
  const Instruction& each = at(value);
  auto both = [&](size_t a, size_t b) {
    return is_multiple(at, each.operands[a], of) && is_multiple(at, each.operands[b], of);
  };
  switch (each.code) {
    case Code::Constant: return static_cast<int64_t>(each.bits) % of == 0;
    case Code::Splat: return is_multiple(at, each.operands[0], of);
    case Code::Ramp: return both(0, 1);
    case Code::Loop: return both(0, 2);
    case Code::Compute: break;
    default: return false;
  }
  if (each.op == Op::Add || each.op == Op::Mod || each.op == Op::Min || each.op == Op::Max)
    return both(0, 1);
  if (each.op == Op::Mul)
    return is_multiple(at, each.operands[0], of) || is_multiple(at, each.operands[1], of);
  return false;
}

// The first thing wrong with it: an operand that is not made before or not in scope, lanes or
// dtypes that do not fit, loops that do not nest. Empty when there is none.
std::string verify(const Program& program);

// Bits that Scalars of the dtype have.
bool is_constant_of(DType dtype, uint64_t bits);

// One instruction a line; to_text and parse_program are inverse. // begins a comment.
std::string to_text(const Program& program);
struct ProgramLimits {
  size_t text_bytes = 100'000'000;
  size_t instructions = 4'000'000;
};
// What is read need not be valid: see verify().
std::variant<Program, TextError> parse_program(std::string_view text,
                                               const ProgramLimits& limits = {});

}  // namespace anneal
