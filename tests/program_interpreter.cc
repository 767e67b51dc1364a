#include "program_interpreter.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "ir/semantics.h"

namespace anneal {
namespace {

using Lanes = std::vector<Scalar>;  // of matrices: all elements

// Who touched elements since the last barrier for their memory. Threads run side by side between
// barriers: without a race every order gives the same, so that the one below, instruction by
// instruction, is as good as any.
class Races {
 public:
  static constexpr int kNobody = -1, kSeveral = -2;  // several: which of some is not told

  // A problem, or nothing. `thread` may be several.
  std::string touch(uint64_t buffer, size_t element, int thread, bool stores, uint64_t kind) {
    Touched& touched = touched_[{buffer, element}];
    int64_t& now = barriers_[kind];
    if (touched.barriers != now) touched = {kNobody, kNobody, now};
    auto is_other = [&](int one) {
      return one != kNobody && (one != thread || thread == kSeveral);
    };
    if (is_other(touched.writer)) return text(touched.writer, thread, buffer, element);
    if (stores && is_other(touched.reader)) return text(touched.reader, thread, buffer, element);
    if (stores)
      touched.writer = thread;
    else
      touched.reader = touched.reader == kNobody || touched.reader == thread ? thread : kSeveral;
    return "";
  }
  void barrier(uint64_t kinds) {
    for (uint64_t kind : {kBarrierShared, kBarrierBuffers})
      if (kinds & kind) ++barriers_[kind];
  }

 private:
  struct Touched {
    int reader = kNobody, writer = kNobody;
    int64_t barriers = -1;  // before it
  };
  static std::string name(int thread) {
    return thread == kSeveral ? "several" : fmt::format("{}", thread);
  }
  static std::string text(int a, int b, uint64_t buffer, size_t element) {
    return fmt::format("threads race for b{}[{}]: {} and {}", buffer, element, name(a), name(b));
  }

  std::map<std::pair<uint64_t, size_t>, Touched> touched_;
  std::map<uint64_t, int64_t> barriers_;  // by kind
};

class Run {
 public:
  Run(const Program& program, std::span<Value* const> buffers, std::span<const int64_t> sizes)
      : program_(program), buffers_(buffers), sizes_(sizes), values_(program.code.size()) {
    std::vector<size_t> open;
    end_.resize(program.code.size());
    for (size_t at = 0; at < program.code.size(); ++at) {
      const Code code = program.code[at].code;
      if (code == Code::Loop || code == Code::If) open.push_back(at);
      if (code != Code::EndLoop && code != Code::EndIf) continue;
      end_[open.back()] = at;
      open.pop_back();
    }
  }

  void cell(int64_t number) {
    cell_ = number;
    races_ = {};
    locals_.clear();
    for (const LocalBuffer& local : program_.locals) {
      const size_t elements = static_cast<size_t>(local.elements);
      locals_.push_back({std::vector<uint64_t>(elements), std::vector<bool>(elements)});
    }
    range(0, program_.code.size());
  }

 private:
  struct Local {
    std::vector<uint64_t> payload;
    std::vector<bool> written;
  };

  Lanes& operand(const Instruction& instruction, size_t i) {
    return values_[static_cast<size_t>(instruction.operands[i])];
  }
  int64_t index(const Instruction& instruction, size_t i) {
    return operand(instruction, i)[0].as_int();
  }

  void range(size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at) {
      const Instruction& instruction = program_.code[at];
      if (instruction.code == Code::Loop) {
        loop(at);
        at = end_[at];
      } else if (instruction.code == Code::If) {
        if (operand(instruction, 0)[0].bits() != 0) range(at + 1, end_[at]);
        at = end_[at];
      } else {
        execute(at);
      }
    }
  }

  void loop(size_t at) {
    const Instruction& head = program_.code[at];
    size_t body = at + 1;
    for (; program_.code[body].code == Code::Carry; ++body)
      values_[body] = operand(program_.code[body], 0);
    size_t last = end_[at];
    while (program_.code[last - 1].code == Code::Next) --last;
    const int64_t begin = index(head, 0), stop = index(head, 1), step = index(head, 2);
    if (step <= 0) throw InternalError("a loop does not advance");
    for (int64_t counter = begin; counter < stop; counter += step) {
      values_[at] = {Scalar::of_int(DType::Index, counter)};
      range(body, last);
      std::vector<Lanes> next;
      for (size_t i = last; i < end_[at]; ++i) next.push_back(operand(program_.code[i], 1));
      for (size_t i = last; i < end_[at]; ++i)
        operand(program_.code[i], 0) = std::move(next[i - last]);
    }
  }

