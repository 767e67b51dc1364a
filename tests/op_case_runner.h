// What the tests that walk op_cases() share: results as arrays, one comparison, draws.
// Must not know any case.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "op_cases.h"

namespace anneal {

// A result on the host. Integers of every width are in `integers` (u64 by its bits), the rest in
// `reals`.
struct Array {
  DType dtype = DType::F64;
  std::vector<int64_t> shape;
  std::vector<double> reals;
  std::vector<int64_t> integers;

  size_t size() const { return reals.size() + integers.size(); }
  double largest() const;  // the largest finite magnitude of the reals
};

Array run(const Tensor& tensor, const Bindings& bindings);
std::vector<Array> run(const std::vector<Tensor>& tensors, const Bindings& bindings);

// Why the two differ, naming the worst position and both values; empty when they do not. Dtype and
// shape must be the same. NaN passes only where both are NaN and `special` allows it.
std::string difference(const Array& got, const Array& expected, const Tolerance& tolerance,
                       bool special = false);
void check_array(std::string_view what, const Array& got, const Array& expected,
                 const Tolerance& tolerance, bool special = false);

// Deterministic draws for directions and weights.
class Draws {
 public:
  explicit Draws(std::string_view seed);
  double uniform(double low, double high);  // on a grid of 2^-20 of the range
  std::vector<double> uniforms(size_t count, double low, double high);

 private:
  uint64_t state_;
};

// The Variable of symbolic builds, and the two numbers a case is run with.
Variable symbolic_size();
std::vector<int64_t> symbolic_bindings(const OpCase& op_case);

// Every case, or those whose name contains $ANNEAL_CASE. An exception fails its case only.
template <typename Function>
void for_each_case(Function function) {
  const char* filter = std::getenv("ANNEAL_CASE");
  for (const OpCase& op_case : op_cases()) {
    if (filter != nullptr && op_case.name.find(filter) == std::string_view::npos) continue;
    try {
      function(op_case);
    } catch (const std::exception& error) {
      FAIL_CHECK(op_case.name << ": " << std::string(error.what()));
    }
  }
}

}  // namespace anneal
