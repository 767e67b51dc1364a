#include "cli/inspect/run.h"

#include <chrono>

#include <fmt/format.h>

#include "cli/chosen_device.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/train/checkpoint.h"

namespace anneal::cli {

void run_model(const InferenceOptions& options) {
  const ChosenDevice device(options.run.device);
  const OpenedRun run = open_run(options.run);
  const auto start = std::chrono::steady_clock::now();
  const Score score = run.task->score();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  if (options.json) {
    write(Json::object()
              .set("model", run.settings.row->name)
              .set("step", run.step)
              .set("data", run.task->data_text())
              .set(score.name, score.value)
              .set("seconds", time.count())
              .text() +
          "\n");
    return;
  }
  for (const std::string& text : texts_of(run.settings.changed)) write(text + "\n");
  write(fmt::format("{} after {} steps\ndata: {}\n{} in {:.2f} s\n", run.settings.row->name,
                    run.step, run.task->data_text(), score.text, time.count()));
}

}  // namespace anneal::cli
