// anneal run MODEL: inference. How good a model is on data it was not trained on.
#pragma once

#include "cli/train/settings.h"

namespace anneal::cli {

struct InferenceOptions {
  RunOptions run;
  bool json = false;
};

void run_model(const InferenceOptions& options);

}  // namespace anneal::cli
