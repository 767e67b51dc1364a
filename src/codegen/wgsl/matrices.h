// Instructions on matrices: the adapter's own units, or loops that compute the same from memory
// where the program emulates them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/wgsl/arithmetic.h"
#include "kernel/program/program.h"

namespace anneal::wgsl {

class Matrices {
 public:
  Matrices(const Program& program, Arithmetic& arithmetic);

  bool use_units() const { return units_; }
  std::string enabled() const;    // what stands before everything else
  std::string functions() const;  // that were called

  // Of values: operands are names, or places as unsigned numbers.
  std::string zero() const;
  std::string load(const Instruction& matrix, const std::string& buffer,
                   const std::string& place) const;
  std::string multiply_add(const Instruction& multiply, const std::string& left,
                           const std::string& right, const std::string& sum);
  std::string store(const Instruction& matrix, const std::string& buffer, const std::string& place,
                    const std::string& value);

 private:
  static const char* element_type(DType dtype);
  int elements_of_lane() const { return unit_.rows * unit_.columns / unit_.lanes; }
  int lanes_of_row() const { return unit_.columns / elements_of_lane(); }
  int64_t stride(const Instruction& matrix, size_t operand) const;
  std::string emulated_multiply(const Instruction& left, const Instruction& right);

  const Program& program_;
  Arithmetic& arithmetic_;
  bool units_;
  MatrixUnit unit_;
  std::map<std::string, std::string> functions_;  // by name
};

}  // namespace anneal::wgsl
