// Translates instructions one by one: loops, memory and lanes; arithmetic.h does the rest.
#include "codegen/wgsl/wgsl.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include <anneal/error.h>

#include "codegen/wgsl/arithmetic.h"
#include "codegen/wgsl/matrices.h"
#include "codegen/wgsl/workgroup_reduction.h"
#include "kernel/gpu/place_locals.h"

namespace anneal::wgsl {
namespace {

class Writer {
 public:
  Writer(const Program& program, const ArgumentMemory& memory)
      : program_(program),
        memory_(memory),
        wide_index_(program.index_bits == 64),
        arithmetic_(wide_index_),
        matrices_(program, arithmetic_),
        threads_(program.threads),
        combinations_(arithmetic_, threads_),
        names_(program.code.size()),
        is_mentioned_(program.code.size()),
        is_widened_(program.code.size()) {
    if (threads_ == 0) throw InternalError("a program whose lanes are no threads has no WGSL");
    for (const Instruction& each : program.code) {
      for (size_t i = 0; i < each.operands.size(); ++i)
        if (each.operands[i] != kNoValue && mentions(each, i))
          is_mentioned_[static_cast<size_t>(each.operands[i])] = true;
      const bool widens =
          each.code == Code::Compute && each.op == Op::Cast && each.dtype == DType::F32;
      if (widens && is_of_pair(operand(each, 0)))
        is_widened_[static_cast<size_t>(operand(each, 0).operands[0])] = true;
    }
  }

  Shader write() {
    for (size_t i = 0; i < program_.code.size(); ++i) {
      write(i, program_.code[i]);
    }
    Shader shader;
    shader.threads = threads_;
    const std::string combining = combinations_.text();
    const bool subgroups = combinations_.use_subgroups() && !matrices_.use_units();
    shader.text = matrices_.enabled() + (subgroups ? "enable subgroups;\n" : "") +
                  declarations(shader) + arithmetic_.library() + matrices_.functions() + combining +
                  frame();
    return shader;
  }

 private:
  // ---- text

  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    body_.append(2 * static_cast<size_t>(depth_), ' ');
    body_ += fmt::format(format, std::forward<Arguments>(arguments)...);
    body_ += '\n';
  }

  bool is_private(size_t local) const {
    return program_.locals[local].space == MemorySpace::Private;
  }
  bool is_local(uint64_t buffer) const { return buffer >= program_.buffers.size(); }

  std::string buffer_name(uint64_t buffer) const {
    if (is_local(buffer)) return fmt::format("local{}", buffer - program_.buffers.size());
    return fmt::format("b{}", bound(buffer));
  }
  uint64_t bound(uint64_t buffer) const {
    const std::vector<int>& same_as = memory_.same_as;
    return same_as.empty() || same_as[buffer] < 0 ? buffer : static_cast<uint64_t>(same_as[buffer]);
  }

  bool is_written(uint64_t buffer) const {
    for (size_t i = 0; i < program_.buffers.size(); ++i)
      if (bound(i) == bound(buffer) && program_.buffers[i].written) return true;
    return false;
  }

  bool is_vectors(uint64_t buffer) const { return program_.buffer_width(buffer) > 1; }

  // Where the adapter's units read matrices from.
  bool is_f16_memory(uint64_t buffer) const {
    return is_local(buffer) && matrices_.use_units() && program_.buffer_dtype(buffer) == DType::F16;
  }

  // Some are tiles, which have become locals.
  bool is_used(uint64_t buffer) const {
    return std::ranges::any_of(program_.code, [&](const Instruction& each) {
      return (each.code == Code::Load || each.code == Code::Store) && !is_local(each.bits) &&
             bound(each.bits) == buffer;
    });
  }

  // Elements narrower than a word share one. Where a thread stores only some of a word, others may
  // store the rest at the same time: by atomics.
  bool is_packed(uint64_t buffer) const {
    return !is_local(buffer) && byte_size(program_.buffer_dtype(buffer)) < 4;
  }

  std::string element_type(uint64_t buffer) const {
    const DType dtype = program_.buffer_dtype(buffer);
    if (is_packed(buffer)) {
      if (is_vectors(buffer)) return byte_size(dtype) == 2 ? "vec2<u32>" : "u32";
      return is_written(buffer) ? "atomic<u32>" : "u32";
    }
    if (is_f16_memory(buffer)) return "f16";
    const std::string type = is_bool(dtype) ? "u32" : arithmetic_.type(dtype);
    return is_vectors(buffer) ? fmt::format("vec4<{}>", type) : type;
  }

