#include "kernel/emit/code_builder.h"

#include <algorithm>
#include <array>
#include <optional>

#include <anneal/error.h>

#include "base/checked.h"
#include "ir/semantics.h"

namespace anneal {

CodeBuilder::CodeBuilder(Program program) : program_(std::move(program)) {
  root_ = current_ = &scopes_.emplace_back();
}

size_t CodeBuilder::Hash::operator()(const Instruction& instruction) const {
  uint64_t hash = instruction.bits;
  auto mix = [&](uint64_t word) { hash = (hash ^ word) * 0x9e3779b97f4a7c15u; };
  mix(static_cast<uint64_t>(instruction.code) << 32 | static_cast<uint64_t>(instruction.op) << 16 |
      static_cast<uint64_t>(instruction.dtype));
  mix(instruction.lanes);
  for (ValueId operand : instruction.operands) mix(static_cast<uint64_t>(operand));
  return hash ^ hash >> 32;
}

CodeBuilder::Scope* CodeBuilder::deeper(Scope* a, Scope* b) const {
  return a->depth < b->depth ? b : a;
}

CodeBuilder::Scope* CodeBuilder::memory_floor() const {
  Scope* scope = current_;
  while (scope->parent && !scope->guards_memory) scope = scope->parent;
  return scope;
}

bool CodeBuilder::is_visible(ValueId value) const {
  const Scope* scope = scope_of(value);
  const Scope* from = current_;
  while (from->depth > scope->depth) from = from->parent;
  return from == scope;
}

ValueId CodeBuilder::append(const Instruction& instruction, Scope* scope) {
  code_.push_back(instruction);
  scope_of_.push_back(scope);
  const ValueId id = static_cast<ValueId>(code_.size() - 1);
  scope->items.push_back(id);
  return id;
}

ValueId CodeBuilder::unique(const Instruction& instruction, Scope* scope) {
  auto [entry, fresh] = known_.try_emplace(instruction, kNoValue);
  if (!fresh && is_visible(entry->second)) return entry->second;
  return entry->second = append(instruction, scope);
}

ValueId CodeBuilder::constant(const Scalar& value, int lanes) {
  Instruction instruction{Code::Constant};
  instruction.dtype = value.dtype();
  instruction.lanes = static_cast<uint16_t>(lanes);
  instruction.bits = value.bits();
  return unique(instruction, root_);
}

ValueId CodeBuilder::index(int64_t value) { return constant(Scalar::of_int(DType::Index, value)); }
ValueId CodeBuilder::truth(bool value) { return constant(Scalar::of_int(DType::Bool, value)); }

ValueId CodeBuilder::size(int number) {
  Instruction instruction{Code::Size};
  instruction.dtype = DType::Index;
  instruction.bits = static_cast<uint64_t>(number);
  return unique(instruction, root_);
}

ValueId CodeBuilder::cell() {
  Instruction instruction{Code::Cell};
  instruction.dtype = DType::Index;
  return unique(instruction, root_);
}

ValueId CodeBuilder::splat(ValueId value, int lanes) {
  if (lanes == 1 || this->lanes(value) == lanes) return value;
  if (is_constant(value)) return constant(Scalar::from_bits(dtype(value), at(value).bits), lanes);
  Instruction instruction{Code::Splat};
  instruction.dtype = dtype(value);
  instruction.lanes = static_cast<uint16_t>(lanes);
  instruction.operands[0] = value;
  return unique(instruction, scope_of(value));
}

ValueId CodeBuilder::ramp(ValueId base, ValueId step, int lanes) {
  Instruction instruction{Code::Ramp};
  instruction.dtype = DType::Index;
  instruction.lanes = static_cast<uint16_t>(lanes);
  instruction.operands[0] = base;
  instruction.operands[1] = step;
  return unique(instruction, deeper(scope_of(base), scope_of(step)));
}

ValueId CodeBuilder::combine(Op op, ValueId value) {
  if (lanes(value) == 1) return value;
  Instruction instruction{Code::Combine};
  instruction.op = op;
  instruction.dtype = dtype(value);
  instruction.operands[0] = value;
  return unique(instruction, scope_of(value));
}

ValueId CodeBuilder::sub(ValueId a, ValueId b) {
  if (a == b) return index(0);
  const Instruction first = at(a);
  const bool is_sum = first.code == Code::Compute && first.op == Op::Add && lanes(a) == 1;
  if (is_sum && first.operands[0] == b) return first.operands[1];
  if (is_sum && first.operands[1] == b) return first.operands[0];
  return add(a, mul(b, index(-1)));
}

ValueId CodeBuilder::zip(ValueId a, ValueId b, bool upper) {
  Instruction instruction{Code::Zip};
  instruction.dtype = dtype(a);
  instruction.lanes = static_cast<uint16_t>(lanes(a));
  instruction.operands[0] = a;
  instruction.operands[1] = b;
  instruction.bits = upper ? 1 : 0;
  return unique(instruction, deeper(scope_of(a), scope_of(b)));
}

// Zipping the first half of the rows with the second one puts the lowest bit of the row's number
// in the place of the highest bit of the lane's; after all bits have moved, both are swapped.
std::vector<ValueId> CodeBuilder::transpose(std::vector<ValueId> rows) {
  const size_t count = rows.size();
  for (size_t round = 1; round < count; round *= 2) {
    std::vector<ValueId> next;
    for (size_t i = 0; i < count / 2; ++i)
      for (bool upper : {false, true}) next.push_back(zip(rows[i], rows[i + count / 2], upper));
    rows = std::move(next);
  }
  return rows;
}

ValueId CodeBuilder::both(ValueId a, ValueId b) {
  if (a == kNoValue || b == kNoValue) return a == kNoValue ? b : a;
  return compute(Op::And, DType::Bool, {a, b});
}

// What constants alone decide. Floats are left to the nodes' own folding: a program computes f32 in
// f32, and nothing is lost here but a constant.
ValueId CodeBuilder::fold_scalars(Op op, DType dtype, std::span<const ValueId> operands) {
  std::array<Scalar, 4> sources;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Instruction& operand = at(operands[i]);
    const bool foldable = operand.code == Code::Constant && !is_float(operand.dtype);
    if (!foldable) return kNoValue;
    sources[i] = Scalar::from_bits(operand.dtype, operand.bits);
  }
  if (is_float(dtype) || op == Op::AsIndex) return kNoValue;
  if (dtype == DType::Index && op != Op::Where) {
    const int64_t a = sources[0].as_int(), b = operands.size() > 1 ? sources[1].as_int() : 0;
    std::optional<int64_t> result;
    if (op == Op::Add) result = checked_add(a, b);
    if (op == Op::Mul) result = checked_mul(a, b);
    if (op == Op::Max) result = std::max(a, b);
    if (op == Op::Min) result = std::min(a, b);
    if (op == Op::FloorDiv && b > 0) result = floor_div(a, b);
    if (op == Op::Mod && b > 0) result = floor_mod(a, b);
    return result ? index(*result) : kNoValue;
  }
  return constant(evaluate(op, dtype, std::span(sources).first(operands.size())));
}

