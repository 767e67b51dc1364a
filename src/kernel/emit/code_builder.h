// Writes a Program. Values are placed in the outermost loop that knows their operands and are made
// once, and constants are folded on the way; so whoever emits code need not think about what is
// invariant where. Decides nothing about loops.
#pragma once

#include <deque>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/scalar.h"
#include "kernel/program/program.h"

namespace anneal {

// Writes a low-level program in the order of its calls. C++ leaves open in which order arguments of
// one call are made, and kernels must not depend on the compiler: of two that make code each, the
// second is made before the call, on a line of its own.
class CodeBuilder {
 public:
  explicit CodeBuilder(Program program);  // its parameters; the code is written here

  // A loop or an if, or the whole cell, while it is written.
  struct Scope;

  ValueId constant(const Scalar& value, int lanes = 1);
  ValueId index(int64_t value);
  ValueId truth(bool value);
  ValueId size(int number);
  ValueId cell();
  // Operands with one lane are spread over the lanes of the others.
  ValueId compute(Op op, DType dtype, std::span<const ValueId> operands);
  ValueId compute(Op op, DType dtype, std::initializer_list<ValueId> operands) {
    return compute(op, dtype, std::span(operands.begin(), operands.size()));
  }
  ValueId splat(ValueId value, int lanes);
  ValueId ramp(ValueId base, ValueId step, int lanes);
  ValueId combine(Op op, ValueId value);
  ValueId zip(ValueId a, ValueId b, bool upper);
  // As many vectors as they have lanes, a power of two: lane i of vector j becomes lane j of i.
  std::vector<ValueId> transpose(std::vector<ValueId> rows);

  // Index arithmetic on scalars or lanes.
  ValueId add(ValueId a, ValueId b) { return compute(Op::Add, DType::Index, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return compute(Op::Mul, DType::Index, {a, b}); }
  ValueId sub(ValueId a, ValueId b);
  ValueId min(ValueId a, ValueId b) { return compute(Op::Min, DType::Index, {a, b}); }
  // Both conditions; none means true.
  ValueId both(ValueId a, ValueId b);

  struct Access {
    uint64_t buffer = 0;
    ValueId place = kNoValue;
    ValueId condition = kNoValue;  // none: always
    int lanes = 1;
    bool streaming = false;  // of a store: see Instruction
  };
  // A load that reads what nothing in the program writes is placed as far out as its operands
  // allow, but never outside an if or a loop that may be empty. Others stay where they are made.
  ValueId load(const Access& access, bool constant_memory);
  void store(const Access& access, ValueId value);
  void prefetch(uint64_t buffer, ValueId place);

  // See Code::MatrixZero and those that follow it.
  ValueId matrix_zero(int lanes);
  struct MatrixPlace {
    uint64_t buffer = 0;
    ValueId first = kNoValue;
    int64_t row_stride = 0, column_stride = 1;
    int lanes = kMatrixUnit.lanes;
  };
  ValueId matrix_load(const MatrixPlace& place, bool left);
  ValueId matrix_multiply_add(ValueId left, ValueId right, ValueId sum);
  void matrix_store(const MatrixPlace& place, ValueId value);

  // The counter. Everything made from then on may depend on it, until the loop is closed.
  ValueId open_loop(ValueId begin, ValueId end, ValueId step, bool may_be_empty);
  ValueId carry(ValueId start);  // right after open_loop
  void close_loop(std::span<const std::pair<ValueId, ValueId>> carries_and_next);
  void open_if(ValueId condition);
  void close_if();

  // Where values with these operands would be placed at the earliest, and the innermost open scope.
  Scope* scope_of(ValueId value) const { return scope_of_[static_cast<size_t>(value)]; }
  Scope* current() const { return current_; }
  Scope* deeper(Scope* a, Scope* b) const;
  // The innermost scope around which nothing that touches memory may be placed.
  Scope* memory_floor() const;
  bool is_visible(ValueId value) const;  // from the current scope

  // Loops opened while it lives are placed in this scope, before what is open inside it.
  class Placement {
   public:
    Placement(CodeBuilder& builder, Scope* scope)
        : builder_(builder), before_(std::exchange(builder.current_, scope)) {}
    ~Placement() { builder_.current_ = before_; }
    Placement(const Placement&) = delete;
    Placement& operator=(const Placement&) = delete;

   private:
    CodeBuilder& builder_;
    Scope* before_;
  };

  const Instruction& at(ValueId value) const { return code_[static_cast<size_t>(value)]; }
  int lanes(ValueId value) const { return at(value).lanes; }
  DType dtype(ValueId value) const { return at(value).dtype; }
  // The integer of a constant.
  bool is_constant(ValueId value) const { return at(value).code == Code::Constant; }
  int64_t constant_value(ValueId value) const { return static_cast<int64_t>(at(value).bits); }
  bool is_constant(ValueId value, int64_t number) const {
    return is_constant(value) && constant_value(value) == number && !is_float(dtype(value));
  }

  // A new local buffer's number.
  uint64_t add_local(DType dtype, int64_t elements);

  Program finish() &&;

 private:
  struct Hash {
    size_t operator()(const Instruction& instruction) const;
  };

  ValueId append(const Instruction& instruction, Scope* scope);
  ValueId unique(const Instruction& instruction, Scope* scope);
  ValueId first_of_four(ValueId value) const;
  ValueId append_compute(Op op, DType dtype, std::span<const ValueId> operands, int lanes);
  void collect_conditions(ValueId value, std::vector<ValueId>& conditions) const;
  ValueId join_masks(ValueId a, ValueId b, int lanes);
  ValueId fold(Op op, DType dtype, std::span<const ValueId> operands);
  ValueId fold_scalars(Op op, DType dtype, std::span<const ValueId> operands);
  void write(const Scope& scope, std::vector<Instruction>& out, std::vector<ValueId>& renamed);

  Program program_;
  std::vector<Instruction> code_;  // under provisional names
  std::vector<Scope*> scope_of_;
  std::deque<Scope> scopes_;
  std::unordered_map<Instruction, ValueId, Hash> known_;
  std::unordered_map<ValueId, Scope*> inside_;  // of a Loop or If instruction
  Scope* root_;
  Scope* current_;
};

struct CodeBuilder::Scope {
  Scope* parent = nullptr;
  int depth = 0;
  bool guards_memory = false;  // an if, or a loop that may be empty
  Instruction head{};          // the loop or if
  std::vector<ValueId> carries;
  std::vector<std::pair<ValueId, ValueId>> next;
  std::vector<ValueId> items;  // in order; loops and ifs stand for all they hold
  ValueId id = kNoValue;       // of the head
};

}  // namespace anneal
