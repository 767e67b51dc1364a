#include "codegen/wgsl/barriers.h"

#include <algorithm>
#include <set>

namespace anneal::wgsl {
namespace {

class Finder {
 public:
  // Whether a thread only touches elements of its own: every so many, in stretches of neighbours.
  bool own_lanes(size_t buffer, int64_t neighbours) const {
    return std::ranges::all_of(program_.code, [&](const Instruction& each) {
      for (const Touched& touched : touched_by(each))
        if (touched.buffer == buffer && !is_access(each)) return false;
      if (!is_access(each) || each.bits != buffer) return true;
      if (each.lanes == 1) return false;
      ValueId place = each.operands[0];
      const int64_t round = neighbours * each.lanes;
      if (neighbours == 1) return at(place).lanes == 1 && is_multiple(place, round);
      if (at(place).code != Code::Ramp) return false;
      const Instruction& step = at(at(place).operands[1]);
      if (step.code != Code::Constant || static_cast<int64_t>(step.bits) != neighbours)
        return false;
      place = at(place).operands[0];
      if (at(place).code == Code::Constant) return is_in_stretch(at(place), round, neighbours);
      const Instruction& sum = at(place);
      const bool offset = sum.code == Code::Compute && sum.op == Op::Add &&
                          at(sum.operands[1]).code == Code::Constant;
      if (!offset) return is_multiple(place, round);
      return is_multiple(sum.operands[0], round) &&
             is_in_stretch(at(sum.operands[1]), round, neighbours);
    });
  }
  static bool is_in_stretch(const Instruction& constant, int64_t round, int64_t neighbours) {
    return static_cast<int64_t>(constant.bits) % round < neighbours;
  }

  explicit Finder(const Program& program)
      : program_(program),
        found_(program.code.size()),
        buffers_(program.buffers.size() + program.locals.size()),
        watched_(buffers_) {
    for (size_t i = 0; i < buffers_; ++i)
      watched_[i] =
          i < program.buffers.size() ? !in_place(i) : !own_lanes(i, 1) && !own_lanes(i, 4);
  }

  std::vector<Barrier> run() {
    State state(buffers_);
    walk(0, program_.code.size(), state);
    return std::move(found_);
  }

 private:
  struct State {
    explicit State(size_t buffers) : read(buffers), written(buffers) {}
    std::vector<char> read, written;  // since the last barrier, by buffer
    void clear() {
      std::ranges::fill(read, 0);
      std::ranges::fill(written, 0);
    }
    void join(const State& other) {
      for (size_t i = 0; i < read.size(); ++i) {
        read[i] = read[i] | other.read[i];
        written[i] = written[i] | other.written[i];
      }
    }
  };

  const Instruction& at(ValueId value) const { return program_.code[static_cast<size_t>(value)]; }

  static bool is_access(const Instruction& each) {
    return each.code == Code::Load || each.code == Code::Store;
  }

  struct Touched {
    uint64_t buffer;
    bool stored;
  };
  // Where matrices are spelled out, operands are read as they are multiplied.
  std::vector<Touched> touched_by(const Instruction& each) const {
    switch (each.code) {
      case Code::Load:
      case Code::MatrixLeft:
      case Code::MatrixRight: return {{each.bits, false}};
      case Code::Store:
      case Code::MatrixStore: return {{each.bits, true}};
      case Code::MatrixMultiplyAdd:
        return {{at(each.operands[0]).bits, false}, {at(each.operands[1]).bits, false}};
      default: return {};
    }
  }

  // Whether the buffer is only loaded where it is stored, by the thread that stores there.
  bool in_place(size_t buffer) const {
    std::set<std::pair<ValueId, int>> stored;
    for (const Instruction& each : program_.code)
      if (each.code == Code::Store && each.bits == buffer)
        stored.insert({each.operands[0], each.lanes});
    return std::ranges::all_of(program_.code, [&](const Instruction& each) {
      return each.code != Code::Load || each.bits != buffer || stored.empty() ||
             (each.lanes > 1 && stored.contains({each.operands[0], each.lanes}));
    });
  }

  bool is_multiple(ValueId value, int64_t of) const {
    return anneal::is_multiple([this](ValueId each) -> const Instruction& { return at(each); },
                               value, of);
  }

  void wait(size_t instruction, State& state) {
    for (size_t i = 0; i < buffers_; ++i) {
      if (!state.read[i] && !state.written[i]) continue;
      (i < program_.buffers.size() ? found_[instruction].buffers : found_[instruction].locals) =
          true;
    }
    state.clear();
  }

  size_t end_of(size_t open) const {
    int depth = 0;
    for (size_t i = open;; ++i) {
      const Code code = program_.code[i].code;
      if (code == Code::Loop || code == Code::If) ++depth;
      if ((code == Code::EndLoop || code == Code::EndIf) && --depth == 0) return i;
    }
  }

  // A barrier stands right behind the last access before it, or where the loop or branch begins, or
  // behind the last one: what comes between, as loads of other memory do, then is on its way while
  // there is something to compute.
  void walk(size_t begin, size_t end, State& state) {
    size_t earliest = begin;
    for (size_t i = begin; i < end; ++i) {
      const Instruction& each = program_.code[i];
      if (each.code == Code::Loop || each.code == Code::If) {
        const size_t close = end_of(i);
        const State before = state;
        walk(i + 1, close, state);
        state.join(before);             // as if there was no round
        if (each.code == Code::Loop) {  // and what one round leaves, the next one finds
          walk(i + 1, close, state);
          state.join(before);
        }
        i = close;
        earliest = close + 1;
        continue;
      }
      std::vector<Touched> touched = touched_by(each);
      std::erase_if(touched, [&](const Touched& one) { return !watched_[one.buffer]; });
      if (touched.empty()) continue;
      const bool waits = std::ranges::any_of(touched, [&](const Touched& one) {
        return (one.stored ? state.read : state.written)[one.buffer] != 0;
      });
      if (waits) wait(earliest, state);
      for (const auto& [buffer, stored] : touched)
        (stored ? state.written : state.read)[buffer] = 1;
      earliest = i + 1;
    }
  }

  const Program& program_;
  std::vector<Barrier> found_;
  size_t buffers_;
  std::vector<bool> watched_;
};

}  // namespace

bool is_private(const Program& program, size_t local) {
  int lanes = 1;
  for (const Instruction& each : program.code) lanes = std::max<int>(lanes, each.lanes);
  const int64_t elements = program.locals[local].elements;
  return elements > 0 && elements % lanes == 0 &&
         Finder(program).own_lanes(program.buffers.size() + local, 1);
}

std::vector<Barrier> find_barriers(const Program& program) { return Finder(program).run(); }

}  // namespace anneal::wgsl
