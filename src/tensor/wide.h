// Half precision and fp8 are computed in f32 inside a composed function and rounded once at its
// end: the square of 300 does not fit f16. Must not change f32 and f64.
#pragma once

#include <span>
#include <vector>

#include "ir/dtype.h"
#include "tensor/lift.h"

namespace anneal {

constexpr DType wide_dtype(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }

inline Tensor widen(const Operand& x) { return cast(x, wide_dtype(node_of(x)->dtype)); }

// The dtype of the result of a function of real numbers: integers give f32.
inline DType real_dtype(DType dtype) { return is_float(dtype) ? dtype : DType::F32; }
inline DType real_dtype(const Operand& x) { return real_dtype(node_of(x)->dtype); }

// The same where tensors meet; empty ones do not count.
inline DType real_dtype(const Operand& x, std::span<const Tensor* const> others) {
  std::vector<DType> dtypes{node_of(x)->dtype};
  for (const Tensor* other : others)
    if (other->defined()) dtypes.push_back(node_of(*other)->dtype);
  return real_dtype(promote_all(dtypes));
}

}  // namespace anneal
