// Translates instructions one by one: loops, memory and lanes; arithmetic.h does the rest.
// Must not reorder, merge or drop anything.
#include "codegen/llvm/emit.h"

#include <bit>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include <anneal/error.h>

#include "codegen/llvm/arithmetic.h"

namespace anneal {
namespace {

using llvm::Value;

constexpr unsigned kBuffersArgument = 0, kSizesArgument = 1, kBeginArgument = 2, kEndArgument = 3,
                   kLocalArgument = 4;

// Of the processor as a whole: a name may stand for features that nobody listed.
Arithmetic::Abilities abilities_of(const llvm::TargetMachine& machine) {
  if (machine.getTargetTriple().isAArch64()) return {true, false, false};
  if (!machine.getTargetTriple().isX86()) return {};
  const llvm::MCSubtargetInfo& processor = *machine.getMCSubtargetInfo();
  return {processor.checkFeatures("+f16c"), processor.checkFeatures("+avx512dq"),
          processor.checkFeatures("+avx512f")};
}

// A value and what is known of it.
struct Emitted {
  Value* value = nullptr;
  bool never_negative = false;
};

class Emitter {
 public:
  Emitter(llvm::Module& module, const Program& program, const CpuTarget& target,
          const llvm::TargetMachine& machine)
      : context_(module.getContext()),
        module_(module),
        program_(program),
        builder_(context_),
        arithmetic_(builder_, abilities_of(machine)) {
    make_function(target);
  }

  void run() {
    load_parameters();
    // The loop over the cells of this call is a loop like any other.
    open_loop(argument(kBeginArgument), argument(kEndArgument), builder_.getInt64(1), true);
    cell_ = loops_.back().counter;
    for (size_t i = 0; i < program_.code.size(); ++i) emit(i, program_.code[i]);
    close_loop();
    // Streaming stores are seen by others before whatever says that this is done.
    const bool streams = std::any_of(program_.code.begin(), program_.code.end(),
                                     [](const Instruction& each) { return each.streaming; });
    if (streams) builder_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
    builder_.CreateRetVoid();
    check();
  }

 private:
  // ---- frame

  void make_function(const CpuTarget& target) {
    llvm::Type* pointer = llvm::PointerType::getUnqual(context_);
    llvm::Type* word = builder_.getInt64Ty();
    auto* type = llvm::FunctionType::get(builder_.getVoidTy(),
                                         {pointer, pointer, word, word, pointer}, false);
    function_ =
        llvm::Function::Create(type, llvm::Function::ExternalLinkage, program_.name, module_);
    function_->setDoesNotThrow();
    function_->addFnAttr("target-cpu", target.cpu);
    function_->addFnAttr("target-features", target.features);
    // Some x86 tunings prefer halves of their registers unless asked.
    const std::string width = std::to_string(8 * target.vector_bytes);
    function_->addFnAttr("prefer-vector-width", width);
    // Vectors that find no register otherwise lie across lines of the cache, or not, by chance.
    function_->addFnAttr(
        llvm::Attribute::getWithStackAlignment(context_, llvm::Align(kLocalAlignment)));
    for (unsigned i : {kBuffersArgument, kSizesArgument, kLocalArgument}) {
      function_->addParamAttr(i, llvm::Attribute::NoAlias);
    }
    function_->addParamAttr(
        kLocalArgument, llvm::Attribute::getWithAlignment(context_, llvm::Align(kLocalAlignment)));
    builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function_));
  }

  Value* argument(unsigned i) { return function_->getArg(i); }

