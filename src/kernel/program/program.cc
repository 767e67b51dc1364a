// Checks Programs. Must not change them, nor know any device.
#include "kernel/program/program.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "ir/infer.h"
#include "ir/scalar.h"

namespace anneal {
namespace {

size_t number(ValueId id) { return static_cast<size_t>(id); }

std::string type_text(DType dtype, int lanes) {
  return lanes == 1 ? std::string(name(dtype)) : fmt::format("{}x{}", name(dtype), lanes);
}

// ---- verify

bool can_combine(Op op, DType dtype) {
  switch (op) {
    case Op::Add:
    case Op::Mul:
    case Op::Max:
    case Op::Min:
    case Op::And:
    case Op::Or: return accepts(info(op), dtype) && !is_narrow_float(dtype);
    default: return false;
  }
}

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  std::string run() {
    check_header();
    available_.assign(program_.code.size(), false);
    for (at_ = 0; at_ < program_.code.size() && problem_.empty(); ++at_) {
      check(program_.code[at_]);
      if (problem_.empty() && makes_value(program_.code[at_].code)) make_available(at_);
    }
    if (problem_.empty() && !scopes_.empty()) {
      problem_ = fmt::format("the {} of instruction {} has no end",
                             scopes_.back().is_loop ? "loop" : "if", scopes_.back().opened_at);
    }
    return problem_;
  }

 private:
  // What a loop or an if encloses: its values end with it.
  struct Scope {
    bool is_loop = false;
    size_t opened_at = 0;
    std::vector<size_t> made;     // values to forget at the end
    std::vector<size_t> carries;  // of the loop
    std::vector<bool> has_next;   // for each of them
  };

  void report(std::string_view problem) {
    if (!problem_.empty()) return;
    problem_ = fmt::format("instruction {}: {}", at_, problem);
  }

  void check_header() {
    if (program_.sizes < 0) problem_ = "the number of sizes is negative";
    for (const ProgramBuffer& buffer : program_.buffers) {
      if (is_index(buffer.dtype)) problem_ = "a buffer of index elements";
      check_vectors(buffer.width);
    }
    for (const LocalBuffer& local : program_.locals) {
      if (is_index(local.dtype)) problem_ = "a local buffer of index elements";
      if (local.elements < 0) problem_ = "a local buffer of less than no elements";
      check_vectors(local.width);
      if (local.space == MemorySpace::Private &&
          (program_.threads <= 0 || local.elements % program_.threads != 0))
        problem_ = "a private buffer that threads cannot share out";
      if (local.space == MemorySpace::Private && local.width != 1)
        problem_ = "a private buffer of vectors";
    }
    if (program_.threads < 0) problem_ = "less than no threads";
    if (program_.index_bits != 32 && program_.index_bits != 64)
      problem_ = fmt::format("indices of {} bits", program_.index_bits);
    if (program_.matrix_unit) check_unit(*program_.matrix_unit);
    if (program_.emulates_matrices && !program_.matrix_unit) problem_ = "no unit is emulated";
  }

  void check_unit(const MatrixUnit& unit) {
    constexpr int kMostSide = 256, kMostLanes = 1024;
    for (int side : {unit.rows, unit.columns, unit.depth})
      if (side < 1 || side > kMostSide) problem_ = fmt::format("a matrix with a side of {}", side);
    if (unit.lanes < 1 || unit.lanes > kMostLanes)
      problem_ = fmt::format("a matrix of {} lanes", unit.lanes);
    if (!is_float(unit.operands) || !is_float(unit.sums))
      problem_ = "a matrix that is not of floats";
  }

  static bool is_width(int width) { return width == 1 || width == 2 || width == 4; }

  void check_vectors(int width) {
    if (!is_width(width)) problem_ = fmt::format("a buffer of vectors of {}", width);
  }

  void make_available(size_t at) {
    available_[at] = true;
    if (!scopes_.empty()) scopes_.back().made.push_back(at);
  }

  bool is_matrix(const Instruction& value) const {
    if (value.code == Code::Carry) return is_matrix(program_.code[number(value.operands[0])]);
    return makes_matrix(value.code);
  }

