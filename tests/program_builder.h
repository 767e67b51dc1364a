// Writes Programs by hand, one call an instruction. Must not check or change what it is told: tests
// also make wrong ones.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "ir/scalar.h"
#include "kernel/program/program.h"

namespace anneal::testing {

class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name = "test") { program.name = std::move(name); }

  Program program;

  uint64_t buffer(DType dtype, bool written = false) {
    program.buffers.push_back({dtype, written});
    return program.buffers.size() - 1;
  }
  // After every buffer.
  uint64_t local(DType dtype, int64_t elements) {
    program.locals.push_back({dtype, elements});
    return program.buffers.size() + program.locals.size() - 1;
  }

  ValueId add(Instruction instruction) {
    program.code.push_back(instruction);
    return static_cast<ValueId>(program.code.size() - 1);
  }

  ValueId constant(Scalar value, uint16_t lanes = 1) {
    return add(
        {.code = Code::Constant, .dtype = value.dtype(), .lanes = lanes, .bits = value.bits()});
  }
  ValueId index(int64_t value, uint16_t lanes = 1) {
    return constant(Scalar::of_int(DType::Index, value), lanes);
  }
  ValueId size(uint64_t number) {
    return add({.code = Code::Size, .dtype = DType::Index, .bits = number});
  }
  ValueId cell() { return add({.code = Code::Cell, .dtype = DType::Index}); }

  // The result has the lanes of the first operand.
  ValueId compute(Op op, DType dtype, std::initializer_list<ValueId> from) {
    Instruction instruction{.code = Code::Compute, .op = op, .dtype = dtype};
    instruction.lanes = of(*from.begin()).lanes;
    size_t i = 0;
    for (ValueId id : from) instruction.operands[i++] = id;
    return add(instruction);
  }
  // Of operands that have the result's dtype.
  ValueId compute(Op op, std::initializer_list<ValueId> from) {
    return compute(op, of(*from.begin()).dtype, from);
  }
  ValueId cast(DType dtype, ValueId from) { return compute(Op::Cast, dtype, {from}); }

  ValueId splat(ValueId from, uint16_t lanes) {
    return add(
        {.code = Code::Splat, .dtype = of(from).dtype, .lanes = lanes, .operands = list(from)});
  }
  ValueId ramp(ValueId from, ValueId by, uint16_t lanes) {
    return add(
        {.code = Code::Ramp, .dtype = DType::Index, .lanes = lanes, .operands = list(from, by)});
  }
  ValueId combine(Op op, ValueId from) {
    return add({.code = Code::Combine, .op = op, .dtype = of(from).dtype, .operands = list(from)});
  }
  ValueId load(uint64_t buffer, ValueId place, uint16_t lanes, ValueId condition = kNoValue) {
    return add({.code = Code::Load,
                .dtype = program.buffer_dtype(buffer),
                .lanes = lanes,
                .operands = list(place, condition),
                .bits = buffer});
  }
  void store(uint64_t buffer, ValueId place, ValueId value, ValueId condition = kNoValue) {
    add({.code = Code::Store,
         .dtype = of(value).dtype,
         .lanes = of(value).lanes,
         .operands = list(place, condition, value),
         .bits = buffer});
  }

  ValueId loop(ValueId begin, ValueId end, ValueId step) {
    return add({.code = Code::Loop, .dtype = DType::Index, .operands = list(begin, end, step)});
  }
  ValueId carry(ValueId start) {
    return add({.code = Code::Carry,
                .dtype = of(start).dtype,
                .lanes = of(start).lanes,
                .operands = list(start)});
  }
  void next(ValueId carry, ValueId value) {
    add({.code = Code::Next, .operands = list(carry, value)});
  }
  void end_loop() { add({.code = Code::EndLoop}); }
  void open_if(ValueId condition) { add({.code = Code::If, .operands = list(condition)}); }
  void end_if() { add({.code = Code::EndIf}); }

 private:
  const Instruction& of(ValueId id) const { return program.code[static_cast<size_t>(id)]; }
  static std::array<ValueId, 4> list(ValueId a, ValueId b = kNoValue, ValueId c = kNoValue) {
    return {a, b, c, kNoValue};
  }
};

}  // namespace anneal::testing
