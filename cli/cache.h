// anneal cache: the compiled kernels on disk, looked at, removed, bounded.
#pragma once

#include <string>

namespace anneal::cli {

struct CacheOptions {
  std::string action = "show";  // or clear, limit
  std::string bytes;            // for limit
  bool json = false;
};

void cache(const CacheOptions& options);

}  // namespace anneal::cli
