// anneal sample --resume FILE: what a trained nanogpt writes.
#pragma once

#include <cstdint>
#include <string>

namespace anneal::cli {

struct SampleOptions {
  std::string resume, device, prompt = "\n";
  int64_t tokens = 500, seed = 1;
  double temperature = 0.8;
  bool json = false;
};

void sample(const SampleOptions& options);

}  // namespace anneal::cli
