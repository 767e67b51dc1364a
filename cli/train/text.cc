// nanogpt: a GPT over the characters of a text.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include <anneal/functional.h>
#include <anneal/io.h>

#include "cli/train/nonfinite.h"
#include "cli/train/task.h"
#include "io/data_random.h"
#include "io/data_text.h"
#include "models/networks.h"

namespace anneal::cli {
namespace {

constexpr const char* kVocabulary = "vocabulary";  // among the tensors of a checkpoint
constexpr int64_t kScoredBatches = 8;

std::string load(const std::string& path) {
  if (path.empty()) return std::string(io::built_in_text());
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw UserError(fmt::format("\"{}\" is a directory", path), "nanogpt learns from a text file",
                    {});
  std::string text = io::load_text(path, {}, Location{});
  if (text.empty())
    throw UserError(fmt::format("\"{}\" is empty", path), "give a file with some text", {});
  return text;
}

io::Vocabulary vocabulary_of(const State* kept, const std::string& text) {
  if (!kept) return io::Vocabulary(text);
  for (const auto& [name, tensor] : *kept)
    if (name == kVocabulary) return io::Vocabulary(tensor.to_vector<int32_t>());
  throw UserError("the checkpoint has no vocabulary", "it is damaged: take another one", {});
}

// One token, by the chances that the logits stand for; the likeliest at temperature 0.
int32_t draw(std::span<const float> logits, double temperature, io::HostRandom& random) {
  const auto best = std::ranges::max_element(logits);
  if (temperature == 0) return static_cast<int32_t>(best - logits.begin());
  std::vector<double> chances;
  double sum = 0;
  for (const float logit : logits)
    chances.push_back(sum += std::exp((static_cast<double>(logit) - *best) / temperature));
  const auto place = std::ranges::upper_bound(chances, random.uniform() * sum);
  return static_cast<int32_t>(
      std::min<ptrdiff_t>(place - chances.begin(), static_cast<ptrdiff_t>(logits.size()) - 1));
}

class TextTask : public Task {
 public:
  TextTask(const Settings& settings, const State* kept)
      : settings_(settings),
        text_(settings.needs_data ? load(settings.data) : ""),
        vocabulary_(vocabulary_of(kept, text_)),
        tokens_(vocabulary_.encode(text_)),
        trained_(static_cast<int64_t>(tokens_.size()) * 9 / 10),
        model_(models::character_gpt(settings.layers, settings.width, settings.heads,
                                     settings.block, vocabulary_.size())),
        optimizer_(model_, models::optimizer_options(*settings.row, settings.lr, settings.dtype)) {
    model_.compute_in(settings.dtype);
    const int64_t needed = settings.block + 2, scored = all() - trained_;
    if (settings.needs_data && std::min(trained_, scored) < needed)
      throw UserError(fmt::format("the text has {} characters, of which {} are kept to test, but a "
                                  "block of {} needs {}",
                                  all(), scored, settings.block, needed),
                      "give a longer text, or a smaller --block", {});
  }

  nn::Module& model() override { return model_; }
  optim::Optimizer& optimizer() override { return optimizer_; }
  const char* unit() const override { return "tokens"; }
  std::string data_text() const override {
    return fmt::format("{}: {} characters, {} different ones",
                       settings_.data.empty() ? "the built-in text" : settings_.data, all(),
                       vocabulary_.size());
  }

  Batch make_batch(int64_t step) override {
    io::HostRandom random(static_cast<uint64_t>(settings_.seed), static_cast<uint64_t>(step));
    return batch_from([&] { return random.below(trained_ - settings_.block); });
  }

  double learn(const Batch& batch) override { return run(step_, batch); }

