// Attention and what is built around it.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <anneal/nn.h>

#include "nn/module_call.h"
#include "tensor/lift.h"
#include "tensor/number_checks.h"
#include "tensor/wide.h"

namespace anneal::nn {
namespace {

LinearOptions linear_options(bool bias, const Init& weight, const Init& out, DType dtype) {
  return {.bias = bias,
          .weight_init = out ? out : weight,
          .bias_init = weight || out ? init::zeros() : Init(),
          .dtype = dtype};
}

template <typename Options>
LinearOptions inner(const Options& o) {
  return linear_options(o.bias, o.weight_init, {}, o.dtype);
}
template <typename Options>
LinearOptions last(const Options& o) {
  return linear_options(o.bias, o.weight_init, o.out_init, o.dtype);
}

// [batch, tokens, heads * size] to [batch, heads, tokens, size]
Tensor split_heads(const Tensor& x, int64_t heads, int64_t size) {
  return x.reshape({x.dim(0), x.dim(1), heads, size}).permute({0, 2, 1, 3});
}

void check_heads(int64_t width, int64_t heads, int64_t kv_heads) {
  if (heads < 1 || width % heads != 0)
    fail(fmt::format("a width of {} does not divide into {} heads", width, heads),
         "choose a number of heads that divides the width");
  if (kv_heads < 1 || heads % kv_heads != 0)
    fail(fmt::format("{} heads cannot share {} heads of keys and values", heads, kv_heads),
         "choose kv_heads that divide heads");
}

int64_t checked_head_size(int64_t width, int64_t heads, int64_t kv_heads, Location where) {
  CallScope call("attention", where);
  check_heads(width, heads, kv_heads);
  return width / heads;
}

int64_t kv_heads_of(int64_t heads, const AttentionOptions& o) {
  return o.kv_heads ? o.kv_heads : heads;
}

}  // namespace

Tensor rotary(const Operand& x, double base) {
  CallScope call("rotary", x.where());
  const Tensor v = widen(x);
  if (v.rank() < 2 || !v.dim(-1).is_static() || v.dim(-1).value() % 2 != 0)
    fail(fmt::format("x is {}", to_text(v.shape())),
         "give [.., tokens, size] with a size that is even");
  check_above_zero("the base", base);
  const int64_t half = v.dim(-1).value() / 2;
  // base^(-i/half) = 2^(-i log2(base) / half)
  Tensor frequency =
      exp2(cast(literal_arange(half), v.dtype()) * (-std::log2(base) / static_cast<double>(half)));
  Tensor angle = cast(literal_arange(v.dim(-2)), v.dtype()).unsqueeze(-1) * frequency;
  std::vector<Tensor> parts = chunk(v, 2, -1);
  Tensor c = cos(angle), s = sin(angle);
  return cast(concat({parts[0] * c - parts[1] * s, parts[1] * c + parts[0] * s}, -1),
              real_dtype(x));
}

namespace {

// The scores [batch, heads, tokens, keys], or with heads split into those that share keys.
Tensor masked(const Tensor& scores, const Tensor& mask, const Sizes& full, int64_t shared) {
  const Sizes given = mask.shape();
  bool fits = given.size() <= full.size();
  Sizes sizes(full.size() - std::min(given.size(), full.size()), 1);
  sizes.insert(sizes.end(), given.begin(), given.end());
  for (size_t i = 0; fits && i < full.size(); ++i) fits = sizes[i] == full[i] || sizes[i] == Dim(1);
  if (!fits)
    fail(fmt::format("the mask is {}, the scores are {}", to_text(given), to_text(full)),
         "sizes of a mask are those of [batch, heads, tokens, keys] or 1");
  if (is_int(mask.dtype()))
    fail(fmt::format("the mask is {}", name(mask.dtype())),
         "give bools that say what is seen, or floats to add to the scores");
  if (scores.rank() > full.size()) {
    const bool one = sizes[1] == Dim(1);
    sizes[1] = one ? Dim(1) : sizes[1] / shared;
    sizes.insert(sizes.begin() + 1, one ? Dim(1) : Dim(shared));
  }
  const Tensor fitted = reshape(mask, sizes);
  if (mask.dtype() == DType::Bool)
    return where(fitted, scores, -std::numeric_limits<double>::infinity());
  return scores + cast(fitted, scores.dtype());
}

}  // namespace

Tensor attention(const Operand& q, const Operand& k, const Operand& v, bool causal,
                 const Tensor& mask) {
  CallScope call("attention", q.where());
  const Tensor query = wrap(node_of(q)), key = wrap(node_of(k)), value = wrap(node_of(v));
  for (const Tensor& t : {query, key, value})
    if (t.rank() != 4)
      fail(fmt::format("q, k and v are {}, {} and {}", to_text(query.shape()), to_text(key.shape()),
                       to_text(value.shape())),
           "give each the shape [batch, heads, tokens, size]");
  const Dim batch = query.dim(0), tokens = query.dim(2), seen = key.dim(2), size = query.dim(3);
  const int64_t heads = query.dim(1).value(), shared = key.dim(1).value();
  check_heads(heads, heads, shared);
  const double scale = 1 / std::sqrt(static_cast<double>(size.value()));
  // Heads that share keys and values are an axis of their own, along which those repeat.
  auto grouped = [&](const Tensor& t) {
    return shared == heads ? t : t.reshape({t.dim(0), shared, -1, t.dim(2), t.dim(3)});
  };
  Tensor scores = matmul(grouped(query), transpose(grouped(key))) * scale;
  if (causal)
    scores = where(tril(literal(DType::Bool, 1, {tokens, seen})), scores,
                   -std::numeric_limits<double>::infinity());
  if (mask.defined()) scores = masked(scores, mask, {batch, heads, tokens, seen}, shared);
  return matmul(softmax(scores), grouped(value)).reshape({batch, heads, tokens, value.dim(3)});
}

MultiHeadAttention::MultiHeadAttention(Module* parent, std::string_view name, int64_t width,
                                       int64_t heads, const AttentionOptions& o, Location where)
    : Module(parent, name, where),
      qkv(this, "qkv", width,
          width + 2 * kv_heads_of(heads, o) *
                      checked_head_size(width, heads, kv_heads_of(heads, o), where),
          inner(o), where),
      out(this, "out", width, width, last(o), where),
      dropout(this, "dropout", o.dropout, where),
      heads_(heads),
      kv_heads_(kv_heads_of(heads, o)),
      size_(width / heads),
      causal_(o.causal),
      rotary_base_(o.rotary_base) {}

Tensor MultiHeadAttention::operator()(const Tensor& x, Location where) const {
  return (*this)(x, Tensor(), where);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const Tensor& mask, Location where) const {
  ModuleCall call("attention", *this, where);
  std::vector<Tensor> parts =
      split(qkv(x), {heads_ * size_, kv_heads_ * size_, kv_heads_ * size_}, -1);
  Tensor q = split_heads(parts[0], heads_, size_), k = split_heads(parts[1], kv_heads_, size_),
         v = split_heads(parts[2], kv_heads_, size_);
  if (rotary_base_ > 0) {
    q = rotary(q, rotary_base_);
    k = rotary(k, rotary_base_);
  }
  Tensor mixed = attention(q, k, v, causal_, mask).permute({0, 2, 1, 3}).reshape(x.shape());
  return capture(dropout(out(mixed)));
}

Mlp::Mlp(Module* parent, std::string_view name, int64_t width, int64_t hidden, const MlpOptions& o,
         Location where)
    : Module(parent, name, where),
      up(this, "up", width, hidden, inner(o), where),
      down(this, "down", hidden, width, last(o), where),
      dropout(this, "dropout", o.dropout, where) {}

Tensor Mlp::operator()(const Tensor& x, Location where) const {
  ModuleCall call("mlp", *this, where);
  return capture(dropout(down(gelu_tanh(up(x)))));
}

SwiGlu::SwiGlu(Module* parent, std::string_view name, int64_t width, int64_t hidden,
               const MlpOptions& o, Location where)
    : Module(parent, name, where),
      gate(this, "gate", width, hidden, inner(o), where),
      up(this, "up", width, hidden, inner(o), where),
      down(this, "down", hidden, width, last(o), where),
      dropout(this, "dropout", o.dropout, where) {}

Tensor SwiGlu::operator()(const Tensor& x, Location where) const {
  ModuleCall call("swiglu", *this, where);
  return capture(dropout(down(silu(gate(x)) * up(x))));
}

// ---- GPT

namespace {

Norm::Kind norm_kind(const GptOptions& o) {
  return o.rms_norm ? Norm::Kind::Rms : Norm::Kind::Layer;
}
NormOptions norm_options(const GptOptions& o) {
  return {.epsilon = o.rms_norm ? 1e-6 : 1e-5, .bias = o.bias, .dtype = o.dtype};
}
// The variance of a sum of 2 * layers residuals stays that of one.
Init residual_init(const GptOptions& o) {
  return init::normal(0, o.deviation / std::sqrt(2.0 * static_cast<double>(o.layers)));
}
AttentionOptions attention_options(const GptOptions& o) {
  return {.kv_heads = o.kv_heads,
          .rotary_base = o.rotary_base,
          .dropout = o.dropout,
          .bias = o.bias,
          .weight_init = init::normal(0, o.deviation),
          .out_init = residual_init(o),
          .dtype = o.dtype};
}
MlpOptions mlp_options(const GptOptions& o) {
  return {.dropout = o.dropout,
          .bias = o.bias,
          .weight_init = init::normal(0, o.deviation),
          .out_init = residual_init(o),
          .dtype = o.dtype};
}
EmbeddingOptions embedding_options(const GptOptions& o) {
  return {init::normal(0, o.deviation), o.dtype};
}

}  // namespace

TransformerBlock::TransformerBlock(Module* parent, std::string_view name, const GptOptions& o,
                                   Location where)
    : Module(parent, name, where),
      norm1(this, "norm1", norm_kind(o), o.width, norm_options(o), where),
      attn(this, "attn", o.width, o.heads, attention_options(o), where),
      norm2(this, "norm2", norm_kind(o), o.width, norm_options(o), where) {
  const int64_t hidden = o.hidden ? o.hidden : 4 * o.width;
  if (o.swiglu)
    swiglu.emplace(this, "mlp", o.width, hidden, mlp_options(o), where);
  else
    mlp.emplace(this, "mlp", o.width, hidden, mlp_options(o), where);
}

Tensor TransformerBlock::operator()(const Tensor& x, Location where) const {
  ModuleCall call("transformer block", *this, where);
  Tensor h = x + attn(norm1(x));
  return capture(h + (mlp ? (*mlp)(norm2(h)) : (*swiglu)(norm2(h))));
}

Gpt::Gpt(Module* parent, std::string_view name, const GptOptions& o, Location where)
    : Module(parent, name, where),
      embedding(this, "embedding", o.vocabulary, o.width, embedding_options(o), where),
      dropout(this, "dropout", o.dropout, where),
      blocks(this, "blocks", where),
      norm(this, "norm", norm_kind(o), o.width, norm_options(o), where),
      block_(o.block) {
  if (o.rotary_base == 0)
    position.emplace(this, "position", o.block, o.width, embedding_options(o), where);
  for (int64_t i = 0; i < o.layers; ++i) blocks.add(o, where);
  if (!o.tied_head)
    head.emplace(
        this, "head", o.width, o.vocabulary,
        LinearOptions{.bias = false, .weight_init = init::normal(0, o.deviation), .dtype = o.dtype},
        where);
}

Tensor Gpt::operator()(const Tensor& tokens, Location where) const {
  ModuleCall call("gpt", *this, where);
  const Dim count = tokens.dim(-1);
  if (tokens.rank() != 2 || count.max() > block_)
    fail(fmt::format("tokens are {}, at most {} at a time", to_text(tokens.shape()), block_),
         "give [batch, tokens], and build the model with a larger block for longer texts");
  Tensor x = embedding(tokens);
  if (position) x = x + slice(position->weight, {{0, count}});
  x = dropout(x);
  for (size_t i = 0; i < blocks.size(); ++i) x = blocks[i](x);
  x = norm(x);
  return capture(head ? (*head)(x)
                      : matmul(for_compute(x), transpose(for_compute(embedding.weight))));
}

}  // namespace anneal::nn
