// Programs as text, out and in: see program.h. The text may come from strangers, so the parser
// bounds what it makes; whether a program is valid is for verify() to say.
#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "ir/scalar.h"
#include "kernel/program/program.h"

namespace anneal {
namespace {

std::string type_text(DType dtype, int lanes) {
  return lanes == 1 ? std::string(name(dtype)) : fmt::format("{}x{}", name(dtype), lanes);
}

class Writer {
 public:
  explicit Writer(const Program& program) : program_(program) {}

  std::string run() {
    write("program {}", program_.name);
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const ProgramBuffer& buffer = program_.buffers[i];
      write("buffer b{} {}{}{}", i, name(buffer.dtype), buffer.written ? " written" : "",
            vectors(buffer.width));
    }
    for (size_t i = 0; i < program_.locals.size(); ++i) {
      const LocalBuffer& local = program_.locals[i];
      write("local b{} {}[{}]{}{}", program_.buffers.size() + i, name(local.dtype), local.elements,
            local.space == MemorySpace::Private ? " private" : "", vectors(local.width));
    }
    if (program_.sizes != 0) write("sizes {}", program_.sizes);
    if (program_.threads != 0) write("threads {}", program_.threads);
    if (program_.index_bits != 64) write("index_bits {}", program_.index_bits);
    if (const std::optional<MatrixUnit>& unit = program_.matrix_unit)
      write("matrix_unit {}x{}x{} {} {} lanes {}{}", unit->rows, unit->columns, unit->depth,
            name(unit->operands), name(unit->sums), unit->lanes,
            program_.emulates_matrices ? " emulated" : "");
    depth_ = 1;
    for (size_t i = 0; i < program_.code.size(); ++i) write_instruction(i, program_.code[i]);
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void write(fmt::format_string<Args...> format, Args&&... args) {
    out_.append(2 * depth_, ' ');
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  static std::string vectors(int width) { return width == 1 ? "" : fmt::format(" wide {}", width); }

  // ` wide 4 b3[%7 + 8]`: the width of an access, where it has one, and its place.
  static std::string place(const Instruction& access) {
    return fmt::format("{} b{}[%{}{}]", vectors(access.width), access.bits, access.operands[0],
                       access.offset == 0  ? ""
                       : access.offset < 0 ? fmt::format(" - {}", -int64_t{access.offset})
                                           : fmt::format(" + {}", access.offset));
  }

  // ` subgroup 32 through b3`: how threads combine what they have.
  std::string by_threads(const Instruction& combine) const {
    if (combine.subgroup == 0) return "";
    const std::string text = fmt::format(" subgroup {}", combine.subgroup);
    const bool alone = combine.subgroup == program_.threads && combine.bits == 0;
    return alone ? text : fmt::format("{} through b{}", text, combine.bits);
  }

  static std::string operands(const Instruction& instruction) {
    std::string text;
    for (ValueId id : instruction.operands) {
      if (id != kNoValue) fmt::format_to(std::back_inserter(text), " %{}", id);
    }
    return text;
  }

  static std::string condition(const Instruction& instruction) {
    return instruction.operands[1] == kNoValue ? ""
                                               : fmt::format(" if %{}", instruction.operands[1]);
  }

  // Text of any list of instructions, also of one that does not verify.
  static std::string constant(const Instruction& instruction) {
    if (!is_constant_of(instruction.dtype, instruction.bits)) return "?";
    return to_text(Scalar::from_bits(instruction.dtype, instruction.bits));
  }

  void write_instruction(size_t i, const Instruction& instruction) {
    const std::string type = type_text(instruction.dtype, instruction.lanes);
    const std::array<ValueId, 4>& from = instruction.operands;
    switch (instruction.code) {
      case Code::Constant: return write("%{} = {} {}", i, type, constant(instruction));
      case Code::Size: return write("%{} = size {}", i, instruction.bits);
      case Code::Cell: return write("%{} = cell", i);
      case Code::Compute:
        return write("%{} = {} {}{}{}{}", i, type, name(instruction.op),
                     instruction.is_unsigned ? " unsigned" : "", vectors(instruction.width),
                     operands(instruction));
      case Code::Splat: return write("%{} = {} splat %{}", i, type, from[0]);
      case Code::Zip:
        return write("%{} = {} zip {} %{} %{}", i, type, instruction.bits ? "upper" : "lower",
                     from[0], from[1]);
      case Code::Ramp: return write("%{} = {} ramp %{} by %{}", i, type, from[0], from[1]);
      case Code::Combine:
        return write("%{} = {} combine {} %{}{}", i, type, name(instruction.op), from[0],
                     by_threads(instruction));
      case Code::Load:
        return write("%{} = {} load{}{}", i, type, place(instruction), condition(instruction));
      case Code::Store:
        return write("{} {}{}{} = %{}", instruction.streaming ? "stream" : "store", type,
                     place(instruction), condition(instruction), from[2]);
      case Code::Prefetch: return write("prefetch b{}[%{}]", instruction.bits, from[0]);
      case Code::Loop:
        write("loop %{} = %{} below %{} by %{}", i, from[0], from[1], from[2]);
        ++depth_;
        return;
      case Code::Carry: return write("%{} = {} carry %{}", i, type, from[0]);
      case Code::Next: return write("next %{} = %{}", from[0], from[1]);
      case Code::If:
        write("if %{}", from[0]);
        ++depth_;
        return;
      case Code::EndLoop:
      case Code::EndIf:
        if (depth_ > 1) --depth_;
        return write("end");
      case Code::Barrier:
        return write("barrier{}{}", (instruction.bits & kBarrierShared) != 0 ? " shared" : "",
                     (instruction.bits & kBarrierBuffers) != 0 ? " buffers" : "");
      case Code::Element:
        return write("%{} = {} element {} %{}", i, type, instruction.bits, from[0]);
      case Code::Pack: return write("%{} = {} pack{}", i, type, operands(instruction));
      case Code::MatrixZero: return write("%{} = {} matrix", i, type);
      case Code::MatrixLeft:
      case Code::MatrixRight:
        return write("%{} = {} {} matrix b{}[%{}] by %{} %{}", i, type,
                     instruction.code == Code::MatrixLeft ? "left" : "right", instruction.bits,
                     from[0], from[1], from[2]);
      case Code::MatrixMultiplyAdd:
        return write("%{} = {} multiply %{} %{} add %{}", i, type, from[0], from[1], from[2]);
      case Code::MatrixStore:
        return write("store {} matrix b{}[%{}] by %{} = %{}", type, instruction.bits, from[0],
                     from[1], from[2]);
    }
  }

  const Program& program_;
  size_t depth_ = 0;
  std::string out_;
};

// ---- in

constexpr int64_t kMostWidth = 4;  // as many as an instruction has operands

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '_';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_value_char(char c) { return is_letter_or_digit(c) || c == '.' || c == '-' || c == '+'; }

// A line at a time. Methods answer with anything once the cursor has failed; the first failure is
// the error.
class Parser {
 public:
  Parser(std::string_view text, const ProgramLimits& limits) : limits_(limits), cursor_(text) {
    if (text.size() > limits.text_bytes)
      fail(fmt::format("the text is longer than {} bytes", limits.text_bytes));
  }

