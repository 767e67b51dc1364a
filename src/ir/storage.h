// Memory of a tensor on the host, in the dtype's own format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/dtype.h"

namespace anneal {

struct Storage {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

}  // namespace anneal
