#include "codegen/wgsl/f32_as_f16x2.h"

#include <fmt/format.h>

namespace anneal::wgsl {

Halves::Halves(const Program& program, bool used)
    : program_(program), of_(program.code.size()), is_widened_(program.code.size()), used_(used) {
  for (const Instruction& each : program.code)
    if (each.code == Code::Compute && each.op == Op::Cast && each.dtype == DType::F32)
      is_widened_[static_cast<size_t>(each.operands[0])] = true;
}

bool Halves::makes(size_t at) const {
  if (!used_ || at >= program_.code.size()) return false;
  const Instruction& each = program_.code[at];
  return each.code == Code::Compute && each.op == Op::Cast && each.dtype == DType::F16 &&
         program_.code[static_cast<size_t>(each.operands[0])].dtype == DType::F32;
}

ValueId Halves::partner(size_t at) const {
  if (is_made(at) || !makes(at + 1)) return kNoValue;
  const ValueId other = program_.code[at + 1].operands[0];
  return static_cast<size_t>(other) < at ? other : kNoValue;
}

std::string Halves::make(size_t at, const std::string& word, const std::string& first,
                         const std::string& second) {
  of_[at] = {word, false};
  bool again = is_widened_[at];
  if (!second.empty()) {
    of_[at + 1] = {word, true};
    again = again || is_widened_[at + 1];
  }
  // Drivers take what is rounded and widened again for the number itself; a number that only we
  // know to be 0 keeps them from it.
  return fmt::format("pack2x16float(vec2<f32>({}, {})){}", first, second.empty() ? "0.0f" : second,
                     again ? " ^ given[0].y" : "");
}

std::string Halves::code(size_t at) const {
  if (!is_made(at)) return "";
  return fmt::format("({} {})", of_[at].word, of_[at].upper ? ">> 16u" : "& 0xffffu");
}

std::string Halves::part(size_t at, const char* function) const {
  if (!is_made(at)) return "";
  return fmt::format("{}({}).{}", function, of_[at].word, of_[at].upper ? 'y' : 'x');
}

std::string Halves::widened(size_t at) const { return part(at, "unpack2x16float"); }
std::string Halves::f16(size_t at) const { return part(at, "bitcast<vec2<f16>>"); }

}  // namespace anneal::wgsl