  // Operand i's instruction, or null when it is missing or out of scope, which is reported.
  const Instruction* operand(const Instruction& instruction, size_t i) {
    const ValueId id = instruction.operands[i];
    if (id < 0 || number(id) >= at_ || !makes_value(program_.code[number(id)].code)) {
      report(fmt::format("operand {} is no value made before", i));
      return nullptr;
    }
    if (!available_[number(id)]) {
      report(fmt::format("operand {}, %{}, is out of scope", i, id));
      return nullptr;
    }
    const Instruction& value = program_.code[number(id)];
    if (is_matrix(value) && !takes_matrix(instruction, i)) {
      report(fmt::format("operand {} is a matrix", i));
      return nullptr;
    }
    const bool takes_wide = instruction.code == Code::Element ||
                            (instruction.code == Code::Store && i == 2) ||
                            (instruction.code == Code::Compute && instruction.width > 1);
    if (value.width > 1 && !takes_wide) {
      report(fmt::format("operand {} is wide", i));
      return nullptr;
    }
    return &value;
  }

  // What is carried on is what the carry began with.
  bool takes_matrix(const Instruction& instruction, size_t i) const {
    switch (instruction.code) {
      case Code::MatrixMultiplyAdd:
      case Code::Carry: return true;
      case Code::MatrixStore: return i == 2;
      case Code::Next: return i == 1 && is_matrix(program_.code[number(instruction.operands[0])]);
      default: return false;
    }
  }

  void expect(const Instruction& instruction, size_t i, DType dtype, int lanes) {
    const Instruction* value = operand(instruction, i);
    if (!value || (value->dtype == dtype && value->lanes == lanes)) return;
    report(fmt::format("operand {} is {}, wanted {}", i, type_text(value->dtype, value->lanes),
                       type_text(dtype, lanes)));
  }

  void expect_result(const Instruction& instruction, DType dtype, int lanes) {
    if (instruction.dtype == dtype && instruction.lanes == lanes) return;
    report(fmt::format("the result is {}, wanted {}",
                       type_text(instruction.dtype, instruction.lanes), type_text(dtype, lanes)));
  }

  void expect_count(const Instruction& instruction, size_t count) {
    for (size_t i = count; i < instruction.operands.size(); ++i) {
      if (instruction.operands[i] != kNoValue) report(fmt::format("operand {} is too many", i));
    }
  }

  // What holds of every code.
  void check_form(const Instruction& instruction) {
    if (instruction.lanes == 0) return report("no lanes");
    if (program_.threads > 0 && instruction.lanes != 1 && instruction.lanes != program_.threads)
      return report(fmt::format("{} lanes of {} threads", instruction.lanes, program_.threads));
    const bool accesses = instruction.code == Code::Load || instruction.code == Code::Store;
    const bool casts = instruction.code == Code::Compute && instruction.op == Op::Cast;
    if (!is_width(instruction.width) ||
        (instruction.width > 1 && !accesses && !casts && instruction.code != Code::Pack))
      return report(fmt::format("a width of {}", instruction.width));
    if (instruction.offset != 0 && !accesses) return report("an offset of no access");
    if (instruction.subgroup != 0 && instruction.code != Code::Combine)
      return report("a subgroup that combines nothing");
    const bool divides = instruction.code == Code::Compute && is_index(instruction.dtype) &&
                         (instruction.op == Op::FloorDiv || instruction.op == Op::Mod);
    if (instruction.is_unsigned && !divides) report("what is unsigned divides no indices");
  }

