// anneal train MODEL: trains a built-in model, shows how it goes and keeps checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/train/settings.h"

namespace anneal::cli {

struct TrainOptions {
  RunOptions run;
  std::optional<int64_t> steps;      // in all, with those a checkpoint has done
  std::optional<int64_t> log_every;  // steps between lines
  int64_t eval_every = 0;            // 0: only at the end
  int64_t save_every = 100;          // 0: only at the end
  std::string save;                  // where to
  bool tune = false;                 // kernels, while they are compiled
  std::string budget = "30s";        // of that
  bool json = false, plain = false;
};

// The exit code: 0, or 130 when it was interrupted. Failures are thrown.
int train(const TrainOptions& options);

}  // namespace anneal::cli
