// Memory of a tensor on the host, in the dtype's own format.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "ir/dtype.h"

namespace anneal {

struct Storage {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  Bytes bytes;
};

}  // namespace anneal