  void check(const Instruction& instruction) {
    check_form(instruction);
    if (!problem_.empty() || !open_loop_accepts(instruction.code)) return;
    switch (instruction.code) {
      case Code::Constant:
        expect_count(instruction, 0);
        if (!is_constant_of(instruction.dtype, instruction.bits)) report("bits of no constant");
        return;
      case Code::Size:
        expect_count(instruction, 0);
        expect_result(instruction, DType::Index, 1);
        if (instruction.bits >= static_cast<uint64_t>(std::max(program_.sizes, 0))) {
          report(fmt::format("size {} of {}", instruction.bits, program_.sizes));
        }
        return;
      case Code::Cell:
        expect_count(instruction, 0);
        return expect_result(instruction, DType::Index, 1);
      case Code::Compute: return check_compute(instruction);
      case Code::Splat:
        expect_count(instruction, 1);
        return expect(instruction, 0, instruction.dtype, 1);
      case Code::Ramp:
        expect_count(instruction, 2);
        expect(instruction, 0, DType::Index, 1);
        expect(instruction, 1, DType::Index, 1);
        return expect_result(instruction, DType::Index, instruction.lanes);
      case Code::Combine: return check_combine(instruction);
      case Code::Zip:
        expect_count(instruction, 2);
        if (program_.threads > 0) report("threads cannot be zipped");
        if (instruction.lanes % 2 != 0 || instruction.bits > 1) report("zips no halves");
        expect(instruction, 0, instruction.dtype, instruction.lanes);
        return expect(instruction, 1, instruction.dtype, instruction.lanes);
      case Code::Load: expect_count(instruction, 2); return check_access(instruction);
      case Code::Store: expect_count(instruction, 3); return check_store(instruction);
      case Code::Prefetch:
        expect_count(instruction, 1);
        expect(instruction, 0, DType::Index, 1);
        return check_access(instruction);
      case Code::Loop: return check_loop(instruction);
      case Code::Carry: return check_carry(instruction);
      case Code::Next: return check_next(instruction);
      case Code::EndLoop: return check_end(instruction, true);
      case Code::If:
        expect_count(instruction, 1);
        expect(instruction, 0, DType::Bool, 1);
        return open(false);
      case Code::EndIf: return check_end(instruction, false);
      case Code::Barrier: expect_count(instruction, 0); return check_barrier(instruction);
      case Code::MatrixZero: expect_count(instruction, 0); return check_matrix(instruction);
      case Code::MatrixLeft:
      case Code::MatrixRight:
        expect_count(instruction, 3);
        check_matrix(instruction);
        return check_matrix_access(instruction, {1, 2});
      case Code::MatrixMultiplyAdd: return check_multiply_add(instruction);
      case Code::MatrixStore:
        expect_count(instruction, 3);
        check_matrix(instruction);
        check_matrix_access(instruction, {1});
        return expect_matrix(instruction, 2, {Code::MatrixZero, Code::MatrixMultiplyAdd});
      case Code::Element: expect_count(instruction, 1); return check_element(instruction);
      case Code::Pack: expect_count(instruction, instruction.width); return check_pack(instruction);
    }
    report("unknown code");
  }

  void check_store(const Instruction& instruction) {
    check_access(instruction);
    if (instruction.bits < program_.buffers.size() && !program_.buffers[instruction.bits].written)
      report("stores to a buffer that is not written");
    expect(instruction, 2, instruction.dtype, instruction.lanes);
    if (problem_.empty() && width_of(instruction.operands[2]) != instruction.width)
      report(fmt::format("stores {} of {} elements", instruction.width,
                         width_of(instruction.operands[2])));
  }

  void check_barrier(const Instruction& instruction) {
    if (program_.threads == 0) report("a barrier where lanes are no threads");
    if (instruction.bits == 0 || instruction.bits > (kBarrierShared | kBarrierBuffers))
      report("a barrier for no memory");
  }

  void check_element(const Instruction& instruction) {
    expect(instruction, 0, instruction.dtype, instruction.lanes);
    if (problem_.empty() && (width_of(instruction.operands[0]) == 1 ||
                             instruction.bits >= width_of(instruction.operands[0])))
      report(fmt::format("element {} of {}", instruction.bits, width_of(instruction.operands[0])));
  }

  void check_pack(const Instruction& instruction) {
    if (instruction.width == 1) report("packs one element");
    for (size_t i = 0; i < instruction.width; ++i)
      expect(instruction, i, instruction.dtype, instruction.lanes);
  }

  void check_matrix(const Instruction& instruction) {
    const bool operand =
        instruction.code == Code::MatrixLeft || instruction.code == Code::MatrixRight;
    if (!program_.matrix_unit) return report("a matrix of no unit");
    const MatrixUnit& unit = *program_.matrix_unit;
    if (instruction.lanes % unit.lanes != 0) report("lanes that make no whole matrices");
    expect_result(instruction, operand ? unit.operands : unit.sums, instruction.lanes);
  }

