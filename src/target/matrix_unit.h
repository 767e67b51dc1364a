// What a device that multiplies matrices offers, as data.
#pragma once

#include "ir/dtype.h"

namespace anneal {

// Multiplies rows x depth by depth x columns elements and adds them up.
struct MatrixUnit {
  int rows, columns, depth;
  DType operands, sums;
  int lanes;  // that hold a matrix together
  friend bool operator==(const MatrixUnit&, const MatrixUnit&) = default;
};

// The one that products are planned for so far.
inline constexpr MatrixUnit kMatrixUnit{16, 16, 16, DType::F16, DType::F32, 32};

}  // namespace anneal
