// Modules: parameters with stable paths, and the layers models are made of. Calling a module builds
// graph and computes nothing; what a call changes (running statistics, the place in a stream of
// random numbers) is recorded with the open Step.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <anneal/functional.h>
#include <anneal/state.h>
#include <anneal/tensor.h>

namespace anneal::nn {

// ---- What parameters start as

using Init = std::function<Tensor(const Sizes& sizes, DType dtype)>;

struct Fans {
  int64_t in, out;
};
// Of a weight [out, in, space..], as PyTorch counts them. An error for fewer than two axes.
Fans fans(const Sizes& weight, Location where = Location::current());

// Random ones draw from generator(), so seed() before a model makes it the same model again.
namespace init {
enum class Fan { In, Out };
struct Kaiming {
  double slope = 0;  // of the leaky relu that follows: the gain is sqrt(2 / (1 + slope^2))
  Fan fan = Fan::In;
};
Init zeros();
Init ones();
Init constant(double value);
Init literal(Tensor value);  // of the parameter's shape
Init uniform(double low, double high);
Init normal(double mean = 0, double deviation = 1);
// Cut off at `low` and `high`, which are values, not multiples of the deviation.
Init trunc_normal(double mean = 0, double deviation = 1, double low = -2, double high = 2);
Init kaiming_uniform(const Kaiming& options = {});
Init kaiming_normal(const Kaiming& options = {});
Init xavier_uniform(double gain = 1);
Init xavier_normal(double gain = 1);
}  // namespace init

// ---- Modules

struct Parameter {
  std::string path;
  Tensor tensor;
  bool frozen = false;  // optimizers pass over it
};
using Filter = std::function<bool(const Parameter&)>;  // an empty one takes all

// Base of layers and models. A member registers itself with its parent:
//
//   struct Mlp : nn::Module {
//     nn::Linear up{this, "up", 784, 512}, down{this, "down", 512, 10};
//     Tensor operator()(const Tensor& x) const { return down(relu(up(x))); }
//   };
//
// Names do not depend on addresses or on other modules: "up.weight", "blocks.3.attn.qkv.weight".
class Module {
 public:
  Module() = default;  // a model: paths start here
  Module(Module* parent, std::string_view name, Location where = Location::current());
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& path() const { return path_; }

  // Of this module and those below it, its own before theirs, in the order they were made. A tensor
  // that several modules use is listed once, under its first path.
  std::vector<Parameter> parameters(const Filter& filter = {}) const;
  State state() const;  // parameters and buffers
  void load(const State& from, const LoadOptions& options = {},
            Location where = Location::current());

  // A compiled function that looked at it has a plan for each mode.
  bool training() const;
  void train(bool on = true);
  void eval() { train(false); }
  // Mixed precision: linear maps, convolutions and attention of this module and those below it
  // compute in `dtype`, for which they round their inputs and parameters. Parameters themselves,
  // residuals, statistics and losses keep their dtype; nothing, the default, rounds nothing.
  void compute_in(std::optional<DType> dtype, Location where = Location::current());
  // Optimizers made later pass over these parameters.
  void freeze(const Filter& filter = {}) { set_frozen(filter, true); }
  void unfreeze(const Filter& filter = {}) { set_frozen(filter, false); }

 protected:
  Tensor add_parameter(std::string_view name, const Sizes& sizes, const Init& init,
                       DType dtype = DType::F32, Location where = Location::current());
  // Another module's parameter under a name of this one.
  Tensor add_tied(std::string_view name, const Tensor& parameter,
                  Location where = Location::current());
  // State that is saved and not trained.
  Tensor add_buffer(std::string_view name, const Sizes& sizes, const Init& init,
                    DType dtype = DType::F32, Location where = Location::current());

  // x, or the parameter, in the dtype that the module computes in. What is no float stays.
  Tensor for_compute(const Tensor& x) const;

  // x, which open Captures remember under the path of this module and the name.
  Tensor capture(const Tensor& x, std::string_view name = {}) const;