  void check_matrix_access(const Instruction& instruction, std::initializer_list<size_t> strides) {
    const size_t local = instruction.bits - program_.buffers.size();
    if (instruction.bits < program_.buffers.size() || local >= program_.locals.size())
      return report("a matrix lies in no local buffer");
    if (program_.locals[local].dtype != instruction.dtype)
      report("a matrix lies in a buffer of another dtype");
    if (is_private(instruction.bits)) report("a matrix lies in a private buffer");
    if (program_.buffer_width(instruction.bits) != 1) report("a matrix lies in vectors");
    expect(instruction, 0, DType::Index, instruction.lanes);
    for (size_t i : strides) {
      expect(instruction, i, DType::Index, 1);
      if (problem_.empty() && program_.code[number(instruction.operands[i])].code != Code::Constant)
        report("the stride of a matrix is no constant");
    }
  }

  // Operand i is a matrix that one of these instructions made.
  void expect_matrix(const Instruction& instruction, size_t i, std::initializer_list<Code> by) {
    const Instruction* value = operand(instruction, i);
    if (!value) return;
    const int lanes = value->lanes;
    while (value->code == Code::Carry) value = &program_.code[number(value->operands[0])];
    if (std::ranges::count(by, value->code) == 0 || lanes != instruction.lanes)
      report(fmt::format("operand {} is no such matrix", i));
  }

  void check_multiply_add(const Instruction& instruction) {
    expect_count(instruction, 3);
    check_matrix(instruction);
    expect_matrix(instruction, 0, {Code::MatrixLeft});
    expect_matrix(instruction, 1, {Code::MatrixRight});
    expect_matrix(instruction, 2, {Code::MatrixZero, Code::MatrixMultiplyAdd});
  }

  // Between the first Next of a loop and its end nothing else may stand.
  bool open_loop_accepts(Code code) {
    if (at_ == 0 || program_.code[at_ - 1].code != Code::Next) return true;
    if (code == Code::Next || code == Code::EndLoop) return true;
    report("stands between a next and the end of its loop");
    return false;
  }

  void check_compute(const Instruction& instruction) {
    const Op op = instruction.op;
    if (!is_elementwise(op) && op != Op::AsIndex) {
      return report(fmt::format("{} is not elementwise", name(op)));
    }
    const OpInfo& row = info(op);
    expect_count(instruction, row.sources);
    std::array<const Instruction*, 4> sources{};
    for (size_t i = 0; i < row.sources; ++i) {
      sources[i] = operand(instruction, i);
      if (!sources[i]) return;
      if (sources[i]->lanes != instruction.lanes) {
        return report(fmt::format("operand {} has {} lanes, the result {}", i, sources[i]->lanes,
                                  instruction.lanes));
      }
    }
    const DType first = sources[0]->dtype;
    if (op == Op::Where) {
      if (first != DType::Bool) report("the condition of a where is not bool");
      for (size_t i : {1, 2}) expect(instruction, i, instruction.dtype, instruction.lanes);
      return;
    }
    for (size_t i = 1; i < row.sources; ++i) expect(instruction, i, first, instruction.lanes);
    const bool moves_bits = op == Op::Cast || op == Op::Bitcast;
    if (!accepts(row, first) || (is_narrow_float(first) && !moves_bits)) {
      return report(fmt::format("{} does not accept {}", name(op), name(first)));
    }
    if (instruction.width != sources[0]->width ||
        (instruction.width > 1 &&
         (instruction.width != 2 || first != DType::F32 || instruction.dtype != DType::F16)))
      return report("a cast of what is no pairs of f32 to f16");
    if (instruction.is_unsigned) check_divisor(instruction);
    if (op == Op::Threefry && first != DType::U32) report("threefry of another dtype than u32");
    if (op == Op::Scale && first != DType::F32) report("scale of another dtype than f32");
    if (op == Op::Bitcast) {
      if (is_index(instruction.dtype) || byte_size(instruction.dtype) != byte_size(first)) {
        report(fmt::format("bitcast of {} to {}", name(first), name(instruction.dtype)));
      }
    } else if (row.type == TypeRule::Bool) {
      expect_result(instruction, DType::Bool, instruction.lanes);
    } else if (row.type == TypeRule::Index) {
      expect_result(instruction, DType::Index, instruction.lanes);
    } else if (op != Op::Cast) {
      expect_result(instruction, first, instruction.lanes);
    }
  }

