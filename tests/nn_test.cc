// Modules: paths, tying, buffers, modes, freezing, captures, what parameters start as, dropout.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "error_text.h"
#include "ir/graph.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

struct Block : nn::Module {
  Block(nn::Module* parent, std::string_view name, int64_t width)
      : Module(parent, name), norm(this, "norm", width), feed(this, "feed", width, width) {}
  Tensor operator()(const Tensor& x) const { return x + capture(feed(norm(x)), "inner"); }
  nn::LayerNorm norm;
  nn::Linear feed;
};

struct Model : nn::Module {
  nn::Embedding embedding{this, "embedding", 7, 4};
  nn::List<Block> blocks{this, "blocks"};
  nn::BatchNorm norm{this, "norm", 4};
  nn::Linear head{this, "head", 4, 7, {.bias = false, .tied_weight = embedding.weight}};
  Model() {
    blocks.add(4);
    blocks.add(4);
  }
  Tensor operator()(const Tensor& index) const {
    return head(norm(blocks[1](blocks[0](embedding(index)))));
  }
};

std::vector<std::string> names(const State& state) {
  std::vector<std::string> paths;
  for (const auto& [path, tensor] : state) paths.push_back(path);
  return paths;
}

struct Moments {
  double mean = 0, deviation = 0, lowest = 1e30, highest = -1e30;
};
Moments moments(const Tensor& tensor) {
  Moments m;
  const std::vector<double> values = tensor.to_vector<double>();
  for (double v : values) {
    m.mean += v / static_cast<double>(values.size());
    m.lowest = std::min(m.lowest, v);
    m.highest = std::max(m.highest, v);
  }
  for (double v : values)
    m.deviation += (v - m.mean) * (v - m.mean) / static_cast<double>(values.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

}  // namespace

TEST_CASE("nn: paths are names joined by dots, and a tied parameter is listed once") {
  Model model;
  const std::vector<std::string> expected{
      "embedding.weight",   "blocks.0.norm.weight", "blocks.0.norm.bias", "blocks.0.feed.weight",
      "blocks.0.feed.bias", "blocks.1.norm.weight", "blocks.1.norm.bias", "blocks.1.feed.weight",
      "blocks.1.feed.bias", "norm.weight",          "norm.bias",          "norm.running_mean",
      "norm.running_var",
  };
  CHECK(names(model.state()) == expected);
  CHECK(model.state()[1].second.name() == "blocks.0.norm.weight");
  CHECK(model.parameters().size() == expected.size() - 2);
  CHECK(model.parameters(optim::is_vector).size() == 8);
  // The gradient of a tied parameter is the sum over its uses.
  model.eval();
  Tensor index = tensor({1, 2});
  Tensor loss = sum(square(model(index)));
  Tensor both = grad(loss, {model.embedding.weight})[0];
  CHECK(model.head.weight.node() == model.embedding.weight.node());
  CHECK(sum(abs(both)).item() > 0);
}

TEST_CASE("nn: two names that are one, or no names, are errors") {
  struct Twice : nn::Module {
    nn::Linear a{this, "up", 2, 2}, b{this, "up", 2, 2};
  };
  CHECK(contains(error_of([] { Twice(); }), "\"up\" is used twice in the model"));
  nn::Linear alone{nullptr, "alone", 2, 3};
  CHECK(alone.weight.name() == "alone.weight");
  CHECK(contains(error_of([&] { nn::Linear(&alone, "a.b", 2, 2); }), "without dots"));
  CHECK(contains(error_of([&] { nn::Linear(&alone, "bias", 2, 2); }), "twice in \"alone\""));
  CHECK(contains(error_of([] {
                   nn::Linear table(nullptr, "t", 3, 4);
                   nn::Linear(nullptr, "h", 3, 5, {.tied_weight = table.weight});
                 }),
                 "the tied weight is [4, 3], but [5, 3] is needed"));
}

TEST_CASE("nn: errors name the layer and the user's line") {
  Model model;
  model.eval();
  const std::string text = error_of([&] { model.blocks[1](zeros({2, 5})); });
  CHECK(contains(text, "in layer \"blocks.1.norm\", nn_test.cc:"));
}

TEST_CASE("nn: train and eval reach all modules; a state that changes needs a step") {
  Model model;
  CHECK(model.blocks[1].training());
  model.eval();
  CHECK_FALSE(model.blocks[1].norm.training());
  model.train();
  CHECK(model.norm.training());
  CHECK(contains(error_of([&] { model(tensor({1, 2})); }), "no step is being built"));
}

TEST_CASE("nn: a module used twice in a step changes its state twice") {
  nn::BatchNorm norm(nullptr, "norm", 2);
  Step step;
  norm(full({4, 2}, 1.0));
  norm(full({4, 2}, 3.0));
  CHECK(step.updates().size() == 2);
  step.evaluate({});
  CHECK(norm.running_mean.to_vector<double>()[0] ==
        doctest::Approx(0.9 * 0.1 * 1 + 0.1 * 3).epsilon(1e-6));
}

TEST_CASE("nn: frozen parameters are passed over by optimizers") {
  Model model;
  model.blocks[0].freeze();
  model.freeze([](const nn::Parameter& p) { return p.path == "embedding.weight"; });
  CHECK(optim::Sgd(model).parameters().size() == model.parameters().size() - 5);
  model.unfreeze();
  CHECK(optim::Sgd(model).parameters().size() == model.parameters().size());
}

TEST_CASE("nn: a state goes from one model to another, and not to a different one") {
  seed(1);
  Model from, to;
  to.load(from.state());
  CHECK(to.blocks[1].feed.weight.to_vector() == from.blocks[1].feed.weight.to_vector());
  Tensor before = from.blocks[1].feed.weight;
  nn::Linear other(nullptr, "other", 4, 7);
  CHECK(contains(error_of([&] { to.load(other.state()); }), "another model's state"));
  State shorter = from.state();
  shorter.erase(shorter.begin(), shorter.begin() + 4);
  const std::string text = error_of([&] { to.load(shorter); });
  CHECK(contains(
      text, "\"embedding.weight\", \"blocks.0.norm.weight\" and 2 more not in the given state"));
  to.load(shorter, {.allow_missing = true});
  State wrong = from.state();
  wrong[0].second = zeros({7, 5});
  wrong[1].second = zeros({4}, DType::F16);
  CHECK(contains(error_of([&] { to.load(wrong); }),
                 "\"embedding.weight\" is f32[7, 4] here and f32[7, 5] there and 1 more"));
}

TEST_CASE("nn: captures hold activations and gradients by path, and cost nothing") {
  Model model;
  model.eval();
  Tensor index = tensor({1, 2});
  const Tensor plain = sum(model(index));
  nn::Captures captures;
  Tensor loss = sum(model(index));
  const NodeRef with = loss.node(), without = plain.node();
  CHECK(simplify_program({&with, 1}) == simplify_program({&without, 1}));  // the very same program
  const std::vector<std::string> expected{
      "embedding",     "blocks.0.norm",  "blocks.0.feed", "blocks.0.inner", "blocks.1.norm",
      "blocks.1.feed", "blocks.1.inner", "norm",          "head",
  };
  CHECK(names(captures.activations()) == expected);
  State gradients = captures.gradients(loss);
  CHECK(names(gradients) == expected);
  CHECK(gradients.back().second.to_vector() == std::vector<float>(14, 1));
  nn::Captures some([](std::string_view path) { return path == "head"; });
  model(index);
  model(index);
  CHECK(names(some.activations()) == std::vector<std::string>{"head", "head#1"});
}

TEST_CASE("nn: captures tell two calls of one layer apart") {
  nn::Module root;
  nn::Linear twice(&root, "twice", 2, 2);
  const Tensor x = tensor({1.f, -2.f}, {1, 2});
  nn::Captures captures;
  const Tensor first = twice(x), second = twice(x);
  const State gradients = captures.gradients(sum(first * first * second));
  CHECK(gradients[0].second.to_vector() == (2 * first * second).to_vector());
  CHECK(gradients[1].second.to_vector() == (first * first).to_vector());
}

TEST_CASE("nn: fans are PyTorch's") {
  CHECK(nn::fans({512, 784}).in == 784);
  CHECK(nn::fans({512, 784}).out == 512);
  CHECK(nn::fans({6, 2, 3, 5}).in == 2 * 15);
  CHECK(nn::fans({6, 2, 3, 5}).out == 6 * 15);
  CHECK_THROWS_AS(nn::fans({3}), UserError);
}

TEST_CASE("nn: parameters start as the init says") {
  using namespace nn::init;
  const Sizes sizes{200, 100};
  seed(3);
  auto check = [&](const nn::Init& init, double mean, double deviation, double bound) {
    const Moments m = moments(init(sizes, DType::F32));
    CHECK(m.mean == doctest::Approx(mean).scale(deviation + 1e-9).epsilon(0.03));
    CHECK(m.deviation == doctest::Approx(deviation).epsilon(0.03));
    CHECK(m.lowest >= mean - bound);
    CHECK(m.highest <= mean + bound);
  };
  const double root3 = std::sqrt(3.0);
  check(zeros(), 0, 0, 0);
  check(ones(), 1, 0, 0);
  check(uniform(-1, 3), 1, 2 / root3, 2);
  check(normal(2, 0.5), 2, 0.5, 3);
  check(kaiming_uniform(), 0, std::sqrt(2.0 / 100), std::sqrt(6.0 / 100));
  check(kaiming_uniform({.slope = std::sqrt(5.0)}), 0, 0.1 / root3, 0.1);
  check(kaiming_normal({.fan = Fan::Out}), 0, std::sqrt(2.0 / 200), 1);
  check(xavier_uniform(), 0, std::sqrt(2.0 / 300), std::sqrt(6.0 / 300));
  check(xavier_normal(2), 0, 2 * std::sqrt(2.0 / 300), 2);
  // The deviation of a standard normal cut off at -2 and 2 is 0.8796.
  check(trunc_normal(), 0, 0.8796, 2);
  check(trunc_normal(1, 0.02, 0.96, 1.04), 1, 0.02 * 0.8796, 0.04);
  CHECK(literal(tensor({1.0, 2.0}))({2}, DType::F32).to_vector() == std::vector<float>{1, 2});
  CHECK_THROWS_AS(literal(tensor({1.0, 2.0}))({3}, DType::F32), UserError);
}

TEST_CASE("nn: layers start as PyTorch's do, and the same after the same seed") {
  seed(4);
  nn::Linear linear(nullptr, "linear", 400, 100);
  CHECK(moments(linear.weight).highest == doctest::Approx(1 / std::sqrt(400.0)).epsilon(0.01));
  CHECK(moments(linear.bias).lowest == doctest::Approx(-1 / std::sqrt(400.0)).epsilon(0.1));
  nn::Conv2d conv(nullptr, "conv", 8, 64, 3, {.groups = 2});
  CHECK(moments(conv.weight).highest == doctest::Approx(1 / std::sqrt(36.0)).epsilon(0.01));
  nn::Embedding embedding(nullptr, "embedding", 100, 50);
  CHECK(moments(embedding.weight).deviation == doctest::Approx(1).epsilon(0.05));
  seed(4);
  nn::Linear again(nullptr, "again", 400, 100);
  CHECK(again.weight.to_vector() == linear.weight.to_vector());
  nn::Linear other(nullptr, "other", 400, 100);
  CHECK(other.weight.to_vector() != linear.weight.to_vector());
}

TEST_CASE("nn: dropout draws anew each time it runs, and goes on where it was saved") {
  seed(5);
  nn::Dropout dropout(nullptr, "dropout", 0.25), other(nullptr, "other", 0.25);
  Tensor x = ones({100, 100});
  Step step;
  Tensor first = dropout(x), second = dropout(x), elsewhere = other(x);
  auto run = [&] { return step.evaluate({first, second, elsewhere}); };
  const std::vector<uint32_t> saved = dropout.random.to_vector<uint32_t>();
  std::vector<Tensor> one = run(), two = run();
  const Moments m = moments(one[0]);
  CHECK(m.lowest == 0);
  CHECK(m.highest == doctest::Approx(1 / 0.75));
  CHECK(m.mean == doctest::Approx(1).epsilon(0.02));
  for (int i = 0; i < 3; ++i) CHECK(one[i].to_vector() != two[i].to_vector());
  CHECK(one[0].to_vector() != one[1].to_vector());
  CHECK(one[0].to_vector() != one[2].to_vector());
  CHECK(one[1].to_vector() != two[0].to_vector());
  load_state({{"random", dropout.random}}, {{"random", from_data(saved, {3})}});
  CHECK(run()[0].to_vector() == one[0].to_vector());
  // The gradient passes where the value did.
  Tensor gradient = grad(sum(first), {x})[0];
  std::vector<Tensor> both = evaluate({first, gradient});
  CHECK(both[0].to_vector() == both[1].to_vector());
  dropout.eval();
  CHECK(dropout(x).node() == x.node());
}

TEST_CASE("nn: a compiled step trains as an evaluated one, bit for bit") {
  struct Net : nn::Module {
    nn::Linear up{this, "up", 3, 8};
    nn::BatchNorm norm{this, "norm", 8};
    nn::Dropout dropout{this, "dropout", 0.5};
    nn::Linear down{this, "down", 8, 1};
    Tensor operator()(const Tensor& x) const { return down(dropout(relu(norm(up(x))))); }
  };
  const optim::AdamWOptions options{.lr = optim::warm_up(3, optim::cosine(0.05, 0, 20)),
                                    .gradients = {.clip_norm = 1, .skip_non_finite = true}};
  seed(7);
  Net replayed, evaluated;
  evaluated.load(replayed.state());
  optim::AdamW first(replayed, options), second(evaluated, options);
  optim::Ema average(replayed, 0.9);
  auto step = compile([&](const Tensor& x) {
    Tensor loss = mse_loss(replayed(x), x.sum(1, true));
    first.update(loss);
    average.update();
    return loss;
  });
  Tensor x = input("x", {16, 3});
  Step built;
  Tensor loss = mse_loss(evaluated(x), x.sum(1, true));
  second.update(loss);
  for (uint64_t i = 0; i < 8; ++i) {
    Tensor batch = Generator(100 + i).normal({16, 3}).realize();
    const float one = step(batch).item<float>();
    CHECK(one == built.evaluate({loss}, {.inputs = {{x, batch}}})[0].item<float>());
  }
  CHECK(step.plan_count() == 1);
  const State a = replayed.state(), b = evaluated.state();
  for (size_t i = 0; i < a.size(); ++i)
    CHECK_MESSAGE(a[i].second.to_vector() == b[i].second.to_vector(), a[i].first);
  CHECK(first.steps().item<int>() == 8);
}

TEST_CASE("nn: attention with a mask needs memory for its tokens, not for all pairs") {
  constexpr int64_t kTokens = 2048, kWidth = 16;
  seed(3);
  Tensor q = parameter("q", randn({1, 1, kTokens, kWidth})),
         k = parameter("k", randn({1, 1, kTokens, kWidth})),
         v = parameter("v", randn({1, 1, kTokens, kWidth}));
  Tensor seen = (arange(kTokens) % 3 != 1).realize();
  Tensor bias = randn({kTokens}).realize();
  auto bytes = [&](const Tensor& mask) {
    const Tensor mixed = nn::attention(q, k, v, true, mask);
    std::vector<Tensor> all = grad(sum(mixed * mixed), {q, k, v});
    all.push_back(mixed);
    const int64_t before = counters().bytes_allocated;
    evaluate(all);
    return counters().bytes_allocated - before;
  };
  const int64_t pairs = kTokens * kTokens * 4;
  for (const Tensor& mask : {Tensor(), seen, bias}) CHECK(bytes(mask) < pairs / 2);
}

TEST_CASE("nn: an attention layer takes a mask, and says what masks are") {
  seed(4);
  nn::MultiHeadAttention layer(nullptr, "attn", 8, 4, {.kv_heads = 2, .causal = false});
  layer.eval();
  Tensor x = randn({2, 5, 8}).realize();
  // What is not seen does not matter.
  Tensor seen = tensor({true, true, true, true, false});
  Tensor cut = slice(x, {{}, {.end = 4}});
  const std::vector<float> masked = slice(layer(x, seen), {{}, {.end = 4}}).to_vector(),
                           plain = layer(cut).to_vector();
  REQUIRE(masked.size() == plain.size());
  for (size_t i = 0; i < plain.size(); ++i) CHECK(masked[i] == doctest::Approx(plain[i]));
  CHECK(contains(error_of([&] { layer(x, zeros({5, 4})); }),
                 "the mask is [5, 4], the scores are [2, 4, 5, 5]"));
  CHECK(
      contains(error_of([&] { layer(x, zeros({1, 2, 4, 5, 5})); }), "the mask is [1, 2, 4, 5, 5]"));
  CHECK(contains(error_of([&] { layer(x, zeros({5, 5}, DType::I32)); }), "the mask is i32"));
}

TEST_CASE("nn: a model that is only structure has no memory") {
  nn::StructureOnly structure;
  nn::Gpt gpt({.layers = 2});
  CHECK(current_graph().stored(gpt.embedding.weight.node()) == nullptr);
  Tensor logits = gpt(input("tokens", {8, 1024}, DType::I32));
  CHECK(to_text(logits.shape()) == "[8, 1024, 50257]");
  CHECK(gpt.parameters()[2].path == "blocks.0.norm1.bias");
}

TEST_CASE("nn: models serve symbolic batches and lengths") {
  seed(6);
  nn::Gpt gpt({.layers = 1, .width = 8, .heads = 2, .vocabulary = 5, .block = 6});
  Variable batch("batch", 1, 8), count("count", 1, 6);
  Tensor tokens = input("tokens", {batch, count}, DType::I32);
  Tensor loss = sum(gpt(tokens));
  Tensor gradient = grad(loss, {gpt.position->weight})[0];
  Tensor some = tensor({1, 2, 3, 4, 0, 1}, {2, 3});
  Bindings bindings{{{batch, 2}, {count, 3}}, {{tokens, some}}};
  const std::vector<double> symbolic = evaluate({gradient}, bindings)[0].to_vector<double>();
  const std::vector<double> plain =
      grad(sum(gpt(some)), {gpt.position->weight})[0].to_vector<double>();
  for (size_t i = 0; i < plain.size(); ++i)
    CHECK(symbolic[i] == doctest::Approx(plain[i]).epsilon(1e-4));
}
