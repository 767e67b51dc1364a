// Checkpoints: safetensors files with all that a run goes on from, bit for bit. Metadata has the
// model, its sizes, the data, the step and the random state; tensors are parameters and moments.
#pragma once

#include <cstdint>
#include <string>

#include <anneal/io.h>

#include "cli/train/task.h"

namespace anneal::cli {

struct Checkpoint {
  io::Metadata metadata;
  State tensors;
  int64_t step = 0;  // how many were done
};

// A UserError for a file that is no checkpoint, or not a whole one.
Checkpoint read_checkpoint(const std::string& path);
// Parameters and moments into the task, and the random state.
void restore(Task& task, const Checkpoint& checkpoint);
// The path holds the old file or the new one, whole.
void save_checkpoint(const std::string& path, Task& task, const Settings& settings, int64_t step);
// Before hours of work: whether the path can be written, and has room for it.
void check_save_path(const std::string& path, Task& task);

// What the options of a command mean: a task, new or as a checkpoint left it.
struct OpenedRun {
  Settings settings;
  std::unique_ptr<Task> task;
  int64_t step = 0;  // how many were done
};
OpenedRun open_run(const RunOptions& options);

}  // namespace anneal::cli
