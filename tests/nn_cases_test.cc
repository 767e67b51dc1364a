// Every layer against PyTorch: results, running statistics and gradients of all parameters, in f64.
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/anneal.h>

#include "op_case_runner.h"

using namespace anneal;

namespace {

// ---- The recipe of goldens/make_nn_goldens.py

uint64_t seed_of(const std::string& name) {
  uint64_t value = 0xcbf29ce484222325;
  for (unsigned char byte : name) value = (value ^ byte) * 0x100000001b3;
  return value;
}

uint64_t draw(uint64_t seed, uint64_t position) {
  uint64_t z = seed + (position + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return (z ^ z >> 31) >> 32;
}

Tensor values(const std::string& name, const Sizes& sizes, double low = -1, double high = 1) {
  int64_t count = 1;
  for (const Dim& size : sizes) count *= size.value();
  const double first = std::round(low * 1024);
  const auto range = static_cast<uint64_t>(std::llround((high - low) * 1024));
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back((first + static_cast<double>(draw(seed_of(name), i) % range)) / 1024);
  return from_data(numbers, sizes);
}

Tensor whole(const std::string& name, const Sizes& sizes, uint64_t limit) {
  const int64_t count = sizes[0].value() * sizes[1].value();
  std::vector<int32_t> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<int32_t>(draw(seed_of(name), i) % limit));
  return from_data(numbers, sizes);
}

// ---- The cases

struct Case {
  std::unique_ptr<nn::Module> model;
  Tensor x;  // empty: the input is not differentiated
  Tensor result;
};

// A model of one layer "m".
template <typename Layer>
struct One : nn::Module {
  template <typename... Arguments>
  explicit One(const Arguments&... arguments) : m(this, "m", arguments...) {}
  Layer m;
};

// Parameters take the values of the recipe before the result is built.
void fill(nn::Module& model, const std::string& name) {
  State state;
  for (const auto& [path, tensor] : model.state()) {
    const bool variance = path.ends_with("running_var");
    state.emplace_back(
        path, values(name + "/" + path, tensor.shape(), variance ? 0.5 : -1, variance ? 1.5 : 1));
  }
  model.load(state);
}

template <typename Layer, typename... Arguments>
Case layer(const std::string& name, const Sizes& sizes, const Arguments&... arguments) {
  auto model = std::make_unique<One<Layer>>(arguments...);
  if (name.ends_with("_eval")) model->eval();
  fill(*model, name);
  Tensor x = values(name + "/x", sizes);
  Tensor y = model->m(x);
  return {std::move(model), x, y};
}

constexpr DType kF64 = DType::F64;

Case embedding(const std::string& name) {
  auto model = std::make_unique<One<nn::Embedding>>(4, 3, nn::EmbeddingOptions{.dtype = kF64});
  fill(*model, name);
  Tensor y = model->m(whole(name + "/index", {2, 5}, 4));
  return {std::move(model), {}, y};
}

Case gpt(const std::string& name, const nn::GptOptions& options) {
  auto model = std::make_unique<nn::Gpt>(options);
  fill(*model, name);
  Tensor y = (*model)(whole(name + "/tokens", {2, 5}, 11));
  return {std::move(model), {}, y};
}

using Builder = std::function<Case(const std::string&)>;

using namespace nn;

const std::map<std::string, Builder>& cases() {
  static const std::map<std::string, Builder> rows{
      {"linear_bias",
       [](auto& n) { return layer<Linear>(n, {2, 3, 5}, 5, 4, LinearOptions{.dtype = kF64}); }},
      {"linear_plain",
       [](auto& n) {
         return layer<Linear>(n, {3, 5}, 5, 4, LinearOptions{.bias = false, .dtype = kF64});
       }},
      {"conv1d",
       [](auto& n) {
         return layer<Conv1d>(n, {2, 3, 11}, 3, 4, 3,
                              ConvLayerOptions{.stride = {2}, .padding = {1}, .dtype = kF64});
       }},
      {"conv2d",
       [](auto& n) {
         return layer<Conv2d>(n, {2, 3, 5, 6}, 3, 4, 3,
                              ConvLayerOptions{.padding = {1}, .dtype = kF64});
       }},
      {"conv2d_groups_dilation",
       [](auto& n) {
         return layer<Conv2d>(n, {1, 4, 7, 6}, 4, 6, std::array<int64_t, 2>{3, 2},
                              ConvLayerOptions{.stride = {1, 2},
                                               .padding = {2, 0},
                                               .dilation = {2, 1},
                                               .groups = 2,
                                               .bias = false,
                                               .dtype = kF64});
       }},
      {"embedding", embedding},
      {"layer_norm_affine",
       [](auto& n) { return layer<LayerNorm>(n, {2, 3, 6}, 6, NormOptions{.dtype = kF64}); }},
      {"rms_norm_affine",
       [](auto& n) {
         return layer<RmsNorm>(n, {2, 3, 6}, 6, NormOptions{.epsilon = 1e-6, .dtype = kF64});
       }},
      {"group_norm",
       [](auto& n) { return layer<GroupNorm>(n, {2, 6, 4}, 3, 6, NormOptions{.dtype = kF64}); }},
      {"batch_norm_train",
       [](auto& n) {
         return layer<BatchNorm>(n, {4, 3, 2, 2}, 3, BatchNormOptions{.dtype = kF64});
       }},
      {"batch_norm_eval",
       [](auto& n) { return layer<BatchNorm>(n, {4, 3}, 3, BatchNormOptions{.dtype = kF64}); }},
      {"attention_causal",
       [](auto& n) {
         return layer<MultiHeadAttention>(n, {2, 5, 8}, 8, 2, AttentionOptions{.dtype = kF64});
       }},
      {"attention_full",
       [](auto& n) {
         return layer<MultiHeadAttention>(
             n, {2, 4, 6}, 6, 3, AttentionOptions{.causal = false, .bias = false, .dtype = kF64});
       }},
      {"attention_grouped_rotary",
       [](auto& n) {
         return layer<MultiHeadAttention>(
             n, {2, 5, 16}, 16, 4,
             AttentionOptions{.kv_heads = 2, .rotary_base = 10000, .dtype = kF64});
       }},
      {"mlp_gelu",
       [](auto& n) { return layer<Mlp>(n, {2, 3, 4}, 4, 8, MlpOptions{.dtype = kF64}); }},
      {"mlp_swiglu",
       [](auto& n) {
         return layer<SwiGlu>(n, {2, 3, 4}, 4, 6, MlpOptions{.bias = false, .dtype = kF64});
       }},
      {"gpt_small",
       [](auto& n) {
         return gpt(
             n, {.layers = 2, .width = 8, .heads = 2, .vocabulary = 11, .block = 6, .dtype = kF64});
       }},
      {"llama_small",
       [](auto& n) {
         return gpt(n, {.layers = 2,
                        .width = 8,
                        .heads = 4,
                        .vocabulary = 11,
                        .block = 6,
                        .kv_heads = 2,
                        .hidden = 12,
                        .bias = false,
                        .rms_norm = true,
                        .swiglu = true,
                        .rotary_base = 10000,
                        .tied_head = false,
                        .dtype = kF64});
       }},
  };
  return rows;
}

// ---- The goldens: case, what, array

std::map<std::string, std::map<std::string, Array>> read_goldens() {
  std::ifstream file(std::string(ANNEAL_SOURCE_DIR) + "/tests/goldens/nn_cases.txt");
  std::map<std::string, std::map<std::string, Array>> goldens;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    const size_t first = line.find(" ; "), second = line.find(" ; ", first + 3);
    const size_t open = line.find('[', second), close = line.find(']', open);
    Array array;
    std::istringstream sizes(line.substr(open + 1, close - open - 1));
    for (std::string size; std::getline(sizes, size, ',');) array.shape.push_back(std::stoll(size));
    std::istringstream numbers(line.substr(close + 1));
    for (double number; numbers >> number;) array.reals.push_back(number);
    goldens[line.substr(0, first)][line.substr(first + 3, second - first - 3)] = array;
  }
  return goldens;
}

}  // namespace