  std::variant<Program, TextError> run() {
    while (!cursor_.failed() && cursor_.next_line()) {
      statement();
      cursor_.end_of_line();
    }
    if (!cursor_.failed() && !named_) fail("expected program NAME");
    if (!cursor_.failed() && !open_.empty()) fail("expected end before the end of the text");
    if (!cursor_.failed()) return std::move(program_);
    return *cursor_.error();
  }

 private:
  void fail(std::string message) { cursor_.fail(std::move(message)); }

  void skip() { cursor_.skip_comment(); }
  bool accept(std::string_view wanted) { return skip(), cursor_.accept(wanted); }
  void expect(std::string_view wanted) { skip(), cursor_.expect(wanted); }
  std::string_view word() { return skip(), cursor_.take_while(is_letter_or_digit); }

  // Without a sign, at most `most`.
  int64_t number(int64_t most = std::numeric_limits<int64_t>::max()) {
    const int64_t value = (skip(), cursor_.integer().value_or(0));
    if (!cursor_.failed() && (value < 0 || value > most))
      fail(fmt::format("expected a number from 0 to {}, found {}", most, value));
    return value;
  }

  ValueId value() {
    expect("%");
    return static_cast<ValueId>(number(std::numeric_limits<ValueId>::max()));
  }

  uint64_t buffer() {
    expect("b");
    return static_cast<uint64_t>(number());
  }

