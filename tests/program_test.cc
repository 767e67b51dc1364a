// What makes a Program valid, and its text.
#include "kernel/program/program.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "kernel/program/program_content.h"
#include "program_builder.h"

using namespace anneal;
using namespace anneal::testing;

namespace {

// A dot product of symbolic length, a tile of scratch, a condition: every code there is.
Program every_code() {
  ProgramBuilder b("dot");
  const uint64_t x = b.buffer(DType::F32), flags = b.buffer(DType::Bool);
  const uint64_t out = b.buffer(DType::F32, true), tile = b.local(DType::F16, 8);
  b.program.sizes = 1;
  const ValueId cell = b.cell(), zero = b.index(0), eight = b.index(8), n = b.size(0);
  const ValueId start = b.splat(b.constant(Scalar::of(DType::F32, 0.5)), 8);
  const ValueId k = b.loop(zero, n, eight);
  const ValueId sum = b.carry(start);
  const ValueId lanes = b.ramp(k, b.index(2), 8);
  const ValueId inside = b.compute(Op::Lt, DType::Bool, {lanes, b.splat(n, 8)});
  const ValueId value = b.load(x, lanes, 8, inside);
  b.store(tile, zero, b.cast(DType::F16, value));
  b.next(sum, b.compute(Op::Add, {sum, value}));
  b.end_loop();
  b.open_if(b.load(flags, cell, 1));
  b.store(out, cell, b.combine(Op::Add, sum));
  b.end_if();
  return b.program;
}

std::string problem_of(void (*build)(ProgramBuilder&)) {
  ProgramBuilder b;
  b.buffer(DType::F32);
  b.buffer(DType::F32, true);
  build(b);
  return verify(b.program);
}

}  // namespace

TEST_CASE("program: a program of every code is valid and reads well") {
  const Program program = every_code();
  CHECK(verify(program) == "");
  CHECK(to_text(program) == R"(program dot
buffer b0 f32
buffer b1 bool
buffer b2 f32 written
local b3 f16[8]
sizes 1
  %0 = cell
  %1 = index 0
  %2 = index 8
  %3 = size 0
  %4 = f32 0.5
  %5 = f32x8 splat %4
  loop %6 = %1 below %3 by %2
    %7 = f32x8 carry %5
    %8 = index 2
    %9 = indexx8 ramp %6 by %8
    %10 = indexx8 splat %3
    %11 = boolx8 lt %9 %10
    %12 = f32x8 load b0[%9] if %11
    %13 = f16x8 cast %12
    store f16x8 b3[%1] = %13
    %15 = f32x8 add %7 %12
    next %7 = %15
  end
  %18 = bool load b1[%0]
  if %18
    %20 = f32 combine add %7
    store f32 b2[%0] = %20
  end
)");
}

