// The element types of tensors.
#pragma once

#include <cstdint>
#include <string_view>

namespace anneal {

enum class DType : uint8_t {
  Bool,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64,
  F8E4M3,
  F8E5M2,  // one byte: e4m3 has no infinity and reaches 448; e5m2 is a short f16
  F16,
  BF16,
  F32,
  F64,
  Index,  // symbolic integers (sizes, positions); never stored in a tensor
};

}  // namespace anneal
