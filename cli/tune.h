// anneal tune PROGRAM: measures other plans for the kernels that take longest, and keeps those that
// are faster and compute the same. And what train --tune does of it.
#pragma once

#include <string>

#include "runtime/device/device.h"

namespace anneal::cli {

struct TuneCommandOptions {
  std::string program;
  bool forward = false;  // only what the loss needs
  std::string device;    // empty: what programs run on anyway
  std::string budget = "30s";
  int threads = 0;  // of the CPU; 0: all cores
  bool json = false;
};

void tune(const TuneCommandOptions& options);

// "30s", "2m", "45": seconds. A UsageError where it is neither.
double parse_budget(const std::string& text);

// A UsageError where the device is none whose plans are searched.
void check_tunable(Device& device);

// While it lives, what is compiled for such a device is tuned first, all of it within one budget; a
// line on standard error says what came of it.
class TuneWhileCompiling {
 public:
  explicit TuneWhileCompiling(double seconds);
  ~TuneWhileCompiling();
  TuneWhileCompiling(const TuneWhileCompiling&) = delete;
  TuneWhileCompiling& operator=(const TuneWhileCompiling&) = delete;
};

}  // namespace anneal::cli