 private:
  enum class Kind { Parameter, Buffer };
  struct Entry {
    std::string path;
    Tensor tensor;
    Kind kind;
    bool frozen = false;
  };
  std::string path_of(std::string_view name) const;
  Tensor add(std::string_view name, Tensor tensor, Kind kind);
  void check_name(std::string_view name) const;
  void collect(std::vector<Entry>& entries) const;
  void set_frozen(const Filter& filter, bool on);

  std::string path_;
  Module* parent_ = nullptr;
  std::vector<Module*> children_;
  std::vector<Entry> entries_;
  // Shared with the plans that depend on them: base/host_choice.h.
  std::shared_ptr<int64_t> training_ = std::make_shared<int64_t>(1);
  std::shared_ptr<int64_t> compute_dtype_ = std::make_shared<int64_t>(-1);  // -1: none
};

// Modules of one kind, named by number: "blocks.0", "blocks.1".
template <typename T>
class List : public Module {
 public:
  using Module::Module;

  template <typename... Arguments>
  T& add(Arguments&&... arguments) {
    modules_.push_back(std::make_unique<T>(this, std::to_string(modules_.size()),
                                           std::forward<Arguments>(arguments)...));
    return *modules_.back();
  }
  size_t size() const { return modules_.size(); }
  const T& operator[](size_t i) const { return *modules_[i]; }
  T& operator[](size_t i) { return *modules_[i]; }

 private:
  std::vector<std::unique_ptr<T>> modules_;
};

// While it lives, modules and optimizers made on this thread are structure alone: parameters are
// inputs without memory, to look at programs of models that would not fit.
class StructureOnly {
 public:
  StructureOnly();
  ~StructureOnly();
  StructureOnly(const StructureOnly&) = delete;
  StructureOnly& operator=(const StructureOnly&) = delete;

 private:
  bool outer_;
};

// While it lives, results of the library's layers and what modules pass to capture() are
// remembered by path, each as a value of its own (named() of grad.h). What is computed stays the
// same.
class Captures {
 public:
  using PathFilter = std::function<bool(std::string_view path)>;
  explicit Captures(PathFilter filter = {});  // an empty one takes all
  ~Captures();
  Captures(const Captures&) = delete;
  Captures& operator=(const Captures&) = delete;

  // A path that is met again is followed by "#1", "#2"..
  const State& activations() const { return activations_; }
  // Of the loss with respect to each activation; zeros where it does not matter.
  State gradients(const Tensor& loss, Location where = Location::current()) const;

 private:
  friend class Module;
  Tensor add(std::string path, const Tensor& x);

  PathFilter filter_;
  State activations_;
  Captures* outer_;
};

// ---- Layers. Layouts and defaults are PyTorch's.

struct LinearOptions {
  bool bias = true;
  Tensor tied_weight = {};                // another module's, [out, in]
  Init weight_init = {}, bias_init = {};  // empty: uniform within 1 / sqrt(fan in)
  DType dtype = DType::F32;
};
class Linear : public Module {
 public:
  Linear(Module* parent, std::string_view name, int64_t in, int64_t out,
         const LinearOptions& options = {}, Location where = Location::current());
  Tensor operator()(const Tensor& x, Location where = Location::current()) const;

  Tensor weight, bias;  // [out, in], [out]
};

struct ConvLayerOptions {
  std::vector<int64_t> stride = {1}, padding = {0}, dilation = {1};
  int64_t groups = 1;
  bool bias = true;
  Init weight_init = {}, bias_init = {};  // empty: uniform within 1 / sqrt(fan in)
  DType dtype = DType::F32;
  bool winograd = true;  // see ConvOptions
};
// Over the last `space` axes of [batch, channels, space..].
class Conv : public Module {
 public:
  Tensor operator()(const Tensor& x, Location where = Location::current()) const;

  Tensor weight, bias;  // [out, in / groups, kernel..], [out]

 protected:
  Conv(Module* parent, std::string_view name, int64_t in, int64_t out,
       const std::vector<int64_t>& kernel, const ConvLayerOptions& options, Location where);