// Units and zeros of index arithmetic and conditions, sums of constants moved together.
ValueId CodeBuilder::fold(Op op, DType dtype, std::span<const ValueId> operands) {
  if (ValueId folded = fold_scalars(op, dtype, operands); folded != kNoValue) return folded;
  if (operands.size() == 3 && op == Op::Where) {
    if (is_constant(operands[0])) return operands[at(operands[0]).bits != 0 ? 1 : 2];
    return operands[1] == operands[2] ? operands[1] : kNoValue;
  }
  if (operands.size() != 2) return kNoValue;
  ValueId a = operands[0], b = operands[1];
  if (op == Op::And && dtype == DType::Bool) {
    if (a == b || is_constant(b, 1) || is_constant(a, 0)) return a;
    if (is_constant(a, 1) || is_constant(b, 0)) return b;
  }
  if (dtype != DType::Index) return kNoValue;
  if (is_constant(a) && (op == Op::Add || op == Op::Mul)) std::swap(a, b);
  if (op == Op::Add && is_constant(b, 0)) return a;
  if (op == Op::Mul && is_constant(b, 1)) return a;
  if (op == Op::Mul && is_constant(b, 0)) return b;
  if ((op == Op::FloorDiv) && is_constant(b, 1)) return a;
  if (op == Op::Mod && is_constant(b, 1)) return index(0);
  if ((op == Op::Max || op == Op::Min) && a == b) return a;
  const Instruction first = at(a);
  const bool constant_last = first.code == Code::Compute && first.op == Op::Add && op == Op::Add &&
                             is_constant(first.operands[1]) && is_constant(b);
  if (constant_last) return add(first.operands[0], add(first.operands[1], b));
  return kNoValue;
}