  std::string declarations(Shader& shader) {
    std::string text;
    size_t binding = 0;
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      if (bound(i) != i || !is_used(i)) continue;
      const bool only_read = !memory_.only_read.empty() && memory_.only_read[i];
      shader.buffers.push_back(static_cast<int>(i));
      shader.only_read.push_back(only_read);
      text += fmt::format("@group(0) @binding({}) var<storage, {}> b{}: array<{}>;\n", binding++,
                          only_read ? "read" : "read_write", i, element_type(i));
    }
    text += fmt::format("@group(0) @binding({}) var<uniform> given: array<vec4<u32>, {}>;\n",
                        binding, 1 + (program_.sizes + 1) / 2);
    for (size_t i = 0; i < program_.locals.size(); ++i) {
      int64_t elements = program_.locals[i].elements;
      if (is_private(i)) elements /= threads_;
      if (is_vectors(program_.buffers.size() + i)) elements = (elements + 3) / 4;
      text +=
          fmt::format("var<{}> local{}: array<{}, {}>;\n", is_private(i) ? "private" : "workgroup",
                      i, element_type(program_.buffers.size() + i), elements);
    }
    return text;
  }

  // The remainder changes no number, but says how large one is at most: drivers compute places of
  // memory better for it (products became 7 % faster).
  std::string frame() const {
    return fmt::format(
        "\n@compute @workgroup_size({})\n"
        "fn main(@builtin(workgroup_id) group: vec3<u32>,\n"
        "        @builtin(local_invocation_index) thread: u32) {{\n"
        "  let cell_number = group.x + group.y * {}u;\n"
        "  if (cell_number >= given[0].x) {{ return; }}\n"
        "  let lane = thread % {}u;\n"
        "{}}}\n",
        threads_, kGroupsInRow, threads_, body_);
  }

  // ---- instructions

  const std::string& text(const Instruction& each, size_t i) const {
    return names_[static_cast<size_t>(each.operands[i])];
  }
  const Instruction& operand(const Instruction& each, size_t i) const {
    return program_.code[static_cast<size_t>(each.operands[i])];
  }

  // Whether an operand's name becomes a part of the text; others become numbers in it.
  bool mentions(const Instruction& each, size_t i) const {
    switch (each.code) {
      case Code::Ramp: return i == 0 || (each.lanes > 1 && !is_one(operand(each, 1)));
      case Code::MatrixLeft:
      case Code::MatrixRight: return i == 0;
      case Code::MatrixStore: return i != 1;
      case Code::Prefetch: return false;
      default: return true;
    }
  }
  static bool is_one(const Instruction& each) {
    return each.code == Code::Constant && each.bits == 1;
  }

  // A name that nothing else has.
  std::string fresh(const char* prefix) { return fmt::format("{}{}", prefix, names_given_++); }

  void let(size_t at, const std::string& value) {
    names_[at] = fresh("v");
    line("let {} = {};", names_[at], value);
  }

