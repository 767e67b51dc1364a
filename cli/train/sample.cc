#include "cli/train/sample.h"

#include "cli/chosen_device.h"
#include "cli/failure.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/train/checkpoint.h"

namespace anneal::cli {

void sample(const SampleOptions& options) {
  const ChosenDevice device(options.device);
  const std::string model = find(read_checkpoint(options.resume).metadata, "model");
  RunOptions as_saved;
  as_saved.model = model;
  as_saved.resume = options.resume;
  as_saved.needs_data = false;
  if (options.prompt.empty())
    throw UsageError("the prompt is empty", "give at least one character to --prompt");
  const OpenedRun run = open_run(as_saved);
  std::string text;
  auto take = [&](std::string_view character) {
    if (options.json) {
      text += character;
    } else {  // a reader sees each when it is made
      write(character);
      flush();
    }
  };
  run.task->sample(options.prompt, options.tokens, options.temperature, options.seed, take);
  write(options.json ? Json::object()
                               .set("model", model)
                               .set("step", run.step)
                               .set("seed", options.seed)
                               .set("temperature", options.temperature)
                               .set("text", text)
                               .text() +
                           "\n"
                     : "\n");
}

}  // namespace anneal::cli