// The conditions that all must hold where `value` does: whole masks, and those of single elements.
void CodeBuilder::collect_conditions(ValueId value, std::vector<ValueId>& conditions) const {
  const Instruction& instruction = at(value);
  if (instruction.code == Code::Compute && instruction.op == Op::And) {
    collect_conditions(instruction.operands[0], conditions);
    collect_conditions(instruction.operands[1], conditions);
  } else {
    conditions.push_back(instruction.code == Code::Splat ? instruction.operands[0] : value);
  }
}

// Single conditions become one before it is spread over lanes, and what is known outside of a loop
// is brought together there.
ValueId CodeBuilder::join_masks(ValueId a, ValueId b, int lanes) {
  std::vector<ValueId> conditions;
  collect_conditions(a, conditions);
  collect_conditions(b, conditions);
  std::stable_sort(conditions.begin(), conditions.end(), [&](ValueId left, ValueId right) {
    return scope_of(left)->depth < scope_of(right)->depth;
  });
  ValueId single = kNoValue, mask = kNoValue;
  for (ValueId each : conditions) {
    if (is_constant(each, 1)) continue;
    if (this->lanes(each) == 1)
      single = both(single, each);
    else
      mask = mask == kNoValue || mask == each
                 ? each
                 : append_compute(Op::And, DType::Bool, std::array{mask, each}, lanes);
  }
  if (single == kNoValue) return mask == kNoValue ? splat(truth(true), lanes) : mask;
  const ValueId spread = splat(single, lanes);
  return mask == kNoValue ? spread
                          : append_compute(Op::And, DType::Bool, std::array{mask, spread}, lanes);
}

ValueId CodeBuilder::compute(Op op, DType dtype, std::span<const ValueId> operands) {
  int lanes = 1;
  for (ValueId operand : operands) lanes = std::max(lanes, this->lanes(operand));
  if (lanes == 1)
    if (ValueId folded = fold(op, dtype, operands); folded != kNoValue) return folded;
  if (lanes > 1 && dtype == DType::Index && operands.size() == 2)
    if (ValueId folded = fold(op, dtype, operands); folded != kNoValue) return splat(folded, lanes);
  if (lanes > 1 && op == Op::And && dtype == DType::Bool)
    return join_masks(operands[0], operands[1], lanes);
  if (lanes > 1 && op == Op::Lt && this->dtype(operands[0]) == DType::Index) {
    // Four neighbours are on the same side of a multiple of four.
    ValueId a = operands[0], b = operands[1];
    if (is_constant(b) && constant_value(b) % 4 == 0) a = first_of_four(a);
    if (is_constant(a) && (constant_value(a) + 1) % 4 == 0) b = first_of_four(b);
    return append_compute(op, dtype, std::array{a, b}, lanes);
  }
  return append_compute(op, dtype, operands, lanes);
}

// The multiple of four that a sum with 1, 2 or 3 starts from; else the value itself.
ValueId CodeBuilder::first_of_four(ValueId value) const {
  const Instruction& sum = at(value);
  if (sum.code != Code::Compute || sum.op != Op::Add || !is_constant(sum.operands[1])) return value;
  const int64_t further = constant_value(sum.operands[1]);
  auto instruction = [this](ValueId each) -> const Instruction& { return at(each); };
  const bool first = further > 0 && further < 4 && is_multiple(instruction, sum.operands[0], 4);
  return first ? sum.operands[0] : value;
}