  DType dtype() {
    const std::string_view text = word();
    const std::optional<DType> found = parse_dtype(text);
    if (!found && !cursor_.failed()) fail(fmt::format("there is no dtype '{}'", text));
    return found.value_or(DType::F32);
  }

  // f32, or f32x16 of lanes.
  void type(std::string_view text, Instruction& instruction) {
    size_t digits = text.size();
    while (digits > 0 && is_digit(text[digits - 1])) --digits;
    if (const std::optional<DType> scalar = parse_dtype(text)) {
      instruction.dtype = *scalar;
      return;
    }
    const bool has_lanes = digits > 1 && digits < text.size() && text[digits - 1] == 'x';
    const std::optional<DType> element =
        has_lanes ? parse_dtype(text.substr(0, digits - 1)) : std::nullopt;
    int64_t lanes = 0;
    for (const char c : text.substr(digits))
      lanes = std::min<int64_t>(lanes * 10 + (c - '0'), 1 << 20);
    if (!element || lanes < 2 || lanes > std::numeric_limits<uint16_t>::max())
      return fail(fmt::format("there is no type '{}'", text));
    instruction.dtype = *element;
    instruction.lanes = static_cast<uint16_t>(lanes);
  }

  // ---- statements

  void statement() {
    if (cursor_.peek() == '%') return definition();
    const std::string_view keyword = word();
    if (!named_ || keyword == "program") return header(keyword);
    if (keyword == "buffer") return buffer_line();
    if (keyword == "local") return local_line();
    if (keyword == "matrix_unit") return unit_line();
    if (int* number_of = header_number(keyword)) {
      *number_of = static_cast<int>(number(std::numeric_limits<int>::max()));
      return;
    }
    Instruction instruction;
    if (keyword == "store" || keyword == "stream") return store(keyword == "stream", instruction);
    if (keyword == "prefetch") return prefetch(instruction);
    if (keyword == "loop") return loop(instruction);
    if (keyword == "next") return next(instruction);
    if (keyword == "if") {
      instruction.code = Code::If;
      instruction.operands[0] = value();
      open_.push_back(Code::EndIf);
      return add(instruction);
    }
    if (keyword == "end") return end(instruction);
    if (keyword == "barrier") {
      instruction.code = Code::Barrier;
      if (accept("shared")) instruction.bits |= kBarrierShared;
      if (accept("buffers")) instruction.bits |= kBarrierBuffers;
      return add(instruction);
    }
    fail("expected an instruction");
  }

  int* header_number(std::string_view keyword) {
    if (keyword == "sizes") return &program_.sizes;
    if (keyword == "threads") return &program_.threads;
    return keyword == "index_bits" ? &program_.index_bits : nullptr;
  }

  void header(std::string_view keyword) {
    if (named_ || keyword != "program") return fail("expected program NAME, once, first");
    skip();
    program_.name = cursor_.identifier();
    if (program_.name.empty()) fail("expected a name");
    named_ = true;
  }

  void number_of_buffer(size_t expected) {
    const uint64_t number = buffer();
    if (!cursor_.failed() && number != expected) fail(fmt::format("expected buffer b{}", expected));
  }
  bool may_declare() {
    const bool may = program_.code.empty();
    if (!may) fail("buffers come before instructions");
    return may;
  }

