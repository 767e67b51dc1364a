#include "train_settings.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include <anneal/error.h>

#include "ir/dtype.h"
#include "output.h"

namespace anneal::cli {
namespace {

constexpr std::array kComputeDTypes{DType::F32, DType::BF16, DType::F16};
constexpr int64_t kLargest = 1 << 20;  // size that a checkpoint may ask for

struct SizeRow {
  const char* name;
  int64_t ModelRow::* standard;
  std::optional<int64_t> RunOptions::* given;
  int64_t Settings::* result;
};
constexpr std::array<SizeRow, 4> kSizes{{
    {"layers", &ModelRow::layers, &RunOptions::layers, &Settings::layers},
    {"heads", &ModelRow::heads, &RunOptions::heads, &Settings::heads},
    {"width", &ModelRow::width, &RunOptions::width, &Settings::width},
    {"block", &ModelRow::block, &RunOptions::block, &Settings::block},
}};

const ModelRow& row_named(const std::string& name) {
  const auto row = std::ranges::find(model_rows(), name, &ModelRow::name);
  if (row == model_rows().end()) fail_unknown("model", name, model_names());
  return *row;
}

// A size is part of the model: what a checkpoint says stands.
int64_t settle_size(const SizeRow& size, const ModelRow& row, const RunOptions& options,
                    const io::Metadata* checkpoint) {
  const std::optional<int64_t> given = options.*size.given;
  if (row.*size.standard == 0) {
    if (given)
      throw UserError(fmt::format("{} has no --{}", row.name, size.name),
                      fmt::format("anneal train --help says what {} is", row.name), {});
    return 0;
  }
  if (!checkpoint) return given.value_or(row.*size.standard);
  const int64_t kept = number_of(*checkpoint, size.name, 1, kLargest);
  if (given && *given != kept)
    throw UserError(fmt::format("\"{}\" has {} {}, --{} says {}", options.resume, size.name, kept,
                                size.name, *given),
                    fmt::format("leave --{} out, or start without --resume", size.name), {});
  return kept;
}

// As sizes: an optimizer for f16 keeps more than one for f32. Checkpoints that do not say it are
// f32.
DType settle_dtype(const RunOptions& options, const io::Metadata* checkpoint) {
  std::string kept = checkpoint ? find(*checkpoint, "dtype") : options.dtype;
  if (kept.empty()) kept = name(DType::F32);
  if (!options.dtype.empty() && options.dtype != kept)
    throw UserError(
        fmt::format("\"{}\" computes in {}, --dtype says {}", options.resume, kept, options.dtype),
        "leave --dtype out, or start without --resume", {});
  const auto dtype = std::ranges::find(kComputeDTypes, parse_dtype(kept));
  if (dtype == kComputeDTypes.end())
    throw UserError(fmt::format("models do not compute in \"{}\"", kept), "give f32, bf16 or f16",
                    {});
  return *dtype;
}

template <typename T>
std::optional<T> parsed(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

}  // namespace

const std::vector<ModelRow>& model_rows() {
  static const std::vector<ModelRow> rows{
      {"mlp", "784-512-512-10 perceptron on digits", 0, 0, 512, 0, 128, 1400, 1e-3},
      {"conv", "two 3x3 convolutions, pooling and a linear layer on digits", 0, 0, 32, 0, 64, 1400,
       1e-3},
      {"dynmlp", "the perceptron on batches of many sizes, with one plan", 0, 0, 512, 0, 128, 1400,
       1e-3},
      {"nanogpt", "a GPT that learns a text character by character", 4, 4, 128, 64, 16, 1000, 1e-3},
  };
  return rows;
}

std::vector<std::string_view> model_names() {
  std::vector<std::string_view> names;
  for (const ModelRow& row : model_rows()) names.push_back(row.name);
  return names;
}

std::string find(const io::Metadata& metadata, std::string_view key) {
  const auto entry = std::ranges::find(metadata, key, [](const auto& e) { return e.first; });
  return entry == metadata.end() ? "" : entry->second;
}

int64_t number_of(const io::Metadata& metadata, std::string_view key, int64_t least, int64_t most) {
  const std::string text = find(metadata, key);
  const std::optional<int64_t> value = parsed<int64_t>(text);
  if (!value || *value < least || *value > most)
    throw UserError(fmt::format("the checkpoint says {} is \"{}\"", key, text),
                    "it is damaged: take another one", {});
  return *value;
}

io::Metadata Settings::metadata() const {
  io::Metadata metadata{{"model", std::string(row->name)}};
  for (const SizeRow& size : kSizes)
    if (row->*size.standard != 0)
      metadata.emplace_back(size.name, std::to_string(this->*size.result));
  metadata.emplace_back("batch", std::to_string(batch));
  metadata.emplace_back("seed", std::to_string(seed));
  metadata.emplace_back("lr", fmt::format("{}", lr));
  metadata.emplace_back("dtype", name(dtype));
  metadata.emplace_back("data", data);
  return metadata;
}

Settings settle(const RunOptions& options, const io::Metadata* checkpoint) {
  Settings settings;
  const ModelRow& row = row_named(options.model);
  settings.row = &row;
  settings.needs_data = options.needs_data;
  if (checkpoint) {
    const std::string kept = find(*checkpoint, "model");
    if (kept != row.name)
      throw UserError(
          fmt::format("\"{}\" is a checkpoint of {}, not of {}", options.resume, kept, row.name),
          fmt::format("go on with that model, or start {} without --resume", row.name), {});
  }
  for (const SizeRow& size : kSizes)
    settings.*size.result = settle_size(size, row, options, checkpoint);
  if (settings.heads > 0 && settings.width % settings.heads != 0)
    throw UserError(
        fmt::format("a width of {} does not divide into {} heads", settings.width, settings.heads),
        "choose a --heads that divides --width", {});
  settings.batch =
      options.batch.value_or(checkpoint ? number_of(*checkpoint, "batch", 1, kLargest) : row.batch);
  settings.seed = options.seed.value_or(checkpoint ? number_of(*checkpoint, "seed") : 1);
  settings.lr = options.lr.value_or(
      checkpoint ? parsed<double>(find(*checkpoint, "lr")).value_or(row.lr) : row.lr);
  settings.dtype = settle_dtype(options, checkpoint);
  settings.data = options.data.empty() && checkpoint ? find(*checkpoint, "data") : options.data;
  return settings;
}

}  // namespace anneal::cli