  void execute(size_t at) {
    const Instruction& instruction = program_.code[at];
    Lanes result;
    switch (instruction.code) {
      case Code::Constant:
        result.assign(instruction.lanes, Scalar::from_bits(instruction.dtype, instruction.bits));
        break;
      case Code::Size: result = {Scalar::of_int(DType::Index, sizes_[instruction.bits])}; break;
      case Code::Cell: result = {Scalar::of_int(DType::Index, cell_)}; break;
      case Code::Compute: result = compute(instruction); break;
      case Code::Splat: result.assign(instruction.lanes, operand(instruction, 0)[0]); break;
      case Code::Ramp:
        for (int64_t lane = 0; lane < instruction.lanes; ++lane)
          result.push_back(
              Scalar::of_int(DType::Index, index(instruction, 0) + lane * index(instruction, 1)));
        break;
      case Code::Combine:
        result = {instruction.subgroup == 0 ? combine(instruction, operand(instruction, 0))
                                            : combine_by_threads(instruction)};
        break;
      case Code::Zip:
        for (size_t i = 0; i < instruction.lanes; ++i) {
          const size_t from = i / 2 + (instruction.bits ? instruction.lanes / 2 : 0);
          result.push_back(operand(instruction, i % 2)[from]);
        }
        break;
      case Code::Load:
      case Code::Store: result = access(instruction); break;
      case Code::Prefetch: break;
      case Code::MatrixZero:
        result.assign(static_cast<size_t>(instruction.lanes / unit().lanes) *
                          static_cast<size_t>(unit().rows) * static_cast<size_t>(unit().columns),
                      Scalar::of(unit().sums, 0));
        break;
      case Code::MatrixLeft:
      case Code::MatrixRight:
        matrix_places_[at].clear();
        matrix_elements(instruction, index(instruction, 2), [&](int64_t place, size_t) {
          matrix_places_[at].push_back(place);
          result.push_back(load(instruction.bits, place, Races::kSeveral));
        });
        break;
      case Code::MatrixMultiplyAdd:
        // Where there are no units, operands are read as they are multiplied.
        for (size_t i : {0, 1}) {
          const auto left_or_right = static_cast<size_t>(instruction.operands[i]);
          for (int64_t place : matrix_places_[left_or_right])
            load(program_.code[left_or_right].bits, place, Races::kSeveral);
        }
        result = multiply_add(instruction);
        break;
      case Code::MatrixStore:
        matrix_elements(instruction, 1, [&](int64_t place, size_t element) {
          store(instruction.bits, place, operand(instruction, 2).at(element), Races::kSeveral);
        });
        break;
      case Code::Element: {
        const auto first = operand(instruction, 0).begin() +
                           static_cast<int64_t>(instruction.bits * instruction.lanes);
        result.assign(first, first + instruction.lanes);
        break;
      }
      case Code::Pack:
        for (size_t i = 0; i < instruction.width; ++i)
          result.insert(result.end(), operand(instruction, i).begin(),
                        operand(instruction, i).end());
        break;
      case Code::Barrier: races_.barrier(instruction.bits); break;
      default: throw InternalError("an instruction stands where it must not");
    }
    values_[at] = std::move(result);
  }

  Scalar both(const Instruction& instruction, Scalar a, Scalar b) const {
    const std::array pair{a, b};
    return evaluate(instruction.op, instruction.dtype, pair);
  }

  // Upper half into lower half until one is left.
  Scalar combine(const Instruction& instruction, Lanes values) const {
    while (values.size() > 1) {
      const size_t half = values.size() / 2;
      for (size_t i = 0; i < half; ++i) values[i] = both(instruction, values[i], values[i + half]);
      values.resize(half);
    }
    return values[0];
  }