  void write(size_t at, const Instruction& each) {
    switch (each.code) {
      case Code::Constant: constant(at, each); return;
      case Code::Size: {
        const char* words = each.bits % 2 == 0 ? "xy" : "zw";
        const std::string both = fmt::format("given[{}].{}", 1 + each.bits / 2, words);
        let(at, wide_index_ ? both : fmt::format("i32({}.x)", both));
        return;
      }
      case Code::Cell:
        let(at, wide_index_ ? "vec2<u32>(cell_number, 0u)" : "i32(cell_number)");
        return;
      case Code::Compute: compute(at, each); return;
      case Code::Splat: names_[at] = text(each, 0); return;  // every thread has it
      case Code::Ramp: {
        if (each.lanes == 1) return void(names_[at] = text(each, 0));
        const Instruction& step = operand(each, 1);
        const Operand lane{wide_index_ ? "vec2<u32>(lane, 0u)" : "i32(lane)", DType::Index};
        Operand moved = lane;
        if (!is_one(step)) {
          const Operand factors[] = {lane, {text(each, 1), DType::Index}};
          moved.text = arithmetic_.compute(Op::Mul, DType::Index, factors);
        }
        const Operand terms[] = {{text(each, 0), DType::Index}, moved};
        let(at, arithmetic_.compute(Op::Add, DType::Index, terms));
        return;
      }
      case Code::Combine: {
        const std::string function = combinations_.function(each, buffer_name(each.bits));
        let(at, fmt::format("{}({}, lane)", function, text(each, 0)));
        return;
      }
      case Code::Zip: throw InternalError("lanes that are threads cannot be zipped");
      case Code::Load: load(at, each); return;
      case Code::Store:
        if (each.width > 1) return store_vector(each);
        store(each);
        return;
      case Code::Element: element(at, each); return;
      case Code::Pack:  // written where it is stored
      case Code::Prefetch: return;
      case Code::Loop: open_loop(at, each); return;
      case Code::Carry: return;  // declared before its loop
      case Code::Next: loops_.back().next.emplace_back(each.operands[0], each.operands[1]); return;
      case Code::EndLoop: close_loop(); return;
      case Code::If:
        line("if ({}) {{", text(each, 0));
        ++depth_;
        return;
      case Code::EndIf:
        --depth_;
        line("}}");
        return;
      case Code::Barrier:
        if (each.bits & kBarrierBuffers) line("storageBarrier();");
        if (each.bits & kBarrierShared) line("workgroupBarrier();");
        return;
      case Code::MatrixZero: let(at, matrices_.zero()); return;
      case Code::MatrixLeft:
      case Code::MatrixRight:
        let(at, matrices_.load(each, buffer_name(each.bits), place(each)));
        return;
      case Code::MatrixMultiplyAdd:
        let(at, matrices_.multiply_add(each, text(each, 0), text(each, 1), text(each, 2)));
        return;
      case Code::MatrixStore:
        line("{}", matrices_.store(each, buffer_name(each.bits), place(each), text(each, 2)));
        return;
    }
  }

  // See Arithmetic::constant(): what is computed with a name is computed when the shader runs.
  void constant(size_t at, const Instruction& each) {
    if (!is_mentioned_[at]) return;
    std::string value = arithmetic_.constant(each.dtype, each.bits);
    if (value.starts_with("bitcast")) {
      const std::string bits = fresh("bits");
      line("let {} = {};", bits, value.substr(13, value.size() - 14));
      value = fmt::format("bitcast<f32>({})", bits);
    }
    let(at, value);
  }

  // A word of both. Drivers take what is rounded and widened again for the number itself; a number
  // that only we know to be 0 keeps them from it.
  void pair(size_t at, const Instruction& each) {
    const Instruction& wide = operand(each, 0);
    const std::string first = element_of(wide, text(each, 0), 0),
                      second = element_of(wide, text(each, 0), 1);
    names_[at] = fresh("h");
    line("let {} = pack2x16float(vec2<f32>({}, {})){};", names_[at], first, second,
         is_widened_[at] ? " ^ given[0].y" : "");
  }

  // Whether a value is one of a pair of f16.
  bool is_of_pair(const Instruction& half) const {
    return half.code == Code::Element && operand(half, 0).code == Code::Compute;
  }
  // That one, by a function that takes both.
  std::string part_of_pair(const char* function, const Instruction& half) const {
    return fmt::format("{}({}).{}", function, text(half, 0), half.bits == 0 ? 'x' : 'y');
  }

  void compute(size_t at, const Instruction& each) {
    if (each.width > 1) return pair(at, each);
    if (each.op == Op::Cast && each.dtype == DType::F32 && is_of_pair(operand(each, 0)))
      return let(at, part_of_pair("unpack2x16float", operand(each, 0)));
    std::vector<Operand> operands;
    for (size_t i = 0; i < info(each.op).sources; ++i)
      operands.push_back({text(each, i), operand(each, i).dtype});
    if (each.op == Op::Add && each.dtype == DType::F32)
      for (size_t i = 0; i < 2; ++i)
        if (takes_back(each.operands[i], each.operands[1 - i]))
          operands[i].text =
              fmt::format("bitcast<f32>(bitcast<u32>({}) ^ given[0].y)", operands[i].text);
    if (each.is_unsigned)
      return let(at, arithmetic_.divide_unsigned(each.op, operands[0].text, operands[1].text));
    let(at, arithmetic_.compute(each.op, each.dtype, operands));
  }

