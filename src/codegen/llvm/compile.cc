// Targets, the code generator's settings and its outputs. What the code says is emit.cc's.
#include "codegen/llvm/compile.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <anneal/error.h>

#include "anneal_version.h"
#include "codegen/llvm/emit.h"
#include "codegen_revision.h"

namespace anneal {
namespace {

// Addresses are simple where they come from (src/kernel), and LLVM's loop strength reduction takes
// a quarter of a kernel's time to find that out. It has no switch but that of the command line.
void disable_loop_strength_reduction() {
  llvm::StringMap<llvm::cl::Option*>& options = llvm::cl::getRegisteredOptions();
  if (auto found = options.find("disable-lsr"); found != options.end())
    static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(true);
}

void initialize_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    disable_loop_strength_reduction();
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

std::unique_ptr<llvm::TargetMachine> make_machine(const CpuTarget& target) {
  initialize_targets();
  std::string problem;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, problem);
  if (!found) throw InternalError("no code generator for " + target.triple + ": " + problem);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // only MulAdd is one rounding
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      target.triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

// Making one takes longer than compiling a small kernel, and it serves one thread at a time.
llvm::TargetMachine& machine_of_thread(const CpuTarget& target) {
  thread_local std::unique_ptr<llvm::TargetMachine> machine;
  thread_local CpuTarget of;
  if (!machine || of != target) {
    machine = make_machine(target);
    of = target;
  }
  return *machine;
}

std::unique_ptr<llvm::Module> make_module(llvm::LLVMContext& context,
                                          std::span<const Program* const> programs,
                                          const CpuTarget& target) {
  auto module = std::make_unique<llvm::Module>("anneal", context);
  module->setTargetTriple(target.triple);
  const llvm::TargetMachine& machine = machine_of_thread(target);
  module->setDataLayout(machine.createDataLayout());
  for (const Program* program : programs) emit_function(*module, *program, target, machine);
  return module;
}

// LLVM's own code generator, of which x86 loses the scheduler behind register allocation: such
// processors reorder by themselves, and it takes half a millisecond a kernel.
bool add_passes(llvm::legacy::PassManager& passes, llvm::TargetMachine& machine,
                llvm::raw_pwrite_stream& stream, llvm::CodeGenFileType kind) {
  auto& generator = static_cast<llvm::LLVMTargetMachine&>(machine);
  auto* module_info = new llvm::MachineModuleInfoWrapperPass(&generator);  // the manager owns both
  llvm::TargetPassConfig* config = generator.createPassConfig(passes);
  config->setDisableVerify(true);
  if (machine.getTargetTriple().isX86()) config->disablePass(&llvm::PostRASchedulerID);
  passes.add(config);
  passes.add(module_info);
  if (config->addISelPasses()) return false;
  config->addMachinePasses();
  config->setInitialized();
  if (generator.addAsmPrinter(passes, stream, nullptr, kind, module_info->getMMI().getContext()))
    return false;
  passes.add(llvm::createFreeMachineFunctionPass());
  return true;
}

llvm::SmallVector<char, 0> generate(std::span<const Program* const> programs,
                                    const CpuTarget& target, llvm::CodeGenFileType kind) {
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> module = make_module(context, programs, target);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (!add_passes(passes, machine_of_thread(target), stream, kind)) {
    throw InternalError("LLVM has no code generator for " + target.triple);
  }
  passes.run(*module);
  return bytes;
}

int vector_bytes_of(const llvm::Triple& triple, const llvm::StringMap<bool>& features) {
  if (!triple.isX86()) return 16;
  if (features.lookup("avx512f") && features.lookup("avx512vl") && features.lookup("avx512bw") &&
      features.lookup("avx512dq")) {
    return 64;
  }
  return features.lookup("avx2") ? 32 : 16;
}

}  // namespace

CpuTarget host_target() {
  static const CpuTarget host = [] {
    CpuTarget target;
    target.triple = llvm::sys::getProcessTriple();
    target.cpu = llvm::sys::getHostCPUName();
    const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
    std::vector<std::string> names;
    for (const auto& feature : features) {
      names.push_back((feature.second ? "+" : "-") + feature.first().str());
    }
    std::sort(names.begin(), names.end());  // the table's own order is that of its hashes
    target.features = fmt::format("{}", fmt::join(names, ","));
    target.vector_bytes = vector_bytes_of(llvm::Triple(target.triple), features);
    return target;
  }();
  return host;
}

int64_t local_offset(const Program& program, size_t number) {
  int64_t offset = 0;
  for (size_t i = 0; i < number; ++i) {
    const LocalBuffer& local = program.locals[i];
    const int64_t bytes = local.elements * static_cast<int64_t>(byte_size(local.dtype));
    offset += (bytes + kLocalAlignment - 1) / kLocalAlignment * kLocalAlignment;
  }
  return offset;
}

int64_t local_bytes(const Program& program) { return local_offset(program, program.locals.size()); }

std::vector<std::byte> compile_to_object(std::span<const Program* const> programs,
                                         const CpuTarget& target) {
  const llvm::SmallVector<char, 0> bytes =
      generate(programs, target, llvm::CodeGenFileType::ObjectFile);
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  return {first, first + bytes.size()};
}

std::string assembly(std::span<const Program* const> programs, const CpuTarget& target) {
  const llvm::SmallVector<char, 0> bytes =
      generate(programs, target, llvm::CodeGenFileType::AssemblyFile);
  return {bytes.data(), bytes.size()};
}

std::string llvm_ir(std::span<const Program* const> programs, const CpuTarget& target) {
  llvm::LLVMContext context;
  std::string text;
  llvm::raw_string_ostream stream(text);
  make_module(context, programs, target)->print(stream, nullptr);
  return text;
}

std::string codegen_identity() {
  return fmt::format("anneal {} codegen {} llvm {}", ANNEAL_VERSION, ANNEAL_CODEGEN_REVISION,
                     llvm_version());
}

std::string llvm_version() { return LLVM_VERSION_STRING; }

}  // namespace anneal
