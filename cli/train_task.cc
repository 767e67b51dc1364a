#include "train_task.h"

#include <fmt/format.h>

#include <anneal/error.h>

namespace anneal::cli {

std::string Task::sample(const std::string&, int64_t, double, int64_t) {
  throw UserError("the model writes no text", "anneal sample takes a checkpoint of nanogpt", {});
}

State Task::state() {
  State all = model().state();
  const State& moments = optimizer().state();
  all.insert(all.end(), moments.begin(), moments.end());
  return all;
}

optim::GradientOptions gradient_options(const Settings& settings) {
  optim::GradientOptions options{.clip_norm = 1, .skip_non_finite = true};
  if (settings.dtype == DType::F16) options.loss_scale.emplace();
  return options;
}

std::unique_ptr<Task> make_task(const Settings& settings, const State* kept) {
  return settings.row->name == "nanogpt" ? make_text_task(settings, kept)
                                         : make_image_task(settings);
}

}  // namespace anneal::cli