ValueId CodeBuilder::append_compute(Op op, DType dtype, std::span<const ValueId> operands,
                                    int lanes) {
  Instruction instruction{Code::Compute};
  instruction.op = op;
  instruction.dtype = dtype;
  instruction.lanes = static_cast<uint16_t>(lanes);
  for (size_t i = 0; i < operands.size(); ++i) instruction.operands[i] = operands[i];
  // A constant stands last in sums, where fold looks for it.
  if (dtype == DType::Index && info(op).commutative && is_constant(operands[0]))
    std::swap(instruction.operands[0], instruction.operands[1]);
  Scope* scope = root_;
  for (size_t i = 0; i < operands.size(); ++i) {
    ValueId& operand = instruction.operands[i];
    operand = splat(operand, lanes);
    scope = deeper(scope, scope_of(operand));
  }
  return unique(instruction, scope);
}

ValueId CodeBuilder::load(const Access& access, bool constant_memory) {
  Instruction instruction{Code::Load};
  instruction.dtype = program_.buffer_dtype(access.buffer);
  instruction.lanes = static_cast<uint16_t>(access.lanes);
  instruction.bits = access.buffer;
  instruction.operands[0] = access.place;
  ValueId condition = access.condition;
  if (condition != kNoValue && is_constant(condition, 1)) condition = kNoValue;
  if (condition != kNoValue && is_constant(condition, 0))
    return splat(constant(Scalar::of_int(instruction.dtype, 0)), access.lanes);
  if (condition != kNoValue) instruction.operands[1] = splat(condition, access.lanes);
  if (!constant_memory) return append(instruction, current_);
  Scope* scope = deeper(memory_floor(), scope_of(access.place));
  if (condition != kNoValue) scope = deeper(scope, scope_of(instruction.operands[1]));
  return unique(instruction, scope);
}

void CodeBuilder::store(const Access& access, ValueId value) {
  Instruction instruction{Code::Store};
  instruction.dtype = program_.buffer_dtype(access.buffer);
  instruction.lanes = static_cast<uint16_t>(access.lanes);
  instruction.bits = access.buffer;
  instruction.operands[0] = access.place;
  instruction.operands[2] = splat(value, access.lanes);
  if (access.condition != kNoValue) {
    if (is_constant(access.condition, 0)) return;
    if (!is_constant(access.condition, 1))
      instruction.operands[1] = splat(access.condition, access.lanes);
  }
  instruction.streaming = access.streaming && instruction.operands[1] == kNoValue;
  append(instruction, current_);
}

void CodeBuilder::prefetch(uint64_t buffer, ValueId place) {
  Instruction instruction{Code::Prefetch};
  instruction.dtype = program_.buffer_dtype(buffer);
  instruction.bits = buffer;
  instruction.operands[0] = place;
  append(instruction, current_);
}

ValueId CodeBuilder::matrix_zero(int lanes) {
  program_.matrix_unit = kMatrixUnit;
  Instruction instruction{Code::MatrixZero, Op::Add, kMatrixUnit.sums};
  instruction.lanes = static_cast<uint16_t>(lanes);
  return unique(instruction, root_);
}

ValueId CodeBuilder::matrix_load(const MatrixPlace& place, bool left) {
  Instruction instruction{left ? Code::MatrixLeft : Code::MatrixRight};
  instruction.dtype = program_.buffer_dtype(place.buffer);
  instruction.lanes = static_cast<uint16_t>(place.lanes);
  instruction.bits = place.buffer;
  instruction.operands[0] = splat(place.first, place.lanes);
  instruction.operands[1] = index(place.row_stride);
  instruction.operands[2] = index(place.column_stride);
  return append(instruction, current_);
}

ValueId CodeBuilder::matrix_multiply_add(ValueId left, ValueId right, ValueId sum) {
  Instruction instruction{Code::MatrixMultiplyAdd, Op::Add, kMatrixUnit.sums};
  instruction.lanes = static_cast<uint16_t>(lanes(sum));
  instruction.operands = {left, right, sum, kNoValue};
  return append(instruction, current_);
}