 private:
  ConvOptions options_;
  size_t space_;
};
class Conv1d : public Conv {
 public:
  Conv1d(Module* parent, std::string_view name, int64_t in, int64_t out, int64_t kernel,
         const ConvLayerOptions& options = {}, Location where = Location::current())
      : Conv(parent, name, in, out, {kernel}, options, where) {}
};
class Conv2d : public Conv {
 public:
  Conv2d(Module* parent, std::string_view name, int64_t in, int64_t out, int64_t kernel,
         const ConvLayerOptions& options = {}, Location where = Location::current())
      : Conv(parent, name, in, out, {kernel, kernel}, options, where) {}
  Conv2d(Module* parent, std::string_view name, int64_t in, int64_t out,
         const std::array<int64_t, 2>& kernel, const ConvLayerOptions& options = {},
         Location where = Location::current())
      : Conv(parent, name, in, out, {kernel[0], kernel[1]}, options, where) {}
};

struct EmbeddingOptions {
  Init weight_init = init::normal();
  DType dtype = DType::F32;
};
class Embedding : public Module {
 public:
  Embedding(Module* parent, std::string_view name, int64_t count, int64_t width,
            const EmbeddingOptions& options = {}, Location where = Location::current());
  // Rows of the weight: [..] of integers gives [.., width].
  Tensor operator()(const Tensor& index, Location where = Location::current()) const;

  Tensor weight;  // [count, width]
};

struct NormOptions {
  double epsilon = 1e-5;
  bool affine = true;  // has a weight, and a bias where the norm has one
  bool bias = true;
  DType dtype = DType::F32;
};
// Of the last axis: layer norm, or without its mean and bias rms norm.
class Norm : public Module {
 public:
  enum class Kind { Layer, Rms };
  Norm(Module* parent, std::string_view name, Kind kind, int64_t width, const NormOptions& options,
       Location where = Location::current());
  Tensor operator()(const Tensor& x, Location where = Location::current()) const;

  Tensor weight, bias;

 private:
  Kind kind_;
  double epsilon_;
};
class LayerNorm : public Norm {
 public:
  LayerNorm(Module* parent, std::string_view name, int64_t width, const NormOptions& options = {},
            Location where = Location::current())
      : Norm(parent, name, Kind::Layer, width, options, where) {}
};
class RmsNorm : public Norm {
 public:
  RmsNorm(Module* parent, std::string_view name, int64_t width,
          const NormOptions& options = {.epsilon = 1e-6}, Location where = Location::current())
      : Norm(parent, name, Kind::Rms, width, options, where) {}
};
class GroupNorm : public Module {
 public:
  GroupNorm(Module* parent, std::string_view name, int64_t groups, int64_t channels,
            const NormOptions& options = {}, Location where = Location::current());
  Tensor operator()(const Tensor& x, Location where = Location::current()) const;

  Tensor weight, bias;

 private:
  int64_t groups_;
  double epsilon_;
};

struct BatchNormOptions {
  double epsilon = 1e-5, momentum = 0.1;
  bool affine = true;
  DType dtype = DType::F32;
};
// Of [batch, channels, space..]. In training it normalises by the batch and records the running
// statistics with the step; in eval it normalises by those.
class BatchNorm : public Module {
 public:
  BatchNorm(Module* parent, std::string_view name, int64_t channels,
            const BatchNormOptions& options = {}, Location where = Location::current());
  Tensor operator()(const Tensor& x, Location where = Location::current()) const;

  Tensor weight, bias, running_mean, running_var;

 private:
  double epsilon_, momentum_;
};

// In training each element is 0 with probability `rate`, and the others are scaled to keep the
// mean. The place in its stream of random numbers is a buffer, which every call moves on.
class Dropout : public Module {
 public:
  Dropout(Module* parent, std::string_view name, double rate, Location where = Location::current());
  Tensor operator()(const Tensor& x, Location where = Location::current()) const;

  Tensor random;  // a key: see <anneal/random.h>