  // Whether a sum has a term that is added to it with the other sign, as in (x + c) - c. What is
  // left is what rounding did, but WGSL lets drivers add in any order and get x: a number that only
  // we know to be 0 stands between.
  bool takes_back(ValueId sum, ValueId term) const {
    const Instruction& added = instruction(positive(sum));
    if (added.op == Op::Add && added.code == Code::Compute)
      return is_same_size(added.operands[0], term) || is_same_size(added.operands[1], term);
    return added.op == Op::MulAdd && added.code == Code::Compute &&
           is_same_size(added.operands[2], term);
  }

  bool is_same_size(ValueId a, ValueId b) const {
    a = positive(a), b = positive(b);
    const bool constants =
        instruction(a).code == Code::Constant && instruction(b).code == Code::Constant;
    return a == b || (constants && std::abs(std::bit_cast<double>(instruction(a).bits)) ==
                                       std::abs(std::bit_cast<double>(instruction(b).bits)));
  }

  // Without the signs before it, and the same for all lanes.
  ValueId positive(ValueId value) const {
    const Instruction* at = &instruction(value);
    while ((at->code == Code::Compute && at->op == Op::Neg) || at->code == Code::Splat)
      at = &instruction(value = at->operands[0]);
    return value;
  }

  const Instruction& instruction(ValueId value) const {
    return program_.code[static_cast<size_t>(value)];
  }

  // ---- memory

  // The element's place as an unsigned number.
  std::string place(const Instruction& each) const {
    std::string scalar = place_without_offset(each);
    if (each.offset != 0)
      scalar =
          fmt::format("({} {} {}u)", scalar, sign(each.offset), std::abs(int64_t{each.offset}));
    if (is_local(each.bits) && is_private(each.bits - program_.buffers.size()))
      return fmt::format("{} / {}u", scalar, threads_);
    return scalar;
  }
  std::string place_without_offset(const Instruction& each) const {
    std::string scalar = wide_index_ ? text(each, 0) + ".x" : fmt::format("u32({})", text(each, 0));
    const bool private_memory =
        is_local(each.bits) && is_private(each.bits - program_.buffers.size());
    const bool neighbours = each.lanes > 1 && operand(each, 0).lanes == 1 && !private_memory;
    return neighbours ? fmt::format("{} + lane", scalar) : scalar;
  }
  static char sign(int64_t number) { return number < 0 ? '-' : '+'; }

  std::string loaded(const Instruction& each, const std::string& at) {
    const DType dtype = each.dtype;
    const std::string buffer = buffer_name(each.bits);
    if (!is_packed(each.bits)) {
      const std::string element = is_vectors(each.bits)
                                      ? fmt::format("{}[({}) >> 2u][({}) & 3u]", buffer, at, at)
                                      : fmt::format("{}[{}]", buffer, at);
      return is_bool(dtype) ? fmt::format("({} != 0u)", element) : element;
    }
    const bool half = byte_size(dtype) == 2;
    const int shift = half ? 1 : 2, in_word = (1 << shift) - 1;
    std::string word = fmt::format("{}[({}) >> {}u]", buffer, at, shift);
    if (is_vectors(each.bits)) {
      if (half) word = fmt::format("{}[({}) >> 2u][(({}) >> 1u) & 1u]", buffer, at, at);
    } else if (is_written(each.bits)) {
      word = fmt::format("atomicLoad(&{})", word);
    }
    return unpacked(dtype, word, fmt::format("(({}) & {}u) * {}u", at, in_word, half ? 16 : 8));
  }

  // The element that begins at a bit of a word.
  static std::string unpacked(DType dtype, const std::string& word, const std::string& bit) {
    const auto bits = 8 * byte_size(dtype);
    if (is_signed(dtype))
      return fmt::format("extractBits(bitcast<i32>({}), {}, {}u)", word, bit, bits);
    const std::string part = fmt::format("extractBits({}, {}, {}u)", word, bit, bits);
    return is_bool(dtype) ? fmt::format("({} != 0u)", part) : part;
  }

  // The bits of an element at the bottom of a word of zeros.
  static std::string packed(DType dtype, const std::string& value) {
    if (is_bool(dtype)) return fmt::format("u32({})", value);
    const std::string bits = is_signed(dtype) ? fmt::format("bitcast<u32>({})", value) : value;
    return fmt::format("({} & {:#x}u)", bits, byte_size(dtype) == 2 ? 0xffff : 0xff);
  }

