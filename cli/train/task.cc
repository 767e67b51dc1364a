#include "cli/train/task.h"

#include <fmt/format.h>

#include <anneal/error.h>

namespace anneal::cli {

void Task::sample(const std::string&, int64_t, double, int64_t, const Writer&) {
  throw UserError("the model writes no text", "anneal sample takes a checkpoint of nanogpt", {});
}

State Task::state() {
  State all = model().state();
  const State& moments = optimizer().state();
  all.insert(all.end(), moments.begin(), moments.end());
  return all;
}

std::unique_ptr<Task> make_task(const Settings& settings, const State* kept) {
  return settings.row->learns_text() ? make_text_task(settings, kept) : make_image_task(settings);
}

}  // namespace anneal::cli