TEST_CASE("program: what is wrong is found") {
  struct Case {
    const char* problem;
    void (*build)(ProgramBuilder&);
  };
  const Case cases[] = {
      {"instruction 0: operand 0 is no value made before",
       [](ProgramBuilder& b) {
         b.add({.code = Code::Splat, .lanes = 4, .operands = {0, -1, -1, -1}});
       }},
      {"instruction 0: operand 0 is no value made before",
       [](ProgramBuilder& b) { b.add({.code = Code::Splat, .lanes = 4}); }},
      {"instruction 1: operand 1 is no value made before",
       [](ProgramBuilder& b) { b.compute(Op::Add, {b.index(1), 7}); }},
      {"instruction 4: operand 0 is no value made before",
       [](ProgramBuilder& b) {
         const ValueId zero = b.index(0);
         b.store(1, zero, b.constant(Scalar::of(DType::F32, 1)));
         b.index(1);
         b.add({.code = Code::Splat, .lanes = 4, .operands = {2, -1, -1, -1}});
       }},
      {"instruction 0: no lanes", [](ProgramBuilder& b) { b.index(1, 0); }},
      {"instruction 0: bits of no constant",
       [](ProgramBuilder& b) { b.add({.code = Code::Constant, .dtype = DType::U8, .bits = 256}); }},
      {"instruction 0: bits of no constant",
       [](ProgramBuilder& b) { b.add({.code = Code::Constant, .dtype = DType::F32, .bits = 1}); }},
      {"instruction 0: size 0 of 0", [](ProgramBuilder& b) { b.size(0); }},
      {"instruction 0: the result is f32, wanted index",
       [](ProgramBuilder& b) { b.add({.code = Code::Cell}); }},
      {"instruction 1: reduce_sum is not elementwise",
       [](ProgramBuilder& b) { b.compute(Op::ReduceSum, {b.index(1)}); }},
      {"instruction 1: neg does not accept index",
       [](ProgramBuilder& b) { b.compute(Op::Neg, {b.index(1)}); }},
      {"instruction 1: neg does not accept f16",
       [](ProgramBuilder& b) { b.compute(Op::Neg, {b.constant(Scalar::of(DType::F16, 1))}); }},
      {"instruction 2: operand 1 has 4 lanes, the result 1",
       [](ProgramBuilder& b) {
         const ValueId one = b.index(1), four = b.index(1, 4);
         b.compute(Op::Add, {one, four});
       }},
      {"instruction 2: operand 1 is i32, wanted index",
       [](ProgramBuilder& b) {
         const ValueId one = b.index(1), other = b.constant(Scalar::of_int(DType::I32, 1));
         b.compute(Op::Add, {one, other});
       }},
      {"instruction 1: operand 1 is too many",
       [](ProgramBuilder& b) {
         const ValueId one = b.constant(Scalar::of_int(DType::I32, 1));
         b.compute(Op::Neg, {one, one});
       }},
      {"instruction 1: the result is index, wanted bool",
       [](ProgramBuilder& b) {
         const ValueId one = b.index(1);
         b.compute(Op::Lt, {one, one});
       }},
      {"instruction 1: the result is f64, wanted f32",
       [](ProgramBuilder& b) {
         b.compute(Op::Sqrt, DType::F64, {b.constant(Scalar::of(DType::F32, 1))});
       }},
      {"instruction 1: the condition of a where is not bool",
       [](ProgramBuilder& b) {
         const ValueId one = b.index(1);
         b.compute(Op::Where, {one, one, one});
       }},
      {"instruction 1: threefry of another dtype than u32",
       [](ProgramBuilder& b) {
         const ValueId one = b.constant(Scalar::of_int(DType::U64, 1));
         b.compute(Op::Threefry, {one, one, one, one});
       }},
      {"instruction 1: bitcast of f32 to f64",
       [](ProgramBuilder& b) {
         b.compute(Op::Bitcast, DType::F64, {b.constant(Scalar::of(DType::F32, 1))});
       }},
      {"instruction 1: as_index does not accept f32",
       [](ProgramBuilder& b) {
         b.compute(Op::AsIndex, DType::Index, {b.constant(Scalar::of(DType::F32, 1))});
       }},
      {"instruction 1: combines lanes that are no power of two",
       [](ProgramBuilder& b) { b.combine(Op::Add, b.index(1, 6)); }},
      {"instruction 1: cannot combine index by and",
       [](ProgramBuilder& b) { b.combine(Op::And, b.index(1, 4)); }},
      {"instruction 1: cannot combine f32 by div",
       [](ProgramBuilder& b) { b.combine(Op::Div, b.constant(Scalar::of(DType::F32, 1), 4)); }},
      {"instruction 1: there is no buffer 2",
       [](ProgramBuilder& b) {
         b.add({.code = Code::Load, .operands = {b.index(0), -1, -1, -1}, .bits = 2});
       }},
      {"instruction 1: the result is f64, wanted f32",
       [](ProgramBuilder& b) {
         b.add({.code = Code::Load, .dtype = DType::F64, .operands = {b.index(0), -1, -1, -1}});
       }},
      {"instruction 1: the place is indexx4, wanted index or indexx8",
       [](ProgramBuilder& b) { b.load(0, b.index(0, 4), 8); }},
      {"instruction 2: operand 1 is bool, wanted boolx4",
       [](ProgramBuilder& b) {
         const ValueId zero = b.index(0), yes = b.constant(Scalar::of_int(DType::Bool, 1));
         b.load(0, zero, 4, yes);
       }},
      {"instruction 2: stores to a buffer that is not written",
       [](ProgramBuilder& b) {
         const ValueId zero = b.index(0);
         b.store(0, zero, b.constant(Scalar::of(DType::F32, 1)));
       }},
      {"instruction 2: the result is i32, wanted f32",
       [](ProgramBuilder& b) {
         const ValueId zero = b.index(0);
         b.store(1, zero, b.constant(Scalar::of_int(DType::I32, 1)));
       }},
      {"instruction 2: the step of a loop is not positive",
       [](ProgramBuilder& b) {
         const ValueId zero = b.index(0), minus = b.index(-1);
         b.loop(zero, zero, minus);
         b.end_loop();
       }},
      {"the loop of instruction 1 has no end",
       [](ProgramBuilder& b) {
         const ValueId one = b.index(1);
         b.loop(one, one, one);
       }},
      {"the if of instruction 1 has no end",
       [](ProgramBuilder& b) { b.open_if(b.constant(Scalar::of_int(DType::Bool, 1))); }},
      {"instruction 0: the end of no loop", [](ProgramBuilder& b) { b.end_loop(); }},
      {"instruction 0: the end of no if", [](ProgramBuilder& b) { b.end_if(); }},
      {"instruction 2: the end of no if",
       [](ProgramBuilder& b) {
         const ValueId one = b.index(1);
         b.loop(one, one, one);
         b.end_if();
       }},
      {"instruction 1: a carry that does not follow its loop",
       [](ProgramBuilder& b) { b.carry(b.index(1)); }},
      {"instruction 2: a carry that starts with a value of its own loop",
       [](ProgramBuilder& b) {
         const ValueId one = b.index(1);
         b.carry(b.loop(one, one, one));
       }},
      {"instruction 3: carry %2 has no next",
       [](ProgramBuilder& b) {
         const ValueId one = b.index(1);
         b.loop(one, one, one);
         b.carry(one);
         b.end_loop();
       }},
      {"instruction 4: a second next of the same carry",
       [](ProgramBuilder& b) {
         const ValueId one = b.index(1);
         b.loop(one, one, one);
         const ValueId carry = b.carry(one);
         b.next(carry, one);
         b.next(carry, one);
       }},
      {"instruction 1: a next outside a loop",
       [](ProgramBuilder& b) {
         const ValueId one = b.index(1);
         b.next(one, one);
       }},
      {"instruction 2: a next of no carry of the loop that ends",
       [](ProgramBuilder& b) {
         const ValueId one = b.index(1);
         b.loop(one, one, one);
         b.next(one, one);
       }},
      {"instruction 4: operand 1 is i32, wanted index",
       [](ProgramBuilder& b) {
         const ValueId one = b.index(1), other = b.constant(Scalar::of_int(DType::I32, 1));
         b.loop(one, one, one);
         const ValueId carry = b.carry(one);
         b.next(carry, other);
       }},
      {"instruction 4: stands between a next and the end of its loop",
       [](ProgramBuilder& b) {
         const ValueId one = b.index(1);
         b.loop(one, one, one);
         const ValueId carry = b.carry(one);
         b.next(carry, one);
         b.index(2);
       }},
      {"instruction 4: operand 0, %2, is out of scope",
       [](ProgramBuilder& b) {
         const ValueId one = b.index(1);
         b.loop(one, one, one);
         const ValueId inner = b.index(2);
         b.end_loop();
         b.splat(inner, 4);
       }},
      {"instruction 3: operand 0, %1, is out of scope",
       [](ProgramBuilder& b) {
         const ValueId one = b.index(1);
         const ValueId counter = b.loop(one, one, one);
         b.end_loop();
         b.splat(counter, 4);
       }},
      {"instruction 8: operand 0, %3, is out of scope",
       [](ProgramBuilder& b) {
         const ValueId one = b.index(1), yes = b.constant(Scalar::of_int(DType::Bool, 1));
         b.open_if(yes);
         b.loop(one, one, one);
         const ValueId carry = b.carry(one);
         b.next(carry, one);
         b.end_loop();
         b.end_if();
         b.splat(carry - 1, 4);
       }},
  };
  for (const Case& row : cases) CHECK(problem_of(row.build) == row.problem);
}

