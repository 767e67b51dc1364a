// Functions that combine what all threads of a group have, sums or maxima: Code::Combine as its
// instruction says. They wait for each other in them.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "codegen/wgsl/arithmetic.h"
#include "kernel/program/program.h"

namespace anneal::wgsl {

class WorkgroupReductions {
 public:
  WorkgroupReductions(Arithmetic& arithmetic, int threads)
      : arithmetic_(arithmetic), threads_(threads) {}

  // The name of the one for an instruction, whose memory is called so.
  std::string function(const Instruction& combine, const std::string& memory);
  bool use_subgroups() const;
  // All that were asked for.
  std::string text();

 private:
  struct Combination {
    Op op;
    DType dtype;
    int subgroup;
    std::string memory;
    friend auto operator<=>(const Combination&, const Combination&) = default;
  };
  std::string between_subgroups(const Combination& each);
  std::string through_memory(const Combination& each);
  std::string element(const Combination& each, const std::string& at) const;
  std::string kept(const Combination& each, const std::string& value) const;
  std::string both(const Combination& each, const std::string& a, const std::string& b);

  Arithmetic& arithmetic_;
  int threads_;
  std::map<std::string, Combination> used_;  // by name
};

}  // namespace anneal::wgsl