  Score score() override {
    // The same places every time, evenly over the text that is kept to test.
    const int64_t room = all() - trained_ - settings_.block,
                  count = kScoredBatches * settings_.batch;
    double sum = 0;
    int64_t place = 0;
    model_.eval();
    for (int64_t i = 0; i < kScoredBatches; ++i)
      sum += run(loss_, batch_from([&] { return trained_ + place++ * (room - 1) / count; }));
    model_.train();
    const double loss = sum / kScoredBatches;
    return {"valid_loss", loss, fmt::format("validation loss {:.4f}", loss)};
  }

  std::string first_non_finite() const override {
    return cli::first_non_finite(step_.program(), {{"tokens", x_}, {"targets", y_}}, {});
  }

  State extra_state() const override {
    return {{kVocabulary, from_data(vocabulary_.characters(), {vocabulary_.size()})}};
  }

  void sample(const std::string& prompt, int64_t count, double temperature, int64_t seed,
              const Writer& write) override {
    std::vector<int32_t> tokens = vocabulary_.encode(prompt);
    write(prompt);
    io::HostRandom random(static_cast<uint64_t>(seed), 0x73616d706c65);
    const auto block = static_cast<size_t>(settings_.block);
    model_.eval();
    for (int64_t i = 0; i < count; ++i) {
      // The last block of tokens; no token sees what stands after it.
      const size_t seen = std::min(tokens.size(), block);
      std::vector<int32_t> window(tokens.end() - static_cast<ptrdiff_t>(seen), tokens.end());
      window.resize(block);
      window_.write(window);
      const std::vector<float> logits = logits_(window_).to_vector();
      const auto width = static_cast<size_t>(vocabulary_.size());
      const int32_t token =
          draw(std::span(logits).subspan((seen - 1) * width, width), temperature, random);
      tokens.push_back(token);
      write(vocabulary_.decode(token));
    }
    model_.train();
  }

 private:
  using Loss = Compiled<std::function<Tensor(const Tensor&, const Tensor&)>>;

  int64_t all() const { return static_cast<int64_t>(tokens_.size()); }

  template <typename Place>
  Batch batch_from(Place next_place) const {
    Batch batch;
    for (int64_t i = 0; i < settings_.batch; ++i) {
      const auto first = tokens_.begin() + next_place();
      batch.tokens.insert(batch.tokens.end(), first, first + settings_.block);
      batch.targets.insert(batch.targets.end(), first + 1, first + settings_.block + 1);
    }
    batch.items = settings_.batch * settings_.block;
    return batch;
  }

  double run(Loss& function, const Batch& batch) {
    x_.write(batch.tokens);
    y_.write(batch.targets);
    return function(x_, y_).item();
  }

  Tensor loss_of(const Tensor& x, const Tensor& y) const {
    return models::language_loss(model_(x), y);
  }

  Settings settings_;
  std::string text_;
  io::Vocabulary vocabulary_;
  std::vector<int32_t> tokens_;
  int64_t trained_;  // characters to train on; those after them are kept to test
  nn::Gpt model_;
  optim::AdamW optimizer_;
  Tensor x_ = parameter("tokens", zeros({settings_.batch, settings_.block}, DType::I32));
  Tensor y_ = parameter("targets", zeros({settings_.batch, settings_.block}, DType::I32));
  Tensor window_ = parameter("window", zeros({1, settings_.block}, DType::I32));
  Loss step_ = compile(
      [this](const Tensor& x, const Tensor& y) {
        const Tensor loss = loss_of(x, y);
        optimizer_.update(loss);
        return loss;
      },
      {.name = "the training step", .inputs = {{"tokens"}, {"targets"}}});
  Loss loss_ = compile([this](const Tensor& x, const Tensor& y) { return loss_of(x, y); });
  Compiled<std::function<Tensor(const Tensor&)>> logits_ =
      compile([this](const Tensor& x) { return model_(x); });
};

}  // namespace

std::unique_ptr<Task> make_text_task(const Settings& settings, const State* kept) {
  return std::make_unique<TextTask>(settings, kept);
}

}  // namespace anneal::cli