 private:
  double rate_;
};

// ---- Transformers. x is [batch, tokens, width].

// Rotates pairs (i, i + size/2) of the last axis of [.., tokens, size] by position *
// base^(-2i/size).
Tensor rotary(const Operand& x, double base = 10000);

// softmax(q k' / sqrt(size)) v of q [batch, heads, tokens, size] and k, v [batch, kv heads, ..]:
// each head of k and v serves heads / kv heads of q. Causal: no token sees a later one. A mask
// broadcasts to [batch, heads, tokens, keys]: bool says which keys a token sees, a float is added
// to the scaled scores. A token that sees nothing gives NaN.
Tensor attention(const Operand& q, const Operand& k, const Operand& v, bool causal,
                 const Tensor& mask = {});

struct AttentionOptions {
  int64_t kv_heads = 0;  // 0: as many as heads
  bool causal = true;
  double rotary_base = 0;  // 0: positions come from elsewhere
  double dropout = 0;      // of the result
  bool bias = true;
  Init weight_init = {};  // empty: Linear's
  Init out_init = {};     // of the last weight, where it differs
  DType dtype = DType::F32;
};
class MultiHeadAttention : public Module {
 public:
  MultiHeadAttention(Module* parent, std::string_view name, int64_t width, int64_t heads,
                     const AttentionOptions& options = {}, Location where = Location::current());
  Tensor operator()(const Tensor& x, Location where = Location::current()) const;
  // With a mask as attention() takes it.
  Tensor operator()(const Tensor& x, const Tensor& mask,
                    Location where = Location::current()) const;

  Linear qkv, out;  // rows of qkv: q, then k, then v, each head after head
  Dropout dropout;

 private:
  int64_t heads_, kv_heads_, size_;
  bool causal_;
  double rotary_base_;
};

struct MlpOptions {
  double dropout = 0;  // of the result
  bool bias = true;
  Init weight_init = {};  // empty: Linear's
  Init out_init = {};     // of the last weight, where it differs
  DType dtype = DType::F32;
};
// down(gelu(up(x))), with the tanh form of gelu.
class Mlp : public Module {
 public:
  Mlp(Module* parent, std::string_view name, int64_t width, int64_t hidden,
      const MlpOptions& options = {}, Location where = Location::current());
  Tensor operator()(const Tensor& x, Location where = Location::current()) const;

  Linear up, down;
  Dropout dropout;
};
// down(silu(gate(x)) * up(x))
class SwiGlu : public Module {
 public:
  SwiGlu(Module* parent, std::string_view name, int64_t width, int64_t hidden,
         const MlpOptions& options = {.bias = false}, Location where = Location::current());
  Tensor operator()(const Tensor& x, Location where = Location::current()) const;

  Linear gate, up, down;
  Dropout dropout;
};

// GPT-2 is the default; Llama has rms_norm, swiglu, rotary positions and no biases.
struct GptOptions {
  int64_t layers = 12, width = 768, heads = 12, vocabulary = 50257, block = 1024;
  int64_t kv_heads = 0;  // 0: as many as heads
  int64_t hidden = 0;    // 0: 4 * width
  double dropout = 0;
  bool bias = true, rms_norm = false, swiglu = false;
  double rotary_base = 0;   // 0: learned positions
  bool tied_head = true;    // logits are products with the rows of the embedding
  double deviation = 0.02;  // of the weights at the start
  DType dtype = DType::F32;
};

// x + attention(norm(x)), then x + mlp(norm(x)).
class TransformerBlock : public Module {
 public:
  TransformerBlock(Module* parent, std::string_view name, const GptOptions& options,
                   Location where = Location::current());
  Tensor operator()(const Tensor& x, Location where = Location::current()) const;

  Norm norm1;
  MultiHeadAttention attn;
  Norm norm2;
  std::optional<Mlp> mlp;  // one of the two
  std::optional<SwiGlu> swiglu;
};

// Tokens [batch, tokens] to logits [batch, tokens, vocabulary].
class Gpt : public Module {
 public:
  explicit Gpt(const GptOptions& options, Location where = Location::current())
      : Gpt(nullptr, "", options, where) {}
  Gpt(Module* parent, std::string_view name, const GptOptions& options,
      Location where = Location::current());
  Tensor operator()(const Tensor& tokens, Location where = Location::current()) const;

  Embedding embedding;
  std::optional<Embedding> position;
  Dropout dropout;
  List<TransformerBlock> blocks;
  Norm norm;
  std::optional<Linear> head;

 private:
  int64_t block_;
};

}  // namespace anneal::nn
