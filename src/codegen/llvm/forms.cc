#include "codegen/llvm/forms.h"

#include "codegen/llvm/compile.h"

namespace anneal {
namespace {

CpuTarget cpu_code_of(const Target& target) {
  return {target.triple, target.cpu, target.features, target.hardware.vector_bytes};
}

std::string llvm_text(const Target& target, const Capabilities&, const Schedule&, const KernelPart&,
                      const Program& program) {
  const Program* only = &program;
  return llvm_ir({&only, 1}, cpu_code_of(target));
}
std::string assembly_text(const Target& target, const Capabilities&, const Schedule&,
                          const KernelPart&, const Program& program) {
  const Program* only = &program;
  return assembly({&only, 1}, cpu_code_of(target));
}

}  // namespace

constinit const SourceForm kLlvmForms[2] = {
    {"llvm", Language::MachineCode, llvm_text},
    {"asm", Language::MachineCode, assembly_text},
};

}  // namespace anneal
