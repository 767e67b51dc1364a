#include "cli/train/checkpoint.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include <anneal/device.h>
#include <anneal/error.h>
#include <anneal/random.h>

#include "base/os/atomic_file.h"
#include "cli/busy.h"
#include "ir/dtype.h"

namespace anneal::cli {
namespace {

constexpr const char* kFormat = "anneal checkpoint 1";

uint64_t bytes_of(const State& state) {
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : state)
    bytes += static_cast<uint64_t>(tensor.size().value()) * byte_size(tensor.dtype());
  return bytes;
}

}  // namespace

Checkpoint read_checkpoint(const std::string& path) {
  const io::Safetensors file(path, {}, Location{});
  if (find(file.metadata(), "format") != kFormat)
    throw UserError(fmt::format("\"{}\" is no checkpoint of a training run", path),
                    "anneal train --save writes them", {});
  return {file.metadata(), file.state(Location{}), number_of(file.metadata(), "step")};
}

void restore(Task& task, const Checkpoint& checkpoint) {
  State kept;  // what the task itself was made from is no part of the run's state
  const State extra = task.extra_state();
  for (const auto& entry : checkpoint.tensors)
    if (std::ranges::none_of(extra, [&](const auto& e) { return e.first == entry.first; }))
      kept.push_back(entry);
  load_state(task.state(), kept, {}, Location{});
  generator() = Generator(static_cast<uint64_t>(number_of(checkpoint.metadata, "random_seed")),
                          static_cast<uint64_t>(number_of(checkpoint.metadata, "random_draw")));
}

void save_checkpoint(const std::string& path, Task& task, const Settings& settings, int64_t step) {
  io::Metadata metadata{{"format", kFormat}};
  const io::Metadata chosen = settings.metadata();
  metadata.insert(metadata.end(), chosen.begin(), chosen.end());
  metadata.emplace_back("step", std::to_string(step));
  metadata.emplace_back("data_position", std::to_string(step * settings.batch));
  metadata.emplace_back("random_seed", std::to_string(generator().seed()));
  metadata.emplace_back("random_draw", std::to_string(generator().draw()));
  State state = task.state();
  const State extra = task.extra_state();
  state.insert(state.end(), extra.begin(), extra.end());
  io::save_safetensors(path, state, metadata, Location{});
}

void check_save_path(const std::string& path, Task& task) {
  const AtomicFile probe(path);
  if (!probe.error().empty())
    throw UserError(fmt::format("cannot write \"{}\": {}", path, probe.error()),
                    "choose another place for --save", {});
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  std::error_code unknown;
  const std::filesystem::space_info space = std::filesystem::space(folder, unknown);
  const uint64_t needed = bytes_of(task.state());
  if (!unknown && space.available < needed)
    throw UserError(fmt::format("\"{}\" has {} bytes left, a checkpoint needs {}", folder.string(),
                                space.available, needed),
                    "make room, or choose another place for --save", {});
}

OpenedRun open_run(const RunOptions& options) {
  if (options.threads) set_threads(*options.threads, {});
  std::optional<Checkpoint> from;
  if (!options.resume.empty()) from = read_checkpoint(options.resume);
  OpenedRun run{settle(options, from ? &from->metadata : nullptr), nullptr, 0};
  const Busy busy("building the model");
  seed(static_cast<uint64_t>(run.settings.seed));
  run.task = make_task(run.settings, from ? &from->tensors : nullptr);
  if (from) {
    restore(*run.task, *from);
    run.step = from->step;
  }
  return run;
}

}  // namespace anneal::cli