  void buffer_line() {
    if (!may_declare()) return;
    if (!program_.locals.empty()) return fail("buffers come before locals");
    number_of_buffer(program_.buffers.size());
    const DType of = dtype();
    program_.buffers.push_back({of, accept("written")});
    vectors(program_.buffers.back().width);
  }

  void vectors(int& width) {
    if (accept("wide")) width = static_cast<int>(number(kMostWidth));
  }

  void local_line() {
    if (!may_declare()) return;
    number_of_buffer(program_.buffers.size() + program_.locals.size());
    const DType of = dtype();
    expect("[");
    program_.locals.push_back({of, number()});
    expect("]");
    if (accept("private")) program_.locals.back().space = MemorySpace::Private;
    vectors(program_.locals.back().width);
  }

  void unit_line() {
    constexpr int64_t kMost = 1024;
    MatrixUnit unit{};
    unit.rows = static_cast<int>(number(kMost));
    expect("x");
    unit.columns = static_cast<int>(number(kMost));
    expect("x");
    unit.depth = static_cast<int>(number(kMost));
    unit.operands = dtype();
    unit.sums = dtype();
    expect("lanes");
    unit.lanes = static_cast<int>(number(kMost));
    program_.matrix_unit = unit;
    program_.emulates_matrices = accept("emulated");
  }

  void add(const Instruction& instruction) {
    if (program_.code.size() >= limits_.instructions)
      return fail(fmt::format("more than {} instructions", limits_.instructions));
    program_.code.push_back(instruction);
  }

  // `b3[%7]` or `wide 4 b3[%7 + 8]`, of a buffer that was declared.
  void place(Instruction& instruction) {
    int width = 1;
    vectors(width);
    instruction.width = static_cast<uint8_t>(width);
    instruction.bits = buffer();
    const size_t buffers = program_.buffers.size() + program_.locals.size();
    if (!cursor_.failed() && instruction.bits >= buffers)
      return fail(fmt::format("there is no buffer b{}", instruction.bits));
    expect("[");
    instruction.operands[0] = value();
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (accept("+")) instruction.offset = static_cast<int32_t>(number(kMost));
    if (accept("-")) instruction.offset = static_cast<int32_t>(-number(kMost));
    expect("]");
  }
  void condition(Instruction& instruction) {
    if (accept("if")) instruction.operands[1] = value();
  }

  void store(bool streaming, Instruction& instruction) {
    instruction.code = Code::Store;
    instruction.streaming = streaming;
    type(word(), instruction);
    if (!streaming && accept("matrix")) {
      instruction.code = Code::MatrixStore;
      place(instruction);
      expect("by");
      instruction.operands[1] = value();
    } else {
      place(instruction);
      condition(instruction);
    }
    expect("=");
    instruction.operands[2] = value();
    add(instruction);
  }

  void prefetch(Instruction& instruction) {
    instruction.code = Code::Prefetch;
    place(instruction);
    if (cursor_.failed()) return;
    instruction.dtype = program_.buffer_dtype(instruction.bits);
    add(instruction);
  }

  void loop(Instruction& instruction) {
    instruction.code = Code::Loop;
    instruction.dtype = DType::Index;
    own_number();
    expect("=");
    instruction.operands[0] = value();
    expect("below");
    instruction.operands[1] = value();
    expect("by");
    instruction.operands[2] = value();
    open_.push_back(Code::EndLoop);
    add(instruction);
  }

  // Has the type of its carry.
  void next(Instruction& instruction) {
    instruction.code = Code::Next;
    const ValueId carry = value();
    expect("=");
    instruction.operands = {carry, value(), kNoValue, kNoValue};
    if (static_cast<size_t>(carry) < program_.code.size()) {
      instruction.dtype = program_.code[static_cast<size_t>(carry)].dtype;
      instruction.lanes = program_.code[static_cast<size_t>(carry)].lanes;
    }
    add(instruction);
  }

  void end(Instruction& instruction) {
    if (open_.empty()) return fail("the end of nothing");
    instruction.code = open_.back();
    open_.pop_back();
    add(instruction);
  }

