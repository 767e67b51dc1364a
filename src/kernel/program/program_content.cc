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
  const bool marked = instruction.width != 1 || instruction.offset != 0 ||
                      instruction.subgroup != 0 || instruction.is_unsigned;
  out += static_cast<char>(static_cast<int>(instruction.code) | (marked ? kMark : 0));
  if (marked) {
    write_number(out, instruction.width);
    write_number(out, static_cast<uint32_t>(instruction.offset));
    write_number(out, instruction.subgroup * 2u + (instruction.is_unsigned ? 1 : 0));
  }
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
    write_number(out, (buffer.written ? 1u : 0u) + 2u * static_cast<unsigned>(buffer.width - 1));
  }
  write_number(out, program.locals.size());
  for (const LocalBuffer& local : program.locals) {
    const bool is_private = local.space == MemorySpace::Private;
    const bool marked = is_private || local.width != 1;
    out += static_cast<char>(static_cast<int>(local.dtype) | (marked ? kMark : 0));
    if (marked)
      write_number(out, (is_private ? 1u : 0u) + 2u * static_cast<unsigned>(local.width - 1));
    write_number(out, static_cast<uint64_t>(local.elements));
  }
  write_number(out, program.code.size());
  for (size_t i = 0; i < program.code.size(); ++i) write_instruction(out, i, program.code[i]);
  if (program.threads != 0 || program.index_bits != 64) {
    write_number(out, static_cast<uint64_t>(program.threads));
    write_number(out, static_cast<uint64_t>(program.index_bits));
  }
  if (const std::optional<MatrixUnit>& unit = program.matrix_unit) {
    for (int side : {unit->rows, unit->columns, unit->depth, unit->lanes})
      write_number(out, static_cast<uint64_t>(side));
    for (DType dtype : {unit->operands, unit->sums}) out += static_cast<char>(dtype);
    if (program.emulates_matrices) out += 'e';
  }
  return out;
}

}  // namespace anneal