  // The first thread of each subgroup stores what it has.
  Scalar combine_by_threads(const Instruction& instruction) {
    const Lanes& values = operand(instruction, 0);
    const size_t subgroup = instruction.subgroup, groups = values.size() / subgroup;
    if (groups == 1) return combine(instruction, values);
    const uint64_t scratch = instruction.bits;
    races_.barrier(kBarrierShared);
    for (size_t i = 0; i < groups; ++i) {
      const auto first = values.begin() + static_cast<int64_t>(i * subgroup);
      store(scratch, static_cast<int64_t>(i),
            combine(instruction, {first, first + static_cast<int64_t>(subgroup)}),
            static_cast<int>(i * subgroup));
    }
    races_.barrier(kBarrierShared);
    for (size_t half = groups / 2; subgroup == 1 && half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) {
        const auto thread = static_cast<int>(i);
        const auto at = static_cast<int64_t>(i), other = static_cast<int64_t>(i + half);
        store(scratch, at,
              both(instruction, load(scratch, at, thread), load(scratch, other, thread)), thread);
      }
      races_.barrier(kBarrierShared);
    }
    Scalar total = load(scratch, 0, Races::kSeveral);
    for (size_t i = 1; subgroup > 1 && i < groups; ++i)
      total = both(instruction, total, load(scratch, static_cast<int64_t>(i), Races::kSeveral));
    return total;
  }

  const MatrixUnit& unit() const { return *program_.matrix_unit; }

  // Matrices one after the other, by rows: where each element lies.
  template <typename Element>
  void matrix_elements(const Instruction& instruction, int64_t column_stride, Element element) {
    const Lanes& places = operand(instruction, 0);
    const int64_t row_stride = index(instruction, 1);
    const auto lanes = static_cast<size_t>(unit().lanes);
    const int rows = instruction.code == Code::MatrixRight ? unit().depth : unit().rows,
              columns = instruction.code == Code::MatrixLeft ? unit().depth : unit().columns;
    size_t number = 0;
    for (size_t lane = 0; lane < instruction.lanes; lane += lanes) {
      for (size_t i = 1; i < lanes; ++i)
        if (places.at(lane + i).bits() != places.at(lane).bits())
          throw InternalError("lanes of a matrix differ about its place");
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          element(places[lane].as_int() + i * row_stride + j * column_stride, number++);
    }
  }

  // Term after term, each sum rounded, as it is where there is no unit.
  Lanes multiply_add(const Instruction& instruction) {
    const Lanes &left = operand(instruction, 0), &right = operand(instruction, 1);
    Lanes result = operand(instruction, 2);
    const auto rows = static_cast<size_t>(unit().rows),
               columns = static_cast<size_t>(unit().columns),
               depth = static_cast<size_t>(unit().depth);
    for (size_t i = 0; i < result.size(); ++i) {
      const size_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
      for (size_t k = 0; k < depth; ++k) {
        const double factor = left[(matrix * rows + row) * depth + k].as_double(),
                     other = right[(matrix * depth + k) * columns + column].as_double();
        result[i] = Scalar::of(unit().sums, result[i].as_double() + factor * other);
      }
    }
    return result;
  }

  Lanes compute(const Instruction& instruction) {
    Lanes result;
    const size_t elements = size_t{instruction.lanes} * instruction.width;
    for (size_t lane = 0; lane < elements; ++lane) {
      std::vector<Scalar> sources;
      for (size_t i = 0; i < 4 && instruction.operands[i] != kNoValue; ++i)
        sources.push_back(operand(instruction, i).at(lane));
      // As machine code does: what is made for places that no condition allows must not fail.
      const bool divides = instruction.op == Op::FloorDiv || instruction.op == Op::Mod;
      if (instruction.is_unsigned && (sources[0].as_int() < 0 || sources[1].as_int() <= 0))
        throw InternalError(fmt::format("an unsigned division of {} by {}", sources[0].as_int(),
                                        sources[1].as_int()));
      if (divides && sources[1].bits() == 0)
        result.push_back(Scalar::of_int(instruction.dtype, 0));
      else if (instruction.op == Op::AsIndex)
        result.push_back(Scalar::of_int(DType::Index, sources[0].as_int()));
      else
        result.push_back(evaluate(instruction.op, instruction.dtype, sources));
    }
    return result;
  }

  // Of what is wide: the first elements of all lanes, then the second ones, ...
  Lanes access(const Instruction& instruction) {
    Lanes result;
    for (int64_t element = 0; element < instruction.width; ++element)
      access(instruction, element, result);
    return result;
  }

