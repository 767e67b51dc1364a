// A model with its data and its optimizer: what `train`, `sample` and `run` drive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <anneal/compile.h>
#include <anneal/nn.h>
#include <anneal/optim.h>

#include "cli/train/settings.h"

namespace anneal::cli {

struct Batch {
  std::vector<float> pixels;             // of images
  std::vector<int32_t> tokens, targets;  // of texts; targets of images are labels
  int64_t items = 0;                     // images or tokens
};

struct Score {
  const char* name;  // "accuracy", "valid_loss"
  double value;
  std::string text;  // for people
};

class Task {
 public:
  virtual ~Task() = default;

  virtual nn::Module& model() = 0;
  virtual optim::Optimizer& optimizer() = 0;
  virtual const char* unit() const = 0;  // what items are: "samples", "tokens"
  virtual std::string data_text() const = 0;

  // Of step 0, 1, ..: a function of the seed and the step alone. One thread calls it at a time.
  virtual Batch make_batch(int64_t step) = 0;
  // One step; the loss before it.
  virtual double learn(const Batch& batch) = 0;
  // Over data that is not trained on.
  virtual Score score() = 0;
  // Which tensor of the last step is the first that is not finite; it repeats the step.
  virtual std::string first_non_finite() const = 0;

  // What else a checkpoint holds.
  virtual State extra_state() const { return {}; }
  // The prompt and `count` characters that follow it, each written as soon as it is known; an error
  // for models that write none.
  using Writer = std::function<void(std::string_view character)>;
  virtual void sample(const std::string& prompt, int64_t count, double temperature, int64_t seed,
                      const Writer& write);

  State state();  // all that a run goes on from
};

// `kept`: the tensors of a checkpoint, whose extra state the task is made from; may be null. The
// model's own state is for load() to take over.
std::unique_ptr<Task> make_task(const Settings& settings, const State* kept);
std::unique_ptr<Task> make_image_task(const Settings& settings);
std::unique_ptr<Task> make_text_task(const Settings& settings, const State* kept);

}  // namespace anneal::cli
