#include "kernel/program/program_content.h"

namespace anneal {
namespace {

// What few programs have is marked where it is, so that it costs the others nothing.
constexpr int kMark = 0x80;

// Seven bits a byte, the lowest first, the upper bit saying that more follow.
void write_number(std::string& out, uint64_t number) {
  while (number >= 0x80) {
    out += static_cast<char>(number | 0x80);
    number >>= 7;
  }
  out += static_cast<char>(number);
}

void write_instruction(std::string& out, size_t at, const Instruction& instruction) {
  out += static_cast<char>(instruction.code);
  out += static_cast<char>(number(instruction.op));
  out += static_cast<char>(instruction.dtype);
  write_number(out, instruction.lanes * 2u + (instruction.streaming ? 1 : 0));
  write_number(out, instruction.bits);
  for (ValueId id : instruction.operands) {
    // Operands are near: counted backwards they take one byte. No value is 0.
    write_number(out, id == kNoValue ? 0 : at - static_cast<size_t>(id) + 1);
  }
}

}  // namespace

std::string content(const Program& program) {
  std::string out;
  out.reserve(64 + 12 * program.code.size());
  write_number(out, static_cast<uint64_t>(program.sizes));
  write_number(out, program.buffers.size());
  for (const ProgramBuffer& buffer : program.buffers) {
    out += static_cast<char>(buffer.dtype);
    out += buffer.written ? '\1' : '\0';
  }
  write_number(out, program.locals.size());
  for (const LocalBuffer& local : program.locals) {
    const bool is_private = local.space == MemorySpace::Private;
    out += static_cast<char>(static_cast<int>(local.dtype) | (is_private ? kMark : 0));
    write_number(out, static_cast<uint64_t>(local.elements));
  }
  write_number(out, program.code.size());
  for (size_t i = 0; i < program.code.size(); ++i) write_instruction(out, i, program.code[i]);
  if (program.threads != 0 || program.index_bits != 64) {
    write_number(out, static_cast<uint64_t>(program.threads));
    write_number(out, static_cast<uint64_t>(program.index_bits));
  }
  return out;
}

}  // namespace anneal