namespace {

// One block of a product of 32 lanes, as emitted by hand.
struct MatrixProgram : ProgramBuilder {
  MatrixProgram() { program.matrix_unit = kMatrixUnit; }

  uint64_t halves = local(DType::F16, 512), sums = local(DType::F32, 256);
  ValueId place = index(0, 32), one = index(1), stride = index(16);

  ValueId matrix(Code code, std::initializer_list<ValueId> operands, uint64_t from = 0) {
    const bool half = code == Code::MatrixLeft || code == Code::MatrixRight;
    Instruction instruction{
        .code = code, .dtype = half ? DType::F16 : DType::F32, .lanes = 32, .bits = from};
    std::ranges::copy(operands, instruction.operands.begin());
    return add(instruction);
  }
  ValueId left() { return matrix(Code::MatrixLeft, {place, stride, one}, halves); }
  ValueId right() { return matrix(Code::MatrixRight, {place, one, stride}, halves); }
};

}  // namespace

TEST_CASE("program: matrices are made, multiplied and stored, and nothing else") {
  MatrixProgram b;
  const ValueId zero = b.matrix(Code::MatrixZero, {});
  const ValueId left = b.left(), right = b.right();
  const ValueId sum = b.matrix(Code::MatrixMultiplyAdd, {left, right, zero});
  b.matrix(Code::MatrixStore, {b.place, b.stride, sum}, b.sums);
  CHECK(verify(b.program) == "");
  CHECK(to_text(b.program) == R"(program test
local b0 f16[512]
local b1 f32[256]
matrix_unit 16x16x16 f16 f32 lanes 32
  %0 = indexx32 0
  %1 = index 1
  %2 = index 16
  %3 = f32x32 matrix
  %4 = f16x32 left matrix b0[%0] by %2 %1
  %5 = f16x32 right matrix b0[%0] by %1 %2
  %6 = f32x32 multiply %4 %5 add %3
  store f32x32 matrix b1[%0] by %2 = %6
)");

  struct Case {
    const char* problem;
    void (*build)(MatrixProgram&);
  };
  const Case cases[] = {
      {"instruction 4: operand 0 is a matrix",
       [](MatrixProgram& p) { p.compute(Op::Neg, {p.matrix(Code::MatrixZero, {})}); }},
      {"instruction 6: operand 0 is no such matrix",
       [](MatrixProgram& p) {
         const ValueId none = p.matrix(Code::MatrixZero, {}), other = p.right(), same = p.right();
         p.matrix(Code::MatrixMultiplyAdd, {other, same, none});
       }},
      {"instruction 5: operand 2 is no such matrix",
       [](MatrixProgram& p) {
         const ValueId a = p.left(), c = p.right();
         p.matrix(Code::MatrixMultiplyAdd, {a, c, a});
       }},
      {"instruction 3: a matrix lies in a buffer of another dtype",
       [](MatrixProgram& p) { p.matrix(Code::MatrixLeft, {p.place, p.stride, p.one}, p.sums); }},
      {"instruction 3: a matrix lies in no local buffer",
       [](MatrixProgram& p) { p.matrix(Code::MatrixLeft, {p.place, p.stride, p.one}, 9); }},
      {"instruction 4: the stride of a matrix is no constant",
       [](MatrixProgram& p) { p.matrix(Code::MatrixLeft, {p.place, p.cell(), p.one}, p.halves); }},
      {"instruction 3: lanes that make no whole matrices",
       [](MatrixProgram& p) { p.add({.code = Code::MatrixZero, .lanes = 16}); }},
  };
  for (const auto& [problem, build] : cases) {
    MatrixProgram wrong;
    build(wrong);
    CHECK(verify(wrong.program) == problem);
  }
}