void CodeBuilder::matrix_store(const MatrixPlace& place, ValueId value) {
  Instruction instruction{Code::MatrixStore, Op::Add, kMatrixUnit.sums};
  instruction.lanes = static_cast<uint16_t>(place.lanes);
  instruction.bits = place.buffer;
  instruction.operands = {splat(place.first, place.lanes), index(place.row_stride), value,
                          kNoValue};
  append(instruction, current_);
}

ValueId CodeBuilder::open_loop(ValueId begin, ValueId end, ValueId step, bool may_be_empty) {
  Scope& scope = scopes_.emplace_back();
  scope.parent = current_;
  scope.depth = current_->depth + 1;
  scope.guards_memory = may_be_empty;
  scope.head.code = Code::Loop;
  scope.head.dtype = DType::Index;
  scope.head.operands = {begin, end, step, kNoValue};
  code_.push_back(scope.head);
  scope_of_.push_back(&scope);
  scope.id = static_cast<ValueId>(code_.size() - 1);
  inside_[scope.id] = &scope;
  current_ = &scope;
  return scope.id;
}

ValueId CodeBuilder::carry(ValueId start) {
  Instruction instruction{Code::Carry};
  instruction.dtype = dtype(start);
  instruction.lanes = at(start).lanes;
  instruction.operands[0] = start;
  code_.push_back(instruction);
  scope_of_.push_back(current_);
  current_->carries.push_back(static_cast<ValueId>(code_.size() - 1));
  return current_->carries.back();
}

void CodeBuilder::close_loop(std::span<const std::pair<ValueId, ValueId>> carries_and_next) {
  Scope* scope = current_;
  scope->next.assign(carries_and_next.begin(), carries_and_next.end());
  current_ = scope->parent;
  current_->items.push_back(scope->id);
  for (ValueId carry : scope->carries) scope_of_[static_cast<size_t>(carry)] = current_;
}

void CodeBuilder::open_if(ValueId condition) {
  Scope& scope = scopes_.emplace_back();
  scope.parent = current_;
  scope.depth = current_->depth + 1;
  scope.guards_memory = true;
  scope.head.code = Code::If;
  scope.head.operands[0] = condition;
  code_.push_back(scope.head);
  scope_of_.push_back(&scope);
  scope.id = static_cast<ValueId>(code_.size() - 1);
  inside_[scope.id] = &scope;
  current_ = &scope;
}

void CodeBuilder::close_if() {
  Scope* scope = current_;
  current_ = scope->parent;
  current_->items.push_back(scope->id);
}

uint64_t CodeBuilder::add_local(DType dtype, int64_t elements) {
  program_.locals.push_back({dtype, elements});
  return program_.buffers.size() + program_.locals.size() - 1;
}

void CodeBuilder::write(const Scope& scope, std::vector<Instruction>& out,
                        std::vector<ValueId>& renamed) {
  auto put = [&](Instruction instruction, ValueId old) {
    for (ValueId& operand : instruction.operands)
      if (operand != kNoValue) operand = renamed[static_cast<size_t>(operand)];
    if (old != kNoValue) renamed[static_cast<size_t>(old)] = static_cast<ValueId>(out.size());
    out.push_back(instruction);
  };
  for (ValueId item : scope.items) {
    put(at(item), item);
    const Code code = at(item).code;
    if (code != Code::Loop && code != Code::If) continue;
    const Scope& inner = *inside_.at(item);
    for (ValueId carry : inner.carries) put(at(carry), carry);
    write(inner, out, renamed);
    for (auto [carry, next] : inner.next) {
      Instruction instruction{Code::Next};
      instruction.dtype = dtype(carry);
      instruction.lanes = at(carry).lanes;
      instruction.operands[0] = carry;
      instruction.operands[1] = next;
      put(instruction, kNoValue);
    }
    put(Instruction{code == Code::Loop ? Code::EndLoop : Code::EndIf}, kNoValue);
  }
}

Program CodeBuilder::finish() && {
  if (current_ != root_) throw InternalError("a loop was not closed");
  std::vector<ValueId> renamed(code_.size(), kNoValue);
  program_.code.clear();
  write(*root_, program_.code, renamed);
  return std::move(program_);
}

}  // namespace anneal