  void access(const Instruction& instruction, int64_t element, Lanes& result) {
    const bool is_load = instruction.code == Code::Load;
    const size_t first = static_cast<size_t>(element) * instruction.lanes;
    for (size_t lane = 0; lane < instruction.lanes; ++lane) {
      const Lanes& places = operand(instruction, 0);
      const int64_t at = (places.size() == 1 ? places[0].as_int() + static_cast<int64_t>(lane)
                                             : places[lane].as_int()) +
                         instruction.offset + element;
      const bool holds =
          instruction.operands[1] == kNoValue || operand(instruction, 1).at(lane).bits() != 0;
      if (is_load)
        result.push_back(holds ? load(instruction.bits, at, reader(instruction, lane))
                               : Scalar::of_int(instruction.dtype, 0));
      else if (holds)
        store(instruction.bits, at, operand(instruction, 2).at(first + lane),
              static_cast<int>(lane));
    }
  }

  // All threads load what they have in common.
  int reader(const Instruction& instruction, size_t lane) const {
    return instruction.lanes < program_.threads ? Races::kSeveral : static_cast<int>(lane);
  }

  void touch(uint64_t buffer, size_t place, int thread, bool stores) {
    if (program_.threads == 0) return;
    const bool is_local = buffer >= buffers_.size();
    std::string problem;
    if (is_local && program_.locals[buffer - buffers_.size()].space == MemorySpace::Private) {
      if (static_cast<int>(place) % program_.threads != thread)
        problem = fmt::format("thread {} touches private b{}[{}]", thread, buffer, place);
    } else {
      problem =
          races_.touch(buffer, place, thread, stores, is_local ? kBarrierShared : kBarrierBuffers);
    }
    if (!problem.empty()) throw InternalError(problem);
  }

  static size_t checked(int64_t at, size_t elements) {
    if (at < 0 || static_cast<size_t>(at) >= elements)
      throw InternalError(fmt::format("element {} of {}", at, elements));
    return static_cast<size_t>(at);
  }

  Scalar load(uint64_t buffer, int64_t at, int thread) {
    if (buffer < buffers_.size()) {
      const Value& value = *buffers_[buffer];
      const size_t place = checked(at, value.payload.size());
      touch(buffer, place, thread, false);
      return value.at(static_cast<int64_t>(place));
    }
    const Local& local = locals_[buffer - buffers_.size()];
    const size_t place = checked(at, local.payload.size());
    touch(buffer, place, thread, false);
    const DType dtype = program_.buffer_dtype(buffer);
    if (local.written[place]) return Scalar::from_bits(dtype, local.payload[place]);
    // Tiles at the edge may read what nobody wrote, as long as nobody stores what comes of it.
    if (is_float(dtype)) return Scalar::of(dtype, std::numeric_limits<double>::quiet_NaN());
    return Scalar::of_int(dtype, is_bool(dtype) ? 1 : 0x5a);
  }

  void store(uint64_t buffer, int64_t at, Scalar value, int thread) {
    if (buffer < buffers_.size()) {
      Value& target = *buffers_[buffer];
      const size_t place = checked(at, target.payload.size());
      touch(buffer, place, thread, true);
      target.payload[place] = value.bits();
      return;
    }
    Local& local = locals_[buffer - buffers_.size()];
    const size_t place = checked(at, local.payload.size());
    touch(buffer, place, thread, true);
    local.payload[place] = value.bits();
    local.written[place] = true;
  }

  const Program& program_;
  std::span<Value* const> buffers_;
  std::span<const int64_t> sizes_;
  std::vector<Lanes> values_;
  std::vector<size_t> end_;  // of the loop or if that begins there
  std::vector<Local> locals_;
  std::map<size_t, std::vector<int64_t>> matrix_places_;  // where operands of matrices were read
  Races races_;
  int64_t cell_ = 0;
};

}  // namespace

void run_program(const Program& program, std::span<Value* const> buffers,
                 std::span<const int64_t> sizes, int64_t cells, bool backwards) {
  Run run(program, buffers, sizes);
  for (int64_t i = 0; i < cells; ++i) run.cell(backwards ? cells - 1 - i : i);
}

}  // namespace anneal