  // The number of the vector.
  std::string vector_place(const Instruction& each) const {
    const int64_t further = each.offset / each.width;
    const std::string moved = further == 0 ? ""
                                           : fmt::format(" {} {}{}", sign(further),
                                                         std::abs(further), wide_index_ ? "u" : "");
    const int shift = each.width == 4 ? 2 : 1;
    if (wide_index_) return fmt::format("({}.x >> {}u){}", text(each, 0), shift, moved);
    if (moved.empty()) return fmt::format("u32({} >> {}u)", text(each, 0), shift);
    return fmt::format("u32(({} >> {}u){})", text(each, 0), shift, moved);
  }

  // What is read under a condition is read from the first element where it does not hold, and is
  // zero: every buffer has one, and a branch for each load takes some drivers minutes to compile.
  std::string guarded(const std::string& condition, const std::string& type,
                      const std::string& value) const {
    return fmt::format("select({}(), {}, {})", type, value, condition);
  }
  std::string guarded_place(const Instruction& each, const std::string& place) {
    if (each.operands[1] == kNoValue) return place;
    std::string name = fresh("at");
    line("let {} = select(0u, {}, {});", name, place, text(each, 1));
    return name;
  }

  void load(size_t at, const Instruction& each) {
    const bool wide = each.width > 1;
    const std::string where = guarded_place(each, wide ? vector_place(each) : place(each));
    const std::string value =
        wide ? fmt::format("{}[{}]", buffer_name(each.bits), where) : loaded(each, where);
    const std::string type = wide ? element_type(each.bits) : arithmetic_.type(each.dtype);
    let(at, each.operands[1] == kNoValue ? value : guarded(text(each, 1), type, value));
  }

  // Element i of a wide value: of one that is packed, its operand; of one that was loaded, a part
  // of what memory has.
  std::string element_of(const Instruction& wide, const std::string& name, size_t i) const {
    if (wide.code == Code::Pack) return text(wide, i);
    if (wide.code == Code::Compute)  // the bits of a half, below zeros
      return fmt::format("({} {})", name, i == 0 ? "& 0xffffu" : ">> 16u");
    if (!is_packed(wide.bits)) return fmt::format("{}.{}", name, "xyzw"[i]);
    if (byte_size(wide.dtype) == 1) return unpacked(wide.dtype, name, fmt::format("{}u", i * 8));
    const std::string word = fmt::format("{}.{}", name, i < 2 ? 'x' : 'y');
    return unpacked(wide.dtype, word, fmt::format("{}u", i % 2 * 16));
  }

  void element(size_t at, const Instruction& each) {
    const Instruction& wide = operand(each, 0);
    std::string value = element_of(wide, text(each, 0), each.bits);
    if (wide.code != Code::Load || !is_packed(wide.bits))
      names_[at] = std::move(value);
    else
      let(at, value);
  }

  void store_vector(const Instruction& each) {
    const Instruction& wide = operand(each, 2);
    std::vector<std::string> values;
    for (size_t i = 0; i < each.width; ++i) values.push_back(element_of(wide, text(each, 2), i));
    if (is_packed(each.bits)) values = packed_words(each.dtype, values);
    const std::string store =
        fmt::format("{}[{}] = {}({});", buffer_name(each.bits), vector_place(each),
                    element_type(each.bits), fmt::join(values, ", "));
    if (each.operands[1] == kNoValue)
      line("{}", store);
    else
      line("if ({}) {{ {} }}", text(each, 1), store);
  }

  // Words of as many elements as one has.
  static std::vector<std::string> packed_words(DType dtype,
                                               const std::vector<std::string>& values) {
    const size_t in_word = 4 / byte_size(dtype);
    std::vector<std::string> words((values.size() + in_word - 1) / in_word);
    for (size_t i = 0; i < values.size(); ++i) {
      std::string& word = words[i / in_word];
      word += fmt::format("{}({} << {}u)", word.empty() ? "" : " | ", packed(dtype, values[i]),
                          i % in_word * 8 * byte_size(dtype));
    }
    return words;
  }

  // One element of a buffer of vectors. A distance of whole vectors is kept apart, so that stores
  // at such distances share the rest.
  std::string part_of_vector(const Instruction& each) const {
    if (each.offset < 0 || each.offset % 4 != 0) {
      const std::string at = place(each);
      return fmt::format("{0}[({1}) >> 2u][({1}) & 3u]", buffer_name(each.bits), at);
    }
    return fmt::format("{0}[(({1}) >> 2u) + {2}u][({1}) & 3u]", buffer_name(each.bits),
                       place_without_offset(each), each.offset / 4);
  }

