#include "cli/train/settings.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include <anneal/error.h>

#include "cli/failure.h"
#include "ir/dtype.h"

namespace anneal::cli {
namespace {

constexpr std::array kComputeDTypes{DType::F32, DType::BF16, DType::F16};
constexpr int64_t kLargest = 1 << 20;  // size that a checkpoint may ask for

struct SizeRow {
  const char* name;
  int64_t models::ModelRow::* standard;
  std::optional<int64_t> RunOptions::* given;
  int64_t Settings::* result;
};
constexpr std::array<SizeRow, 4> kSizes{{
    {"layers", &models::ModelRow::layers, &RunOptions::layers, &Settings::layers},
    {"heads", &models::ModelRow::heads, &RunOptions::heads, &Settings::heads},
    {"width", &models::ModelRow::width, &RunOptions::width, &Settings::width},
    {"block", &models::ModelRow::block, &RunOptions::block, &Settings::block},
}};

const models::ModelRow& row_named(const std::string& name) {
  const models::ModelRow* row = models::find_model(name);
  if (!row) fail_unknown("model", name, models::model_names());
  return *row;
}

// A size is part of the model: what a checkpoint says stands.
int64_t settle_size(const SizeRow& size, const models::ModelRow& row, const RunOptions& options,
                    const io::Metadata* checkpoint) {
  const std::optional<int64_t> given = options.*size.given;
  if (row.*size.standard == 0) {
    if (given)
      throw UsageError(fmt::format("{} has no --{}", row.name, size.name),
                       fmt::format("anneal train --help says what {} is", row.name));
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
  std::vector<std::string_view> names;
  for (DType dtype : kComputeDTypes) names.push_back(name(dtype));
  if (!options.dtype.empty() && std::ranges::find(names, options.dtype) == names.end())
    fail_unknown("dtype to compute in", options.dtype, names);
  std::string kept = checkpoint ? find(*checkpoint, "dtype") : options.dtype;
  if (kept.empty()) kept = name(DType::F32);
  if (!options.dtype.empty() && options.dtype != kept)
    throw UserError(
        fmt::format("\"{}\" computes in {}, --dtype says {}", options.resume, kept, options.dtype),
        "leave --dtype out, or start without --resume", {});
  const auto dtype = std::ranges::find(kComputeDTypes, parse_dtype(kept));
  if (dtype == kComputeDTypes.end())
    throw UserError(fmt::format("the checkpoint says dtype is \"{}\"", kept),
                    "it is damaged: take another one", {});
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

std::vector<std::string> texts_of(const std::vector<ChangedSetting>& changed) {
  std::vector<std::string> texts;
  for (const ChangedSetting& each : changed)
    texts.push_back(fmt::format("{} is {} from here on, the checkpoint says {}", each.option,
                                each.now, each.before.empty() ? "none" : each.before));
  return texts;
}

Settings settle(const RunOptions& options, const io::Metadata* checkpoint) {
  Settings settings;
  const models::ModelRow& row = row_named(options.model);
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
    throw UsageError(
        fmt::format("a width of {} does not divide into {} heads", settings.width, settings.heads),
        "choose a --heads that divides --width");
  settings.batch = checkpoint ? number_of(*checkpoint, "batch", 1, kLargest) : row.batch;
  settings.seed = checkpoint ? number_of(*checkpoint, "seed") : 1;
  settings.lr = checkpoint ? parsed<double>(find(*checkpoint, "lr")).value_or(row.lr) : row.lr;
  settings.data = checkpoint ? find(*checkpoint, "data") : "";
  auto take = [&](const char* option, const auto& given, auto& setting) {
    if (!given) return;
    if (checkpoint && *given != setting)
      settings.changed.push_back({option, fmt::format("{}", *given), fmt::format("{}", setting)});
    setting = *given;
  };
  take("--batch", options.batch, settings.batch);
  take("--seed", options.seed, settings.seed);
  take("--lr", options.lr, settings.lr);
  take("--data", options.data.empty() ? std::nullopt : std::optional(options.data), settings.data);
  settings.dtype = settle_dtype(options, checkpoint);
  return settings;
}

}  // namespace anneal::cli
