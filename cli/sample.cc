#include "sample.h"

#include <fmt/format.h>

#include <anneal/error.h>

#include "chosen_device.h"
#include "json.h"
#include "output.h"
#include "train_checkpoint.h"

namespace anneal::cli {

void sample(const SampleOptions& options) {
  const ChosenDevice device(options.device);
  const std::string model = find(read_checkpoint(options.resume).metadata, "model");
  RunOptions as_saved;
  as_saved.model = model;
  as_saved.resume = options.resume;
  as_saved.needs_data = false;
  const OpenedRun run = open_run(as_saved);
  if (options.prompt.empty())
    throw UserError("the prompt is empty", "give at least one character to --prompt", {});
  const std::string text =
      run.task->sample(options.prompt, options.tokens, options.temperature, options.seed);
  write(options.json ? Json::object()
                               .set("model", model)
                               .set("step", run.step)
                               .set("seed", options.seed)
                               .set("temperature", options.temperature)
                               .set("text", text)
                               .text() +
                           "\n"
                     : text + "\n");
}

}  // namespace anneal::cli