  void store(const Instruction& each) {
    std::string condition;
    if (each.operands[1] != kNoValue) condition = text(each, 1);
    if (each.lanes == 1 && threads_ > 1)
      condition += condition.empty() ? "lane == 0u" : " & (lane == 0u)";
    if (!condition.empty()) {
      line("if ({}) {{", condition);
      ++depth_;
    }
    const std::string where = place(each), value = text(each, 2), buffer = buffer_name(each.bits);
    if (is_f16_memory(each.bits)) {
      const Instruction& half = operand(each, 2);
      line("{}[{}] = {};", buffer, where,
           is_of_pair(half) ? part_of_pair("bitcast<vec2<f16>>", half)
                            : fmt::format("bitcast<vec2<f16>>({}).x", value));
    } else if (!is_packed(each.bits)) {
      line("{} = {};", is_vectors(each.bits) ? part_of_vector(each) : buffer + "[" + where + "]",
           is_bool(each.dtype) ? fmt::format("u32({})", value) : value);
    } else {
      const bool half = byte_size(each.dtype) == 2;
      line("{{");
      line("  let at = {};", where);
      line("  let shift = (at & {}u) * {}u;", half ? 1 : 3, half ? 16 : 8);
      line("  atomicAnd(&{}[at >> {}u], ~({:#x}u << shift));", buffer, half ? 1 : 2,
           half ? 0xffff : 0xff);
      line("  atomicOr(&{}[at >> {}u], {} << shift);", buffer, half ? 1 : 2,
           packed(each.dtype, value));
      line("}}");
    }
    if (!condition.empty()) {
      --depth_;
      line("}}");
    }
  }

  // ---- control

  struct Loop {
    std::vector<std::pair<ValueId, ValueId>> next;
    std::string step;
    size_t at = 0;
  };

  void open_loop(size_t at, const Instruction& each) {
    for (size_t i = at + 1; i < program_.code.size() && program_.code[i].code == Code::Carry; ++i) {
      names_[i] = fresh("v");
      line("var {} = {};", names_[i], text(program_.code[i], 0));
    }
    names_[at] = fresh("v");
    const Operand bounds[] = {{names_[at], DType::Index}, {text(each, 1), DType::Index}};
    const Operand step[] = {{names_[at], DType::Index}, {text(each, 2), DType::Index}};
    line("for (var {} = {}; {}; {} = {}) {{", names_[at], text(each, 0),
         arithmetic_.compute(Op::Lt, DType::Index, bounds), names_[at],
         arithmetic_.compute(Op::Add, DType::Index, step));
    ++depth_;
    loops_.push_back({});
  }

  // All carried values change at once: one that becomes another of them is read before.
  void close_loop() {
    Loop loop = std::move(loops_.back());
    loops_.pop_back();
    std::vector<std::string> values;
    for (const auto& [carry, value] : loop.next) {
      std::string name = names_[static_cast<size_t>(value)];
      const bool changes = std::ranges::any_of(loop.next, [&](const auto& other) {
        return names_[static_cast<size_t>(other.first)] == name && other.first != carry;
      });
      if (changes) {
        std::string next = fresh("next");
        line("let {} = {};", next, name);
        name = std::move(next);
      }
      values.push_back(std::move(name));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string& carried = names_[static_cast<size_t>(loop.next[i].first)];
      if (carried != values[i]) line("{} = {};", carried, values[i]);
    }
    --depth_;
    line("}}");
  }

  const Program& program_;
  const ArgumentMemory& memory_;
  bool wide_index_;
  Arithmetic arithmetic_;
  Matrices matrices_;
  int threads_;
  WorkgroupReductions combinations_;
  std::vector<std::string> names_;
  std::vector<bool> is_mentioned_;  // of instructions
  std::vector<bool> is_widened_;    // of pairs of f16, by the instruction that makes them
  size_t names_given_ = 0;
  std::vector<Loop> loops_;
  std::string body_;
  int depth_ = 1;
};

}  // namespace

Shader write_shader(const Program& program, const ArgumentMemory& memory) {
  return Writer(program, memory).write();
}

}  // namespace anneal::wgsl