  // A value is named by the number of its instruction.
  void own_number() {
    const ValueId own = value();
    if (!cursor_.failed() && own != static_cast<ValueId>(program_.code.size()))
      fail(fmt::format("expected %{}, the number of this instruction", program_.code.size()));
  }

  void definition() {
    own_number();
    expect("=");
    Instruction instruction;
    instruction.dtype = DType::Index;
    const std::string_view first = word();
    if (first == "cell") {
      instruction.code = Code::Cell;
      return add(instruction);
    }
    if (first == "size") {
      instruction.code = Code::Size;
      instruction.bits = static_cast<uint64_t>(number());
      return add(instruction);
    }
    type(first, instruction);
    skip();
    const std::string_view next = cursor_.take_while(is_value_char);
    operation(next, instruction);
    add(instruction);
  }

  void operands(Instruction& instruction) {
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      skip();
      if (cursor_.peek() != '%') return;
      instruction.operands[i] = value();
    }
  }

  void operation(std::string_view text, Instruction& instruction) {
    if (text == "splat" || text == "carry") {
      instruction.code = text == "splat" ? Code::Splat : Code::Carry;
      instruction.operands[0] = value();
    } else if (text == "zip") {
      instruction.code = Code::Zip;
      instruction.bits = accept("upper") ? 1 : 0;
      if (instruction.bits == 0) expect("lower");
      operands(instruction);
    } else if (text == "ramp") {
      instruction.code = Code::Ramp;
      instruction.operands[0] = value();
      expect("by");
      instruction.operands[1] = value();
    } else if (text == "combine") {
      instruction.code = Code::Combine;
      instruction.op = op(word());
      instruction.operands[0] = value();
      constexpr int64_t kMost = std::numeric_limits<uint16_t>::max();
      if (accept("subgroup")) instruction.subgroup = static_cast<uint16_t>(number(kMost));
      if (accept("through")) instruction.bits = buffer();
    } else if (text == "load") {
      instruction.code = Code::Load;
      place(instruction);
      condition(instruction);
    } else if (text == "element") {
      instruction.code = Code::Element;
      instruction.bits = static_cast<uint64_t>(number(kMostWidth));
      instruction.operands[0] = value();
    } else if (text == "pack") {
      instruction.code = Code::Pack;
      operands(instruction);
      const auto used = std::ranges::count_if(instruction.operands,
                                              [](ValueId each) { return each != kNoValue; });
      instruction.width = static_cast<uint8_t>(used);
    } else if (text == "matrix") {
      instruction.code = Code::MatrixZero;
    } else if (text == "left" || text == "right") {
      instruction.code = text == "left" ? Code::MatrixLeft : Code::MatrixRight;
      expect("matrix");
      place(instruction);
      expect("by");
      instruction.operands[1] = value();
      instruction.operands[2] = value();
    } else if (text == "multiply") {
      instruction.code = Code::MatrixMultiplyAdd;
      instruction.operands[0] = value();
      instruction.operands[1] = value();
      expect("add");
      instruction.operands[2] = value();
    } else if (const std::optional<Scalar> scalar = parse_scalar(instruction.dtype, text)) {
      instruction.code = Code::Constant;
      instruction.bits = scalar->bits();
    } else {
      instruction.code = Code::Compute;
      instruction.op = op(text);
      instruction.is_unsigned = accept("unsigned");
      int width = 1;
      vectors(width);
      instruction.width = static_cast<uint8_t>(width);
      operands(instruction);
    }
  }

  Op op(std::string_view text) {
    const std::optional<Op> found = parse_op(text);
    if (!found && !cursor_.failed()) fail(fmt::format("there is no op or value '{}'", text));
    return found.value_or(Op::Add);
  }

  ProgramLimits limits_;
  Cursor cursor_;
  Program program_;
  bool named_ = false;
  std::vector<Code> open_;  // what ends the loops and ifs around
};

}  // namespace

std::string to_text(const Program& program) { return Writer(program).run(); }

std::variant<Program, TextError> parse_program(std::string_view text, const ProgramLimits& limits) {
  return Parser(text, limits).run();
}

}  // namespace anneal