  void check_divisor(const Instruction& instruction) {
    const Instruction& by = program_.code[number(instruction.operands[1])];
    if (by.code != Code::Constant || static_cast<int64_t>(by.bits) <= 0)
      report("an unsigned division by no positive constant");
  }

  void check_combine(const Instruction& instruction) {
    expect_count(instruction, 1);
    const Instruction* value = operand(instruction, 0);
    if (!value) return;
    expect_result(instruction, value->dtype, 1);
    if (!std::has_single_bit(value->lanes)) report("combines lanes that are no power of two");
    if (!can_combine(instruction.op, value->dtype)) {
      report(fmt::format("cannot combine {} by {}", name(value->dtype), name(instruction.op)));
    }
    if (instruction.subgroup != 0) return check_group_combine(instruction, value->lanes);
    if (instruction.bits != 0) report("combines lanes through memory");
  }

  // As the threads of a workgroup do it.
  void check_group_combine(const Instruction& instruction, int lanes) {
    const int subgroup = instruction.subgroup;
    if (program_.threads == 0 || lanes != program_.threads)
      return report("combines what threads do not have");
    if (!std::has_single_bit(instruction.subgroup) || lanes % subgroup != 0)
      return report(fmt::format("subgroups of {} of {} threads", subgroup, lanes));
    if (subgroup > 1 && byte_size(instruction.dtype) > 4)
      return report("exchanges more than a word");
    const int groups = lanes / subgroup;
    if (groups == 1) return instruction.bits == 0 ? void() : report("memory that is not needed");
    const size_t local = instruction.bits - program_.buffers.size();
    if (instruction.bits < program_.buffers.size() || local >= program_.locals.size() ||
        program_.locals[local] != LocalBuffer{instruction.dtype, groups})
      report(fmt::format("b{} is no memory for {} {}", instruction.bits, groups,
                         name(instruction.dtype)));
  }

  void check_access(const Instruction& instruction) {
    if (instruction.bits >= program_.buffers.size() + program_.locals.size()) {
      return report(fmt::format("there is no buffer {}", instruction.bits));
    }
    expect_result(instruction, program_.buffer_dtype(instruction.bits), instruction.lanes);
    const Instruction* place = operand(instruction, 0);
    if (!place) return;
    if (place->dtype != DType::Index || (place->lanes != 1 && place->lanes != instruction.lanes)) {
      report(fmt::format("the place is {}, wanted index or {}",
                         type_text(place->dtype, place->lanes),
                         type_text(DType::Index, instruction.lanes)));
    }
    if (instruction.operands[1] != kNoValue) {
      expect(instruction, 1, DType::Bool, instruction.lanes);
    }
    if (is_private(instruction.bits)) check_private_access(instruction);
    check_width(instruction);
  }

  unsigned width_of(ValueId value) const { return program_.code[number(value)].width; }

  // Vectors are taken whole; of those of local buffers parts, too, and of others parts are loaded.
  void check_width(const Instruction& instruction) {
    const int width = instruction.width, vectors = program_.buffer_width(instruction.bits);
    if (width != 1 && width != vectors)
      report(fmt::format("{} elements at once of vectors of {}", width, vectors));
    if (width != vectors && instruction.code == Code::Store &&
        instruction.bits < program_.buffers.size())
      report("stores a part of a vector");
    if (width == 1 || !problem_.empty()) return;
    const ValueId place = instruction.operands[0];
    if (program_.code[number(place)].lanes != instruction.lanes ||
        !is_plain_multiple(place, width) || instruction.offset % width != 0)
      report("neighbours that may be no whole vector");
  }

  bool is_private(uint64_t buffer) const {
    return buffer >= program_.buffers.size() &&
           program_.locals[buffer - program_.buffers.size()].space == MemorySpace::Private;
  }

  // Gives up where it would have to look at very many values: texts may come from strangers, and a
  // value may be reached in many ways.
  bool is_plain_multiple(ValueId value, int64_t of) const {
    int left = 10'000;
    const Instruction unknown{Code::Cell};
    auto at = [&](ValueId each) -> const Instruction& {
      return --left < 0 ? unknown : program_.code[number(each)];
    };
    return is_multiple(at, value, of);
  }

