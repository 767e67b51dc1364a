#include "kernel/gpu/insert_barriers.h"

#include <algorithm>
#include <vector>

#include "kernel/gpu/copier.h"
#include "kernel/gpu/thread_accesses.h"

namespace anneal {
namespace {

class Finder {
 public:
  explicit Finder(const Program& program)
      : program_(program),
        accesses_(program),
        found_(program.code.size()),
        watched_(program.buffers.size() + program.locals.size()) {
    for (uint64_t i = 0; i < watched_.size(); ++i)
      watched_[i] = i < program.buffers.size()
                        ? !accesses_.is_in_place(i)
                        : !accesses_.has_own_elements(i, 1) && !accesses_.has_own_elements(i, 4);
  }

  // What must stand before each instruction: a mask of barrier kinds.
  std::vector<uint64_t> run() {
    State state(watched_.size());
    walk(0, program_.code.size(), state);
    return std::move(found_);
  }

 private:
  struct State {
    explicit State(size_t buffers) : read(buffers), written(buffers) {}
    std::vector<char> read, written;  // since the last barrier, by buffer
    void join(const State& other) {
      for (size_t i = 0; i < read.size(); ++i) {
        read[i] = read[i] | other.read[i];
        written[i] = written[i] | other.written[i];
      }
    }
  };

  uint64_t kind_of(size_t buffer) const {
    return buffer < program_.buffers.size() ? kBarrierBuffers : kBarrierShared;
  }

  void clear(uint64_t kinds, State& state) const {
    for (size_t i = 0; i < watched_.size(); ++i)
      if (kinds & kind_of(i)) state.read[i] = state.written[i] = 0;
  }

  void wait(size_t instruction, State& state) {
    for (size_t i = 0; i < watched_.size(); ++i)
      if (state.read[i] || state.written[i]) found_[instruction] |= kind_of(i);
    clear(found_[instruction], state);
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
      if (each.code == Code::Barrier) {
        clear(each.bits, state);
        earliest = i + 1;
        continue;
      }
      std::vector<ThreadAccesses::Touched> touched = accesses_.of(each);
      std::erase_if(touched, [&](const auto& one) { return !watched_[one.buffer]; });
      if (touched.empty()) continue;
      const bool waits = std::ranges::any_of(touched, [&](const auto& one) {
        return (one.stored ? state.read : state.written)[one.buffer] != 0;
      });
      if (waits) wait(earliest, state);
      for (const auto& [buffer, stored] : touched)
        (stored ? state.written : state.read)[buffer] = 1;
      earliest = i + 1;
    }
  }

  const Program& program_;
  ThreadAccesses accesses_;
  std::vector<uint64_t> found_;
  std::vector<bool> watched_;
};

}  // namespace

void insert_barriers(Program& program) {
  const std::vector<uint64_t> found = Finder(program).run();
  Copier copier(program);
  uint64_t due = 0;
  for (size_t i = 0; i < copier.size(); ++i) {
    due |= found[i];
    // Carries stand right behind their loop.
    if (due != 0 && copier.old(i).code != Code::Carry) {
      copier.add({.code = Code::Barrier, .bits = due});
      due = 0;
    }
    copier.copy(i);
  }
  copier.finish();
}

}  // namespace anneal