TEST_CASE("program: a carry outlives its loop, but not the if around it") {
  ProgramBuilder b;
  const ValueId one = b.index(1), yes = b.constant(Scalar::of_int(DType::Bool, 1));
  b.open_if(yes);
  b.loop(one, one, one);
  const ValueId carry = b.carry(one);
  b.next(carry, one);
  b.end_loop();
  const ValueId twice = b.compute(Op::Add, {carry, carry});
  CHECK(twice == 7);
  b.end_if();
  CHECK(verify(b.program) == "");
  b.splat(carry, 4);
  CHECK(verify(b.program) == "instruction 9: operand 0, %4, is out of scope");
}

TEST_CASE("program: buffers and sizes that make no sense are found") {
  Program program;
  program.sizes = -1;
  CHECK(verify(program) == "the number of sizes is negative");
  program.sizes = 0;
  program.buffers = {{DType::Index, false}};
  CHECK(verify(program) == "a buffer of index elements");
  program.buffers = {};
  program.locals = {{DType::F32, -1}};
  CHECK(verify(program) == "a local buffer of less than no elements");
  program.locals = {{DType::Index, 1}};
  CHECK(verify(program) == "a local buffer of index elements");
}

TEST_CASE("program: the content is what it does, not what it is called") {
  const Program program = every_code();
  Program same = program;
  same.name = "other";
  CHECK(content(same) == content(program));
  auto differs = [&](auto change) {
    Program other = program;
    change(other);
    return content(other) != content(program);
  };
  CHECK(differs([](Program& p) { p.sizes = 2; }));
  CHECK(differs([](Program& p) { p.buffers[0].dtype = DType::F64; }));
  CHECK(differs([](Program& p) { p.buffers[0].written = true; }));
  CHECK(differs([](Program& p) { p.buffers.push_back({DType::F32, false}); }));
  CHECK(differs([](Program& p) { p.locals[0].elements = 9; }));
  CHECK(differs([](Program& p) { p.locals[0].dtype = DType::BF16; }));
  CHECK(differs([](Program& p) { p.locals[0].space = MemorySpace::Private; }));
  CHECK(differs([](Program& p) { p.locals[0].width = 4; }));
  CHECK(differs([](Program& p) { p.buffers[0].width = 4; }));
  CHECK(differs([](Program& p) { p.threads = 8; }));
  CHECK(differs([](Program& p) { p.index_bits = 32; }));
  CHECK(differs([](Program& p) { p.code.pop_back(); }));
  for (size_t i = 0; i < program.code.size(); ++i) {
    CHECK(differs([&](Program& p) { p.code[i].lanes = 300; }));
    CHECK(differs([&](Program& p) { p.code[i].bits += 1; }));
    CHECK(differs([&](Program& p) { p.code[i].op = Op::Mod; }));
    CHECK(differs([&](Program& p) { p.code[i].dtype = DType::U16; }));
    CHECK(differs([&](Program& p) { p.code[i].width = 4; }));
    CHECK(differs([&](Program& p) { p.code[i].offset = 4; }));
    for (size_t k = 0; k < 4; ++k) {
      CHECK(differs([&](Program& p) { p.code[i].operands[k] += 1; }));
    }
  }
}