  // That every thread stays with its own elements must be plain to see.
  void check_private_access(const Instruction& instruction) {
    const ValueId place = instruction.operands[0];
    const bool own =
        instruction.lanes == program_.threads && program_.code[number(place)].lanes == 1 &&
        instruction.offset % program_.threads == 0 && is_plain_multiple(place, program_.threads);
    if (!own) report(fmt::format("private b{} at what may be another thread's", instruction.bits));
  }

  void open(bool is_loop) { scopes_.push_back({is_loop, at_, {}, {}, {}}); }

  void check_loop(const Instruction& instruction) {
    expect_count(instruction, 3);
    for (size_t i = 0; i < 3; ++i) expect(instruction, i, DType::Index, 1);
    expect_result(instruction, DType::Index, 1);
    if (!problem_.empty()) return;
    const Instruction& step = program_.code[number(instruction.operands[2])];
    if (step.code == Code::Constant && static_cast<int64_t>(step.bits) <= 0) {
      report("the step of a loop is not positive");
    }
    open(true);
  }

  void check_carry(const Instruction& instruction) {
    expect_count(instruction, 1);
    const Code before = at_ == 0 ? Code::EndIf : program_.code[at_ - 1].code;
    if (before != Code::Loop && before != Code::Carry) {
      return report("a carry that does not follow its loop");
    }
    const ValueId start = instruction.operands[0];
    if (start >= 0 && number(start) >= scopes_.back().opened_at) {
      return report("a carry that starts with a value of its own loop");
    }
    expect(instruction, 0, instruction.dtype, instruction.lanes);
    scopes_.back().carries.push_back(at_);
    scopes_.back().has_next.push_back(false);
  }

  void check_next(const Instruction& instruction) {
    expect_count(instruction, 2);
    if (scopes_.empty() || !scopes_.back().is_loop) return report("a next outside a loop");
    Scope& loop = scopes_.back();
    const auto carry = std::find(loop.carries.begin(), loop.carries.end(),
                                 static_cast<size_t>(std::max(instruction.operands[0], 0)));
    if (instruction.operands[0] < 0 || carry == loop.carries.end()) {
      return report("a next of no carry of the loop that ends");
    }
    std::vector<bool>::reference seen =
        loop.has_next[static_cast<size_t>(carry - loop.carries.begin())];
    if (seen) return report("a second next of the same carry");
    seen = true;
    const Instruction& value = program_.code[*carry];
    expect(instruction, 1, value.dtype, value.lanes);
    const Instruction* next = operand(instruction, 1);
    if (next && is_matrix(*next) != is_matrix(value)) report("a matrix follows what is none");
  }

  void check_end(const Instruction& instruction, bool is_loop) {
    expect_count(instruction, 0);
    if (scopes_.empty() || scopes_.back().is_loop != is_loop) {
      return report(is_loop ? "the end of no loop" : "the end of no if");
    }
    Scope scope = std::move(scopes_.back());
    scopes_.pop_back();
    for (size_t made : scope.made) available_[made] = false;
    if (!is_loop) return;
    for (size_t i = 0; i < scope.carries.size(); ++i) {
      if (!scope.has_next[i]) report(fmt::format("carry %{} has no next", scope.carries[i]));
      make_available(scope.carries[i]);
    }
  }

  const Program& program_;
  size_t at_ = 0;
  std::string problem_;
  std::vector<bool> available_;
  std::vector<Scope> scopes_;
};

}  // namespace

bool makes_value(Code code) {
  switch (code) {
    case Code::Store:
    case Code::Prefetch:
    case Code::Next:
    case Code::EndLoop:
    case Code::If:
    case Code::EndIf:
    case Code::Barrier:
    case Code::MatrixStore: return false;
    default: return true;
  }
}

bool makes_matrix(Code code) {
  switch (code) {
    case Code::MatrixZero:
    case Code::MatrixLeft:
    case Code::MatrixRight:
    case Code::MatrixMultiplyAdd: return true;
    default: return false;
  }
}

bool is_constant_of(DType dtype, uint64_t bits) {
  if (is_float(dtype)) return Scalar::of(dtype, std::bit_cast<double>(bits)).bits() == bits;
  return Scalar::of_int(dtype, static_cast<int64_t>(bits)).bits() == bits;
}

std::string verify(const Program& program) { return Verifier(program).run(); }

}  // namespace anneal