  // Buffers get a scope of their own each: no access of one touches another.
  void load_parameters() {
    llvm::MDBuilder metadata(context_);
    llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain(program_.name);
    const size_t buffers = program_.buffers.size(), count = buffers + program_.locals.size();
    for (size_t i = 0; i < count; ++i) {
      scopes_.push_back(metadata.createAnonymousAliasScope(domain, fmt::format("b{}", i)));
    }
    llvm::Type* pointer = llvm::PointerType::getUnqual(context_);
    for (size_t i = 0; i < count; ++i) {
      std::vector<llvm::Metadata*> others;
      for (size_t j = 0; j < count; ++j) {
        if (j != i) others.push_back(scopes_[j]);
      }
      own_scope_.push_back(llvm::MDNode::get(context_, {scopes_[i]}));
      other_scopes_.push_back(llvm::MDNode::get(context_, others));
      if (i < buffers) {
        Value* place = builder_.CreateConstInBoundsGEP1_64(pointer, argument(kBuffersArgument), i);
        pointers_.push_back(invariant(builder_.CreateLoad(pointer, place, fmt::format("b{}", i))));
      } else {
        const auto offset = static_cast<uint64_t>(local_offset(program_, i - buffers));
        pointers_.push_back(builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(),
                                                                argument(kLocalArgument), offset));
      }
    }
    for (int i = 0; i < program_.sizes; ++i) {
      Value* place = builder_.CreateConstInBoundsGEP1_64(
          builder_.getInt64Ty(), argument(kSizesArgument), static_cast<uint64_t>(i));
      sizes_.push_back(invariant(builder_.CreateLoad(builder_.getInt64Ty(), place)));
    }
    values_.resize(program_.code.size());
  }

  llvm::LoadInst* invariant(llvm::LoadInst* load) {
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    return load;
  }

  void check() {
#ifndef NDEBUG
    std::string problem;
    llvm::raw_string_ostream stream(problem);
    if (llvm::verifyFunction(*function_, &stream)) {
      throw InternalError("LLVM rejects the code of " + program_.name + ": " + problem);
    }
#endif
  }

  // ---- instructions

  const Emitted& operand(const Instruction& instruction, size_t i) const {
    return values_[static_cast<size_t>(instruction.operands[i])];
  }
  Value* value(const Instruction& instruction, size_t i) const {
    return operand(instruction, i).value;
  }
  DType dtype(const Instruction& instruction, size_t i) const {
    return program_.code[static_cast<size_t>(instruction.operands[i])].dtype;
  }

  void emit(size_t at, const Instruction& instruction) {
    Emitted& result = values_[at];
    switch (instruction.code) {
      case Code::Constant:
        result.value = constant(instruction);
        result.never_negative = static_cast<int64_t>(instruction.bits) >= 0;
        return;
      case Code::Size: result = {sizes_[instruction.bits], true}; return;
      case Code::Cell: result = {cell_, true}; return;
      case Code::Compute: result = compute(instruction); return;
      case Code::Splat:
        result = {splat(value(instruction, 0), instruction.lanes),
                  operand(instruction, 0).never_negative};
        return;
      case Code::Ramp: result = ramp(instruction); return;
      case Code::Combine: result.value = combine(instruction); return;
      case Code::Zip: result.value = zip(instruction); return;
      case Code::Load: result.value = load(instruction); return;
      case Code::Store: store(instruction); return;
      case Code::Prefetch: prefetch(instruction); return;
      case Code::MatrixZero:
      case Code::MatrixLeft:
      case Code::MatrixRight:
      case Code::MatrixMultiplyAdd:
      case Code::MatrixStore: throw InternalError("a CPU has no units for matrices");
      case Code::Loop:
        open_loop(value(instruction, 0), value(instruction, 1), value(instruction, 2),
                  operand(instruction, 0).never_negative);
        result = {loops_.back().counter, operand(instruction, 0).never_negative};
        return;
      case Code::Carry: carry(at, instruction); return;
      case Code::Next: next(instruction); return;
      case Code::EndLoop: close_loop(); return;
      case Code::If: open_if(value(instruction, 0)); return;
      case Code::EndIf: close_if(); return;
      case Code::Barrier:
      case Code::Element:
      case Code::Pack: throw InternalError("lanes of a CPU are no threads");
    }
  }

  Value* constant(const Instruction& instruction) {
    llvm::Type* type = value_type(context_, instruction.dtype, instruction.lanes);
    if (!is_float(instruction.dtype)) return llvm::ConstantInt::get(type, instruction.bits);
    const double number = std::bit_cast<double>(instruction.bits);
    if (type->getScalarType()->isFloatingPointTy()) return llvm::ConstantFP::get(type, number);
    llvm::Type* single = value_type(context_, DType::F32, instruction.lanes);
    return arithmetic_.cast(llvm::ConstantFP::get(single, number), DType::F32, instruction.dtype);
  }

  Emitted compute(const Instruction& instruction) {
    std::array<Arithmetic::Operand, 4> operands;
    const size_t count = info(instruction.op).sources;
    for (size_t i = 0; i < count; ++i) {
      const Emitted& from = operand(instruction, i);
      operands[i] = {from.value, dtype(instruction, i), from.never_negative};
    }
    const std::span<const Arithmetic::Operand> used = std::span(operands).first(count);
    return {arithmetic_.compute(instruction.op, instruction.dtype, used),
            is_index(instruction.dtype) && is_never_negative(instruction.op, used)};
  }

  // Of an index, which does not overflow.
  static bool is_never_negative(Op op, std::span<const Arithmetic::Operand> operands) {
    const Arithmetic::Operand &a = operands.front(), &b = operands.back();
    switch (op) {
      case Op::Add:
      case Op::Mul:
      case Op::FloorDiv:
      case Op::Min: return a.never_negative && b.never_negative;
      case Op::Max: return a.never_negative || b.never_negative;
      case Op::Mod: return b.never_negative;
      case Op::Where: return operands[1].never_negative && b.never_negative;
      case Op::Cast:
      case Op::AsIndex: return is_bool(a.dtype) || (is_unsigned(a.dtype) && byte_size(a.dtype) < 8);
      default: return false;
    }
  }

  Value* splat(Value* scalar, unsigned lanes) {
    return lanes == 1 ? scalar : builder_.CreateVectorSplat(lanes, scalar);
  }

  Emitted ramp(const Instruction& instruction) {
    const unsigned lanes = instruction.lanes;
    const bool never_negative =
        operand(instruction, 0).never_negative && operand(instruction, 1).never_negative;
    if (lanes == 1) return {value(instruction, 0), never_negative};
    std::vector<llvm::Constant*> numbers;
    for (unsigned lane = 0; lane < lanes; ++lane) numbers.push_back(builder_.getInt64(lane));
    Value* steps =
        builder_.CreateMul(llvm::ConstantVector::get(numbers), splat(value(instruction, 1), lanes));
    return {builder_.CreateAdd(splat(value(instruction, 0), lanes), steps), never_negative};
  }

  Value* zip(const Instruction& instruction) {
    const int lanes = instruction.lanes, first = instruction.bits ? lanes / 2 : 0;
    std::vector<int> order;
    for (int i = first; i < first + lanes / 2; ++i) order.insert(order.end(), {i, lanes + i});
    return builder_.CreateShuffleVector(value(instruction, 0), value(instruction, 1), order);
  }

  Value* combine(const Instruction& instruction) {
    Value* rest = value(instruction, 0);
    const DType type = instruction.dtype;
    unsigned lanes = program_.code[static_cast<size_t>(instruction.operands[0])].lanes;
    while (lanes > 1) {
      lanes /= 2;
      std::vector<int> lower, upper;
      for (unsigned lane = 0; lane < lanes; ++lane) {
        lower.push_back(static_cast<int>(lane));
        upper.push_back(static_cast<int>(lane + lanes));
      }
      const Arithmetic::Operand halves[] = {{half(rest, lower), type}, {half(rest, upper), type}};
      rest = arithmetic_.compute(instruction.op, type, halves);
    }
    return rest;
  }

  Value* half(Value* vector, const std::vector<int>& lanes) {
    if (lanes.size() == 1)
      return builder_.CreateExtractElement(vector, static_cast<uint64_t>(lanes[0]));
    return builder_.CreateShuffleVector(vector, lanes);
  }

  // ---- memory

  // bool takes a byte.
  llvm::Type* memory_type(DType dtype, unsigned lanes) {
    return value_type(context_, is_bool(dtype) ? DType::U8 : dtype, lanes);
  }

  template <typename Access>
  Access* mark(Access* access, const Instruction& instruction) {
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, own_scope_[instruction.bits]);
    access->setMetadata(llvm::LLVMContext::MD_noalias, other_scopes_[instruction.bits]);
    return access;
  }

  bool is_constant_memory(const Instruction& instruction) const {
    return instruction.bits < program_.buffers.size() &&
           !program_.buffers[instruction.bits].written;
  }

  // The address, or one for each lane where the place has lanes.
  Value* address(const Instruction& instruction) {
    return builder_.CreateInBoundsGEP(memory_type(instruction.dtype, 1),
                                      pointers_[instruction.bits], value(instruction, 0));
  }

  // Null where it always holds.
  Value* condition(const Instruction& instruction) {
    if (instruction.operands[1] == kNoValue) return nullptr;
    Value* mask = value(instruction, 1);
    auto* fixed = llvm::dyn_cast<llvm::Constant>(mask);
    return fixed && fixed->isAllOnesValue() ? nullptr : mask;
  }

  static llvm::Align alignment(const Instruction& instruction) {
    return llvm::Align(byte_size(instruction.dtype));
  }

  // No machine gathers or scatters elements this narrow: LLVM makes an access of each lane, behind
  // a branch where there is a condition. Accesses that always happen need none.
  static bool is_taken_apart(const Instruction& instruction) {
    return byte_size(instruction.dtype) < 4;
  }

  llvm::Instruction* finish_load(llvm::Instruction* loaded, const Instruction& instruction) {
    mark(loaded, instruction);
    if (is_constant_memory(instruction))
      loaded->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    return loaded;
  }

  // Whether it reads every second element, as many as a gather would have to go for one by one.
  bool is_every_second(const Instruction& load) const {
    if (is_taken_apart(load) || load.lanes < 4 || load.lanes % 2 != 0) return false;
    const Instruction& place = program_.code[static_cast<size_t>(load.operands[0])];
    if (place.code != Code::Ramp) return false;
    const Instruction& step = program_.code[static_cast<size_t>(place.operands[1])];
    return step.code == Code::Constant && step.bits == 2;
  }

  // Two vectors of neighbours and the even lanes of both. The second begins one element early where
  // no mask is, so that it ends with the last element there is.
  Value* load_every_second(const Instruction& instruction) {
    const auto lanes = static_cast<int>(instruction.lanes);
    const Instruction& ramp = program_.code[static_cast<size_t>(instruction.operands[0])];
    llvm::Type* type = memory_type(instruction.dtype, instruction.lanes);
    Value* first = builder_.CreateInBoundsGEP(memory_type(instruction.dtype, 1),
                                              pointers_[instruction.bits], value(ramp, 0));
    Value* mask = condition(instruction);
    std::vector<int> chosen;
    std::array<Value*, 2> parts{};
    for (int part = 0; part < 2; ++part) {
      const int skipped = part * (mask ? lanes : lanes - 1);
      Value* place = builder_.CreateConstInBoundsGEP1_64(memory_type(instruction.dtype, 1), first,
                                                         static_cast<uint64_t>(skipped));
      llvm::Instruction* loaded;
      if (mask) {
        std::vector<int> spread;
        llvm::SmallVector<llvm::Constant*> even;
        for (int lane = 0; lane < lanes; ++lane) {
          spread.push_back((part * lanes + lane) / 2);
          even.push_back(builder_.getInt1(lane % 2 == 0));
        }
        Value* wanted = builder_.CreateAnd(builder_.CreateShuffleVector(mask, spread),
                                           llvm::ConstantVector::get(even));
        loaded = builder_.CreateMaskedLoad(type, place, alignment(instruction), wanted,
                                           llvm::Constant::getNullValue(type));
      } else {
        loaded = builder_.CreateAlignedLoad(type, place, alignment(instruction));
      }
      parts[static_cast<size_t>(part)] = finish_load(loaded, instruction);
      for (int lane = part * lanes / 2; lane < (part + 1) * lanes / 2; ++lane)
        chosen.push_back(2 * lane - skipped + part * lanes);
    }
    return builder_.CreateShuffleVector(parts[0], parts[1], chosen);
  }

  Value* load(const Instruction& instruction) {
    if (is_every_second(instruction)) return load_every_second(instruction);
    llvm::Type* type = memory_type(instruction.dtype, instruction.lanes);
    Value* place = address(instruction);
    Value* mask = condition(instruction);
    llvm::Instruction* loaded;
    if (place->getType()->isVectorTy()) {
      if (mask && is_taken_apart(instruction)) {
        place = builder_.CreateSelect(mask, place, splat(zero(), instruction.lanes));
        mask = nullptr;
      }
      loaded = builder_.CreateMaskedGather(type, place, alignment(instruction), mask,
                                           llvm::Constant::getNullValue(type));
    } else if (mask && instruction.lanes > 1) {
      loaded = builder_.CreateMaskedLoad(type, place, alignment(instruction), mask,
                                         llvm::Constant::getNullValue(type));
    } else {
      // Where the condition fails a zero of our own is read: no branch.
      if (mask) place = builder_.CreateSelect(mask, place, zero());
      loaded = builder_.CreateAlignedLoad(type, place, alignment(instruction));
    }
    finish_load(loaded, instruction);
    if (!is_bool(instruction.dtype)) return loaded;
    return builder_.CreateICmpNE(loaded, llvm::Constant::getNullValue(type));
  }

  void store(const Instruction& instruction) {
    Value* place = address(instruction);
    Value* mask = condition(instruction);
    Value* stored = value(instruction, 2);
    if (is_bool(instruction.dtype)) {
      stored = builder_.CreateZExt(stored, memory_type(instruction.dtype, instruction.lanes));
    }
    if (place->getType()->isVectorTy()) {
      if (mask && is_taken_apart(instruction)) {
        place = builder_.CreateSelect(mask, place, splat(nowhere(), instruction.lanes));
        mask = nullptr;
      }
      mark(builder_.CreateMaskedScatter(stored, place, alignment(instruction), mask), instruction);
    } else if (mask && instruction.lanes > 1) {
      mark(builder_.CreateMaskedStore(stored, place, alignment(instruction), mask), instruction);
    } else {
      if (mask) place = builder_.CreateSelect(mask, place, nowhere());
      llvm::Align aligned = alignment(instruction);
      if (instruction.streaming)
        aligned = llvm::Align(instruction.lanes * byte_size(instruction.dtype));
      llvm::StoreInst* made = builder_.CreateAlignedStore(stored, place, aligned);
      mark(made, instruction);
      if (instruction.streaming) {
        auto* one = llvm::ConstantAsMetadata::get(builder_.getInt32(1));
        made->setMetadata(llvm::LLVMContext::MD_nontemporal,
                          llvm::MDNode::get(builder_.getContext(), {one}));
      }
    }
  }

  // Into the second cache: the first one is full of what is worked on.
  void prefetch(const Instruction& instruction) {
    constexpr unsigned kRead = 0, kSecondCache = 2, kData = 1;
    Value* place = builder_.CreateGEP(memory_type(instruction.dtype, 1),
                                      pointers_[instruction.bits], value(instruction, 0));
    builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {place->getType()},
                             {place, builder_.getInt32(kRead), builder_.getInt32(kSecondCache),
                              builder_.getInt32(kData)});
  }

  // Eight bytes that are always 0.
  Value* zero() {
    if (llvm::GlobalVariable* global = module_.getNamedGlobal("zero")) return global;
    auto* global =
        new llvm::GlobalVariable(module_, builder_.getInt64Ty(), true,
                                 llvm::GlobalValue::PrivateLinkage, builder_.getInt64(0), "zero");
    global->setAlignment(llvm::Align(8));
    return global;
  }

  // Eight bytes that nobody reads.
  Value* nowhere() {
    if (nowhere_) return nowhere_;
    llvm::IRBuilderBase::InsertPointGuard guard(builder_);
    llvm::BasicBlock& entry = function_->getEntryBlock();
    builder_.SetInsertPoint(&entry, entry.begin());
    llvm::AllocaInst* slot = builder_.CreateAlloca(builder_.getInt64Ty());
    slot->setAlignment(llvm::Align(8));
    nowhere_ = slot;
    return nowhere_;
  }

  // ---- control

  // As a do-while behind a guard, the form LLVM's own loops have when code is made of them. Values
  // carried get a phi at the top and one behind the loop.
  struct Loop {
    Value *counter = nullptr, *end = nullptr, *step = nullptr;
    llvm::BasicBlock *before = nullptr, *body = nullptr, *after = nullptr;
    struct Carried {
      size_t at;
      llvm::PHINode* phi;
      Value *start, *next;
    };
    std::vector<Carried> carried;
    bool never_negative = false;  // the counter
    bool guarded = true;          // it may have no round at all
  };

  llvm::BasicBlock* block(const char* name) {
    return llvm::BasicBlock::Create(context_, name, function_);
  }

  void open_loop(Value* begin, Value* end, Value* step, bool never_negative) {
    Loop loop;
    loop.end = end, loop.step = step;
    loop.before = builder_.GetInsertBlock(), loop.body = block("loop"), loop.after = block("after");
    loop.never_negative = never_negative;
    Value* enters = builder_.CreateICmpSLT(begin, end);
    auto* known = llvm::dyn_cast<llvm::Constant>(enters);
    loop.guarded = !known || known->isNullValue();
    if (loop.guarded) {
      builder_.CreateCondBr(enters, loop.body, loop.after);
    } else {
      builder_.CreateBr(loop.body);
    }
    builder_.SetInsertPoint(loop.body);
    llvm::PHINode* counter = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    counter->addIncoming(begin, loop.before);
    loop.counter = counter;
    loops_.push_back(std::move(loop));
  }

  void carry(size_t at, const Instruction& instruction) {
    Loop& loop = loops_.back();
    Value* start = value(instruction, 0);
    llvm::PHINode* phi = builder_.CreatePHI(start->getType(), 2);
    phi->addIncoming(start, loop.before);
    values_[at].value = phi;
    loop.carried.push_back({at, phi, start, nullptr});
  }

  void next(const Instruction& instruction) {
    for (Loop::Carried& carried : loops_.back().carried) {
      if (carried.at != static_cast<size_t>(instruction.operands[0])) continue;
      carried.next = value(instruction, 1);
    }
  }

  void close_loop() {
    Loop loop = std::move(loops_.back());
    loops_.pop_back();
    Value* counter = builder_.CreateAdd(loop.counter, loop.step, "", loop.never_negative, true);
    llvm::BasicBlock* latch = builder_.GetInsertBlock();
    builder_.CreateCondBr(builder_.CreateICmpSLT(counter, loop.end), loop.body, loop.after);
    llvm::cast<llvm::PHINode>(loop.counter)->addIncoming(counter, latch);
    loop.after->moveAfter(latch);
    builder_.SetInsertPoint(loop.after);
    for (Loop::Carried& carried : loop.carried) {
      carried.phi->addIncoming(carried.next, latch);
      if (!loop.guarded) {
        values_[carried.at] = {carried.next, false};
        continue;
      }
      llvm::PHINode* last = builder_.CreatePHI(carried.phi->getType(), 2);
      last->addIncoming(carried.start, loop.before);
      last->addIncoming(carried.next, latch);
      values_[carried.at] = {last, false};
    }
  }

  void open_if(Value* condition) {
    llvm::BasicBlock* inside = block("then");
    ifs_.push_back(block("after"));
    builder_.CreateCondBr(condition, inside, ifs_.back());
    builder_.SetInsertPoint(inside);
  }

  void close_if() {
    llvm::BasicBlock* after = ifs_.back();
    ifs_.pop_back();
    builder_.CreateBr(after);
    after->moveAfter(builder_.GetInsertBlock());
    builder_.SetInsertPoint(after);
  }

  llvm::LLVMContext& context_;
  llvm::Module& module_;
  const Program& program_;
  Builder builder_;
  Arithmetic arithmetic_;
  llvm::Function* function_ = nullptr;
  Value* cell_ = nullptr;
  Value* nowhere_ = nullptr;
  std::vector<llvm::MDNode*> scopes_, own_scope_, other_scopes_;
  std::vector<Value*> pointers_, sizes_;
  std::vector<Emitted> values_;
  std::vector<Loop> loops_;
  std::vector<llvm::BasicBlock*> ifs_;
};

}  // namespace

void emit_function(llvm::Module& module, const Program& program, const CpuTarget& target,
                   const llvm::TargetMachine& machine) {
  Emitter(module, program, target, machine).run();
}

}  // namespace anneal
