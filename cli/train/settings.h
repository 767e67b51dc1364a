// What a run is: the model, its sizes, its data and numbers, from the command line, a checkpoint
// or the model's defaults, in this order.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <anneal/io.h>

#include "models/training.h"

namespace anneal::cli {

// What the commands that use a model are given; what is empty comes from elsewhere.
struct RunOptions {
  std::string model, resume, data, device, dtype;
  std::optional<int> threads;
  std::optional<int64_t> batch, seed, layers, heads, width, block;
  std::optional<double> lr;
  bool needs_data = true;  // a model can write without the text it learned from
};

// An option that says something else than the checkpoint it goes on from.
struct ChangedSetting {
  std::string option, now, before;
};

struct Settings {
  const models::ModelRow* row = nullptr;
  int64_t layers = 0, heads = 0, width = 0, block = 0, batch = 0, seed = 0;
  double lr = 0;
  DType dtype = DType::F32;  // that products are computed in
  std::string data;          // empty: what is built in
  bool needs_data = true;
  std::vector<ChangedSetting> changed;  // what the options say holds

  io::Metadata metadata() const;
};

// For people: which options differ from the checkpoint, and that they hold.
std::vector<std::string> texts_of(const std::vector<ChangedSetting>& changed);

// Sizes that differ from those of the checkpoint, or that the model does not have, are errors.
// `checkpoint` may be null.
Settings settle(const RunOptions& options, const io::Metadata* checkpoint);

// The value of a key; empty when there is none.
std::string find(const io::Metadata& metadata, std::string_view key);
// Of a checkpoint, where the number must be there and within bounds.
int64_t number_of(const io::Metadata& metadata, std::string_view key, int64_t least = 0,
                  int64_t most = std::numeric_limits<int64_t>::max());

}  // namespace anneal::cli