TEST_CASE("nn: layers, their statistics and gradients are PyTorch's") {
  const auto goldens = read_goldens();
  CHECK(goldens.size() == cases().size());
  for (const auto& [name, build] : cases()) {
    CAPTURE(name);
    Step step;
    Case one = build(name);
    Tensor loss = sum(one.result * values(name + "/loss", one.result.shape()));
    std::vector<std::string> what{"result"};
    std::vector<Tensor> wanted, tensors{one.result};
    for (const nn::Parameter& p : one.model->parameters()) {
      what.push_back("grad " + p.path);
      wanted.push_back(p.tensor);
    }
    if (one.x.defined()) {
      what.push_back("grad x");
      wanted.push_back(one.x);
    }
    for (const Tensor& gradient : grad(loss, wanted)) tensors.push_back(gradient);
    std::vector<Tensor> got = step.evaluate(tensors);
    for (const auto& [path, tensor] : one.model->state()) {
      if (path.find("running_") == std::string::npos) continue;
      what.push_back("after " + path);
      got.push_back(tensor);
    }
    const auto& expected = goldens.at(name);
    CHECK(expected.size() == what.size());
    for (size_t i = 0; i < what.size(); ++i) {
      REQUIRE_MESSAGE(expected.contains(what[i]), name << " has no golden for " << what[i]);
      check_array(name + ": " + what[i], run(got[i], {}), expected.at(what[i]), kClose);
    }
  }
}
