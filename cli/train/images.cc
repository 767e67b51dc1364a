// Models of digits: mlp, conv and dynmlp.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include <anneal/functional.h>

#include "cli/train/nonfinite.h"
#include "cli/train/task.h"
#include "io/data_images.h"
#include "models/networks.h"

namespace anneal::cli {
namespace {

constexpr int64_t kScored = 250;      // images at a time
constexpr int64_t kDynamicSizes = 8;  // batches of dynmlp are of so many sizes

// MNIST's mean and deviation; drawn digits have nearly the same.
float normal_pixel(uint8_t pixel) { return (static_cast<float>(pixel) / 255.0f - 0.13f) / 0.31f; }

// Where `./dev data` puts MNIST.
std::string mnist_folder() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return std::string(value ? value : "");
  };
  std::string cache = variable("XDG_CACHE_HOME");
  if (cache.empty() && !variable("HOME").empty()) cache = variable("HOME") + "/.cache";
  return cache.empty() ? "" : cache + "/anneal/mnist";
}

io::ImageData find_images(const std::string& data) {
  if (data == "digits") return io::drawn_digits();
  if (!data.empty()) return io::load_images(data);
  const std::string folder = mnist_folder();
  std::error_code ignored;
  if (!folder.empty() && std::filesystem::is_directory(folder, ignored))
    return io::load_images(folder);
  return io::drawn_digits();
}

class ImageTask : public Task {
 public:
  explicit ImageTask(const Settings& settings)
      : settings_(settings),
        data_(find_images(settings.data)),
        shuffle_(data_.train.count(), static_cast<uint64_t>(settings.seed)),
        dynamic_(settings.row->has_dynamic_batch()) {
    if (settings.row->name == "conv") {
      use<models::ConvNet>();
    } else {
      use<models::Mlp>();
    }
    model_->compute_in(settings.dtype);
    optimizer_ = std::make_unique<optim::AdamW>(
        *model_, models::optimizer_options(*settings.row, settings.lr, settings.dtype));
  }

  nn::Module& model() override { return *model_; }
  optim::Optimizer& optimizer() override { return *optimizer_; }
  const char* unit() const override { return "samples"; }
  std::string data_text() const override {
    return fmt::format("{}: {} images, {} to test", data_.source, data_.train.count(),
                       data_.test.count());
  }

  Batch make_batch(int64_t step) override {
    Batch batch;
    batch.items = batch_size(step);
    for (int64_t i = 0; i < batch.items; ++i) {
      const int64_t image = shuffle_.at(step * settings_.batch + i);
      for (const uint8_t pixel : data_.train.image(image))
        batch.pixels.push_back(normal_pixel(pixel));
      batch.targets.push_back(data_.train.labels[static_cast<size_t>(image)]);
    }
    return batch;
  }

  double learn(const Batch& batch) override {
    const Inputs& inputs = inputs_.at(batch.items);
    inputs.image.write(batch.pixels);
    inputs.label.write(batch.targets);
    last_ = batch.items;
    return step_(inputs.image, inputs.label).item();
  }

  Score score() override {
    int64_t right = 0;
    std::vector<float> pixels(static_cast<size_t>(kScored * models::kPixels));
    model_->eval();
    for (int64_t first = 0; first < data_.test.count(); first += kScored) {
      const int64_t count = std::min(kScored, data_.test.count() - first);
      std::ranges::fill(pixels, 0.0f);
      for (int64_t i = 0; i < count; ++i)
        std::ranges::transform(data_.test.image(first + i), pixels.begin() + i * models::kPixels,
                               normal_pixel);
      scored_.write(pixels);
      const std::vector<int32_t> classes = predict_(scored_).to_vector<int32_t>();
      for (int64_t i = 0; i < count; ++i)
        right +=
            classes[static_cast<size_t>(i)] == data_.test.labels[static_cast<size_t>(first + i)];
    }
    model_->train();
    const double accuracy = static_cast<double>(right) / static_cast<double>(data_.test.count());
    return {"accuracy", accuracy,
            fmt::format("accuracy {:.2f} % of {} images", 100 * accuracy, data_.test.count())};
  }

  std::string first_non_finite() const override {
    const Inputs& inputs = inputs_.at(last_);
    Bindings sizes;
    if (dynamic_) sizes.sizes = {{batch_, last_}};
    return cli::first_non_finite(step_.program(),
                                 {{"image", inputs.image}, {"label", inputs.label}}, sizes);
  }

 private:
  struct Inputs {
    Tensor image, label;
  };

  template <typename Model>
  void use() {
    auto model = std::make_unique<Model>(settings_.width);
    forward_ = [raw = model.get()](const Tensor& image) { return (*raw)(image); };
    model_ = std::move(model);
  }

  // Of dynmlp, an eighth of --batch, two eighths, .. and again.
  int64_t batch_size(int64_t step) const {
    if (!dynamic_) return settings_.batch;
    return std::max<int64_t>(1, settings_.batch * (step % kDynamicSizes + 1) / kDynamicSizes);
  }

  // Memory for batches of every size, to be written to again and again.
  std::map<int64_t, Inputs> make_inputs() const {
    std::map<int64_t, Inputs> inputs;
    for (int64_t step = 0; step < kDynamicSizes; ++step) {
      const int64_t size = batch_size(step);
      if (!inputs.contains(size))
        inputs[size] = {parameter("image", zeros({size, models::kPixels})),
                        parameter("label", zeros({size}, DType::I32))};
    }
    return inputs;
  }

  CompileOptions step_options() const {
    const Dim size = dynamic_ ? Dim(batch_) : Dim(settings_.batch);
    return {.name = "the training step",
            .inputs = {{"image", {{size, models::kPixels}}, DType::F32},
                       {"label", {{size}}, DType::I32}}};
  }

  Settings settings_;
  io::ImageData data_;
  io::Shuffle shuffle_;
  bool dynamic_;
  Variable batch_{"batch", 1, settings_.batch};
  std::unique_ptr<nn::Module> model_;
  std::function<Tensor(const Tensor&)> forward_;
  std::unique_ptr<optim::AdamW> optimizer_;
  std::map<int64_t, Inputs> inputs_ = make_inputs();
  int64_t last_ = 0;  // size of the last batch
  Compiled<std::function<Tensor(const Tensor&, const Tensor&)>> step_ = compile(
      [this](const Tensor& image, const Tensor& label) {
        const Tensor loss = cross_entropy(forward_(image), label);
        optimizer_->update(loss);
        return loss;
      },
      step_options());
  Tensor scored_ = parameter("image", zeros({kScored, models::kPixels}));
  Compiled<std::function<Tensor(const Tensor&)>> predict_ =
      compile([this](const Tensor& image) { return argmax(forward_(image)); });
};

}  // namespace

std::unique_ptr<Task> make_image_task(const Settings& settings) {
  return std::make_unique<ImageTask>(settings);
}

}  // namespace anneal::cli
