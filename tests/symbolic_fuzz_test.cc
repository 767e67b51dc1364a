// Random index expressions and random chains of movement ops, against brute force. Every failure
// prints the seed and the expression; the same seed gives the same run. Long because it holds two
// generators and an evaluator that shares no code with the simplifier.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/checked.h"
#include "ir/build.h"
#include "ir/index.h"
#include "ir/interpreter.h"
#include "ir/node_map.h"
#include "ir/print.h"
#include "symbolic/bounds.h"
#include "symbolic/index_map.h"
#include "symbolic/limits.h"
#include "symbolic/prove.h"
#include "symbolic/simplify.h"

using namespace anneal;

namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t between(int64_t min, int64_t max) {
    return min + static_cast<int64_t>(engine_() % static_cast<uint64_t>(max - min + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  template <typename T>
  const T& pick(const std::vector<T>& items) {
    return items[static_cast<size_t>(between(0, static_cast<int64_t>(items.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

// ---- expressions

constexpr int64_t kMostPoints = 500;

struct Domain {
  std::vector<NodeRef> variables;
  std::vector<std::vector<int64_t>> values;  // of each variable at each point
  size_t points = 1;
};

Domain random_domain(Random& random) {
  Domain domain;
  int64_t count = random.between(1, 4), points = 1;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (int64_t i = 0; i < count; ++i) {
    int64_t min = random.chance(50)   ? 0
                  : random.chance(40) ? random.between(1, 3)
                                      : random.between(-9, 5);
    int64_t max = min + random.between(0, random.chance(30) ? 23 : 7);
    if (points * (max - min + 1) > kMostPoints) max = min + kMostPoints / points - 1;
    points *= max - min + 1;
    ranges.push_back({min, max});
    domain.variables.push_back(make_variable(fmt::format("v{}", i), min, max));
  }
  domain.points = static_cast<size_t>(points);
  int64_t repeat = 1;
  for (auto [min, max] : ranges) {
    std::vector<int64_t>& values = domain.values.emplace_back();
    for (int64_t p = 0; p < points; ++p) values.push_back(min + p / repeat % (max - min + 1));
    repeat *= max - min + 1;
  }
  return domain;
}

// Builds with plain make(), so that nothing is simplified on the way.
class Generator {
 public:
  Generator(Random& random, const Domain& domain) : random_(random), domain_(domain) {}

  NodeRef value(int depth) {
    if (depth <= 0 || random_.chance(10)) return leaf();
    switch (random_.between(0, 11)) {
      case 0:
      case 1:
      case 2: return make(Op::Add, {value(depth - 1), value(depth - 1)});
      case 3:
      case 4: return make(Op::Mul, {value(depth - 1), number(-12, 12)});
      case 5: return make(Op::Mul, {value(depth - 1), value(std::min(1, depth - 1))});
      case 6:
      case 7: return make(Op::FloorDiv, {value(depth - 1), divisor()});
      case 8:
      case 9: return make(Op::Mod, {value(depth - 1), divisor()});
      case 10:
        return make(random_.chance(50) ? Op::Max : Op::Min, {value(depth - 1), value(depth - 1)});
      default: return make(Op::Where, {condition(depth - 1), value(depth - 1), value(depth - 1)});
    }
  }

  // As index arithmetic comes from movement ops: sums of scaled digits, divided again.
  NodeRef position(int depth) {
    static const std::vector<int64_t> kSizes{2, 3, 4, 6, 8, 12, 24};
    auto size = [&] { return index_const(random_.pick(kSizes)); };
    if (depth <= 0) return random_.chance(90) ? random_.pick(domain_.variables) : number(-5, 25);
    switch (random_.between(0, 6)) {
      case 0:
      case 1:
        return make(Op::Add, {make(Op::Mul, {position(depth - 1), size()}), position(depth - 1)});
      case 2:
        return make(Op::FloorDiv, {position(depth - 1), random_.chance(20) ? divisor() : size()});
      case 3: return make(Op::Mod, {position(depth - 1), random_.chance(20) ? divisor() : size()});
      case 4: return make(Op::Add, {position(depth - 1), number(-3, 12)});
      case 5:
        return make(Op::Add,
                    {number(0, 23), make(Op::Mul, {position(depth - 1), index_const(-1)})});
      default: {
        const int64_t b = random_.pick(kSizes), a = random_.pick(kSizes);
        return digits(position(depth - 1), a, b);
      }
    }
  }

  // The same with sizes that are not known, under the limits of limited_domain().
  NodeRef symbolic_position(int depth) {
    NodeRef n = domain_.variables[0], m = domain_.variables[1];
    const std::vector<NodeRef> sizes{n,
                                     m,
                                     make(Op::Mul, {n, m}),
                                     make(Op::Mul, {n, index_const(4)}),
                                     make(Op::Add, {m, index_const(2)}),
                                     index_const(3)};
    auto size = [&] { return random_.pick(sizes); };
    auto part = [&] { return symbolic_position(depth - 1); };
    if (depth <= 0) return random_.chance(80) ? random_.pick(domain_.variables) : number(-2, 5);
    switch (random_.between(0, 7)) {
      case 0:
      case 1:
      case 2: return make(Op::Add, {make(Op::Mul, {part(), size()}), part()});
      case 3: return make(Op::FloorDiv, {part(), size()});
      case 4: return make(Op::Mod, {part(), size()});
      case 5:
        return make(Op::Add, {make(Op::Add, {size(), index_const(-1)}),
                              make(Op::Mul, {part(), index_const(-1)})});
      case 6: return make(Op::Max, {part(), part()});
      default:
        return make(Op::Where,
                    {make(random_.chance(50) ? Op::Lt : Op::Le, {part(), size()}), part(), part()});
    }
  }

  // x written in digits, some of which may be left out.
  NodeRef digits(NodeRef x, int64_t a, int64_t b) {
    NodeRef low = make(Op::Mod, {x, index_const(a)}),
            rest = make(Op::FloorDiv, {x, index_const(a)});
    NodeRef middle = make(Op::Mod, {rest, index_const(b)});
    NodeRef high = make(Op::FloorDiv, {x, index_const(a * b)});
    NodeRef sum = random_.chance(80) ? low : rest;
    if (random_.chance(80)) sum = make(Op::Add, {make(Op::Mul, {middle, index_const(a)}), sum});
    if (random_.chance(80)) sum = make(Op::Add, {sum, make(Op::Mul, {high, index_const(a * b)})});
    return sum;
  }

  NodeRef condition(int depth) {
    switch (depth < 2 ? random_.between(0, 3) : random_.between(0, 8)) {
      case 0: return make(Op::Le, {value(depth - 1), value(depth - 1)});
      case 1: return make(Op::Lt, {value(depth - 1), number(-9, 30)});
      case 2: return make(Op::Lt, {value(depth - 1), value(depth - 1)});
      case 3: return make(Op::Eq, {value(depth - 1), value(depth - 1)});
      case 4:
      case 5: return make(Op::And, {condition(depth - 1), condition(depth - 1)});
      case 6: return make(Op::Or, {condition(depth - 1), condition(depth - 1)});
      case 7: return make(Op::Xor, {condition(depth - 1), make_const(DType::Bool, 1)});
      default: return make(Op::Xor, {condition(depth - 1), condition(depth - 1)});
    }
  }

 private:
  NodeRef number(int64_t min, int64_t max) {
    // Now and then one that makes sums and products overflow: they must be left alone.
    if (random_.between(0, 499) == 0)
      return index_const((int64_t{1} << 61) * random_.between(-3, 3));
    return index_const(random_.between(min, max));
  }

  NodeRef leaf() { return random_.chance(25) ? number(-12, 12) : random_.pick(domain_.variables); }

  NodeRef divisor() {
    if (random_.chance(25)) {
      NodeRef candidate = random_.pick(domain_.variables);
      if (candidate->arg.symbol->first > 0)
        return random_.chance(30) ? make(Op::Mul, {candidate, number(1, 4)}) : candidate;
    }
    int64_t size = random_.between(1, 12);
    return index_const(random_.chance(15) ? -size : size);
  }

  Random& random_;
  const Domain& domain_;
};

// The values of every node below the roots, one vector a node over all points of the domain.
class Evaluator {
 public:
  Evaluator(std::span<const NodeRef> roots, const Domain& domain)
      : order_(topological_order(roots)),
        values_(order_.size() * domain.points),
        points_(domain.points) {
    for (size_t i = 0; i < order_.size(); ++i) {
      place_[order_[i]] = i;
      compute(order_[i], domain, &values_[i * points_]);
    }
  }

  const std::vector<NodeRef>& order() const { return order_; }
  std::span<const int64_t> of(NodeRef node) const {
    return {&values_[*place_.find(node) * points_], points_};
  }

 private:
  void compute(NodeRef node, const Domain& domain, int64_t* out) const {
    auto source = [&](size_t i) { return of(node->source(i)).data(); };
    auto each = [&](auto f) {
      const int64_t *a = source(0), *b = source(1);
      for (size_t p = 0; p < points_; ++p) out[p] = f(a[p], b[p]);
    };
    auto wrap = [](uint64_t v) { return static_cast<int64_t>(v); };
    using U = uint64_t;
    switch (node->op) {
      case Op::Const: std::fill_n(out, points_, static_cast<int64_t>(node->arg.bits)); return;
      case Op::Variable:
        for (size_t v = 0; v < domain.variables.size(); ++v)
          if (domain.variables[v] == node) std::copy_n(domain.values[v].data(), points_, out);
        return;
      case Op::Add: return each([&](int64_t a, int64_t b) { return wrap(U(a) + U(b)); });
      case Op::Mul: return each([&](int64_t a, int64_t b) { return wrap(U(a) * U(b)); });
      case Op::FloorDiv: return each([](int64_t a, int64_t b) { return b ? floor_div(a, b) : 0; });
      case Op::Mod: return each([](int64_t a, int64_t b) { return b ? floor_mod(a, b) : 0; });
      case Op::Max: return each([](int64_t a, int64_t b) { return std::max(a, b); });
      case Op::Min: return each([](int64_t a, int64_t b) { return std::min(a, b); });
      case Op::Lt: return each([](int64_t a, int64_t b) { return int64_t{a < b}; });
      case Op::Le: return each([](int64_t a, int64_t b) { return int64_t{a <= b}; });
      case Op::Eq: return each([](int64_t a, int64_t b) { return int64_t{a == b}; });
      case Op::And: return each([](int64_t a, int64_t b) { return a & b; });
      case Op::Or: return each([](int64_t a, int64_t b) { return a | b; });
      case Op::Xor: return each([](int64_t a, int64_t b) { return a ^ b; });
      case Op::Where: {
        const int64_t *a = source(0), *b = source(1), *c = source(2);
        for (size_t p = 0; p < points_; ++p) out[p] = a[p] ? b[p] : c[p];
        return;
      }
      default: FAIL("an op that is no part of index expressions");
    }
  }

  std::vector<NodeRef> order_;
  std::vector<int64_t> values_;
  NodeMap<size_t> place_;
  size_t points_;
};

std::string describe(uint64_t seed, const Domain& domain, NodeRef before, NodeRef after) {
  std::string text = fmt::format("seed {}:", seed);
  for (NodeRef v : domain.variables)
    text += fmt::format(" {} in {}..{}", v->arg.symbol->text(), v->arg.symbol->first,
                        v->arg.symbol->second);
  return text + "\n  before: " + to_text(before) + "\n  after:  " + to_text(after);
}

// What is wrong with the simplification of an expression, or nothing.
std::optional<std::string> check_expression(uint64_t seed, const Domain& domain, NodeRef before,
                                            int64_t* shortened) {
  NodeRef after = simplify(before);
  auto wrong = [&](const std::string& what) {
    return what + ", " + describe(seed, domain, before, after);
  };

  if (tree_size(after) > tree_size(before)) return wrong("grew");
  if (simplify(after) != after) return wrong("simplifies further");
  *shortened += tree_size(after) < tree_size(before);
  std::array<NodeRef, 2> roots{before, after};
  Evaluator values(roots, domain);
  if (!std::ranges::equal(values.of(before), values.of(after))) return wrong("value changed");
  for (NodeRef node : values.order()) {
    auto [least, most] = std::ranges::minmax(values.of(node));
    Interval range = bounds(node);
    if (cannot_overflow(node) && (least < range.min || most > range.max))
      return wrong(fmt::format("bounds {}..{} of {} do not hold {}..{}", range.min, range.max,
                               to_text(node), least, most));
  }
  return std::nullopt;
}

std::optional<std::string> check_any(uint64_t seed, int64_t* shortened) {
  Random random(seed);
  Domain domain = random_domain(random);
  Generator generator(random, domain);
  int depth = static_cast<int>(random.between(2, 6));
  int64_t kind = random.between(0, 3);
  NodeRef before = kind == 0   ? generator.condition(depth)
                   : kind == 1 ? generator.position(std::min(depth, 4))
                               : generator.value(depth);
  return check_expression(seed, domain, before, shortened);
}

// Sizes n and m, coordinates p < n, q < m and r < n * m, and a plain one.
Domain limited_domain() {
  Domain domain;
  domain.variables = {make_variable("n", 1, 3), make_variable("m", 1, 3), make_variable("p", 0, 2),
                      make_variable("q", 0, 2), make_variable("r", 0, 8), make_variable("a", 0, 2)};
  domain.values.resize(domain.variables.size());
  domain.points = 0;
  for (int64_t n = 1; n <= 3; ++n)
    for (int64_t m = 1; m <= 3; ++m)
      for (int64_t at = 0; at < n * m * n * m * 3; ++at) {
        const int64_t point[] = {
            n, m, at % n, at / n % m, at / (n * m) % (n * m), at / (n * m * n * m)};
        for (size_t v = 0; v < domain.values.size(); ++v) domain.values[v].push_back(point[v]);
        ++domain.points;
      }
  return domain;
}

}  // namespace

TEST_CASE("symbolic: 20,000 random expressions under limits keep their value") {
  constexpr uint64_t kSeed = 31000000, kCount = 20000;
  int64_t shortened = 0;
  Graph graph;
  GraphScope scope(graph);
  Domain domain = limited_domain();
  const std::vector<NodeRef>& v = domain.variables;
  std::vector<Limit> limits{{v[2], v[0]}, {v[3], v[1]}, {v[4], index_mul(v[0], v[1])}};
  LimitScope limited(limits);
  for (uint64_t i = 0; i < kCount; ++i) {
    Random random(kSeed + i);
    Generator generator(random, domain);
    NodeRef before = generator.symbolic_position(static_cast<int>(random.between(2, 4)));
    std::optional<std::string> problem = check_expression(kSeed + i, domain, before, &shortened);
    if (problem) FAIL(*problem);
  }
  CHECK(shortened > static_cast<int64_t>(kCount) / 2);
}

// No guard at the end keeps the input: each rule by itself refuses to make its node longer.
TEST_CASE("symbolic: 100,000 random expressions keep their value, never grow, stay simplified") {
  constexpr uint64_t kSeed = 20240601, kCount = 100000, kPerGraph = 2000;
  int64_t shortened = 0;
  std::optional<Graph> graph;
  std::optional<GraphScope> scope;
  for (uint64_t i = 0; i < kCount; ++i) {
    if (i % kPerGraph == 0) {
      scope.reset();
      graph.emplace();
      scope.emplace(*graph);
    }
    std::optional<std::string> problem = check_any(kSeed + i, &shortened);
    if (problem) FAIL(*problem);
  }
  CHECK(shortened > static_cast<int64_t>(kCount) / 2);
}

// ---- chains of movement ops

namespace {

// A chain under construction. Every size is known as a list of factors, so that symbolic axes can
// be merged and split too.
class Chain {
 public:
  Chain(Random& random, bool symbolic) : random_(random) {
    if (symbolic) sizes_ = {make_variable("n", 2, 5), make_variable("m", 1, 4)};
    int64_t rank = random.between(1, 4);
    for (int64_t axis = 0; axis < rank; ++axis) axes_.push_back({size()});
    node_ = source_ = make_buffer("source", new_buffer_slot(), DType::I32, dims());
  }

  NodeRef node() const { return node_; }
  NodeRef source() const { return source_; }
  const std::vector<NodeRef>& sizes() const { return sizes_; }

  void extend() {
    switch (random_.between(0, 6)) {
      case 0: return merge();
      case 1: return split();
      case 2: return permute();
      case 3: return flip();
      case 4: return pad();
      case 5: return shrink();
      default: return repeat();
    }
  }

 private:
  using Factors = std::vector<NodeRef>;

  NodeRef size() {
    if (!sizes_.empty() && random_.chance(50)) return random_.pick(sizes_);
    return index_const(random_.between(1, 6));
  }
  std::vector<NodeRef> dims() const {
    std::vector<NodeRef> result;
    for (const Factors& factors : axes_) result.push_back(element_count_expr(factors));
    return result;
  }
  size_t any_axis() {
    return static_cast<size_t>(random_.between(0, static_cast<int64_t>(axes_.size()) - 1));
  }
  bool is_large() const {
    Interval count = bounds(element_count_expr(dims()));
    return count.max > 1500;
  }

  void reshape() { node_ = make_tail(Op::Reshape, node_, dims()); }

  void merge() {
    do {
      if (axes_.size() < 2) break;
      size_t axis = static_cast<size_t>(random_.between(0, static_cast<int64_t>(axes_.size()) - 2));
      axes_[axis].insert(axes_[axis].end(), axes_[axis + 1].begin(), axes_[axis + 1].end());
      axes_.erase(axes_.begin() + static_cast<long>(axis) + 1);
    } while (random_.chance(50));
    reshape();
  }

  void split() {
    if (axes_.size() >= 4) return;
    size_t axis = any_axis();
    Factors& factors = axes_[axis];
    // A number may be split anew, so that 2 * 6 becomes 3 * 4.
    int64_t number = 1;
    for (NodeRef f : factors) number *= is_static(f) ? static_value(f) : 1;
    std::erase_if(factors, [](NodeRef f) { return is_static(f); });
    for (int64_t f :
         random_.chance(50) ? std::vector<int64_t>{2, 3, 2} : std::vector<int64_t>{3, 4, 2}) {
      if (number % f != 0) continue;
      factors.push_back(index_const(f));
      number /= f;
    }
    if (number > 1) factors.insert(factors.begin(), index_const(number));
    long cut = random_.between(0, static_cast<int64_t>(factors.size()));
    Factors head(factors.begin(), factors.begin() + cut);
    factors.erase(factors.begin(), factors.begin() + cut);
    axes_.insert(axes_.begin() + static_cast<long>(axis), head);
    reshape();
  }

  void permute() {
    std::vector<int64_t> order;
    for (size_t i = 0; i < axes_.size(); ++i)
      order.insert(order.begin() + random_.between(0, static_cast<int64_t>(i)),
                   static_cast<int64_t>(i));
    std::vector<Factors> permuted;
    for (int64_t axis : order) permuted.push_back(axes_[static_cast<size_t>(axis)]);
    axes_ = permuted;
    node_ = make_axes(Op::Permute, node_, order);
  }

  void flip() {
    int64_t axis = static_cast<int64_t>(any_axis());
    node_ = make_axes(Op::Flip, node_, {&axis, 1});
  }

  void pad() {
    if (is_large()) return;
    std::vector<NodeRef> pairs(2 * axes_.size(), index_const(0));
    size_t axis = any_axis();
    pairs[2 * axis] = index_const(random_.between(0, 2));
    pairs[2 * axis + 1] =
        random_.chance(80) || sizes_.empty() ? index_const(random_.between(0, 2)) : sizes_[0];
    node_ = make_tail(Op::Pad, node_, pairs);
    axes_[axis] = {node_->dim(axis)};
  }

  void shrink() {
    std::vector<NodeRef> pairs;
    for (NodeRef dim : dims()) pairs.insert(pairs.end(), {index_const(0), dim});
    size_t axis = any_axis();
    int64_t least = bounds(pairs[2 * axis + 1]).min;
    int64_t begin = random_.between(0, std::min<int64_t>(2, least - 1));
    int64_t cut = random_.between(0, std::min<int64_t>(2, least - begin - 1));
    if (begin + cut == 0) return;
    pairs[2 * axis] = index_const(begin);
    pairs[2 * axis + 1] = index_sub(pairs[2 * axis + 1], index_const(cut));
    node_ = make_tail(Op::Shrink, node_, pairs);
    axes_[axis] = {node_->dim(axis)};
  }

  void repeat() {
    std::vector<NodeRef> target = dims();
    for (size_t axis = 0; axis < axes_.size(); ++axis) {
      if (target[axis] != index_const(1) || is_large()) continue;
      axes_[axis] = {size()};
      target[axis] = axes_[axis][0];
    }
    if (target != dims() || !std::ranges::equal(target, node_->shape->dims()))
      node_ = make_tail(Op::Expand, node_, target);
  }

  Random& random_;
  std::vector<NodeRef> sizes_;
  std::vector<Factors> axes_;
  NodeRef node_, source_;
};

// All positions of a shape once the sizes are bound, as values of the coordinate variables.
Domain positions(std::span<const NodeRef> coordinates, std::span<const int64_t> shape,
                 std::span<const NodeRef> sizes, std::span<const int64_t> bound) {
  Domain domain;
  for (int64_t size : shape) domain.points *= static_cast<size_t>(size);
  int64_t repeat = static_cast<int64_t>(domain.points);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    repeat /= shape[axis];
    domain.variables.push_back(coordinates[axis]);
    std::vector<int64_t>& values = domain.values.emplace_back();
    for (int64_t p = 0; p < static_cast<int64_t>(domain.points); ++p)
      values.push_back(p / repeat % shape[axis]);
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    domain.variables.push_back(sizes[i]);
    domain.values.emplace_back(domain.points, bound[i]);
  }
  return domain;
}

std::optional<std::string> check_chain(uint64_t seed, int64_t* divisions) {
  Random random(seed);
  Chain chain(random, random.chance(40));
  for (int64_t length = random.between(1, 8); length > 0; --length) chain.extend();
  NodeRef last = chain.node();
  std::vector<NodeRef> coordinates;
  for (size_t axis = 0; axis < last->rank(); ++axis)
    coordinates.push_back(
        make_variable(fmt::format("i{}", axis), 0, bounds(last->dim(axis)).max - 1));
  auto [source, map] = through_chain(last, coordinates);
  std::vector<NodeRef> roots = map.coordinates;
  roots.push_back(map.valid);
  for (NodeRef node : topological_order(roots))
    *divisions += node->op == Op::FloorDiv || node->op == Op::Mod;

  auto wrong = [&](const std::string& what) {
    std::string text = fmt::format("seed {}: {}\n{}  reads", seed, what, print(last));
    for (NodeRef root : roots) text += " [" + to_text(root) + "]";
    return text;
  };
  if (source != chain.source()) return wrong("did not end at the source");
  for (int64_t n : {2, 3, 5}) {
    std::vector<int64_t> bound{n, 1 + n % 4};
    if (chain.sizes().empty() && n != 2) break;
    auto value_of = [&](NodeRef variable) { return bound[variable->arg.symbol->text() == "m"]; };
    Value contents{DType::I32, {}, {}};
    int64_t count = 1;
    for (NodeRef dim : source->shape->dims()) {
      contents.shape.push_back(interpret_index(dim, value_of));
      count *= contents.shape.back();
    }
    for (int64_t i = 0; i < count; ++i) contents.payload.push_back(static_cast<uint64_t>(i + 1));
    Environment environment{value_of, [&](NodeRef) { return &contents; }, nullptr};
    Value expected = interpret({&last, 1}, environment)[0];
    Domain domain = positions(coordinates, expected.shape, chain.sizes(), bound);
    Evaluator values(roots, domain);
    for (size_t p = 0; p < domain.points; ++p) {
      int64_t position = 0;
      bool inside = true;
      for (size_t axis = 0; axis < source->rank(); ++axis) {
        int64_t c = values.of(roots[axis])[p];
        inside = inside && c >= 0 && c < contents.shape[axis];
        position = position * contents.shape[axis] + c;
      }
      bool valid = values.of(map.valid)[p] != 0;
      if (valid && !inside)
        return wrong(fmt::format("reads outside the source at {}, n = {}", p, n));
      int64_t read = valid ? position + 1 : 0;
      int64_t want = expected.at(static_cast<int64_t>(p)).as_int();
      if (read != want)
        return wrong(fmt::format("position {} reads {}, not {}, n = {}", p, read, want, n));
    }
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("symbolic: 2,000 random chains of movement ops read what the interpreter reads") {
  constexpr uint64_t kSeed = 7000000, kCount = 2000;
  int64_t divisions = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    Graph graph;
    GraphScope scope(graph);
    std::optional<std::string> problem = check_chain(kSeed + i, &divisions);
    if (problem) FAIL(*problem);
  }
  // Most reshapes cancel: what is left is a measure of how well, watched so that it stays low.
  CHECK(divisions < 1700);
}
