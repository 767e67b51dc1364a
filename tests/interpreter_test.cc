// The interpreter against coordinate-by-coordinate references for everything that moves, reduces
// and indexes elements; graphs, sizes, errors. What elementwise ops mean is semantics_test.cc's.
#include "ir/interpreter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "interpreter_bench.h"
#include "ir/float_formats.h"
#include "ir/index.h"

using namespace anneal;
using namespace anneal::testing;

// ---- leaves and movement

TEST_CASE("interpreter: const and iota") {
  Bench bench;
  CHECK(bench.numbers(make_const(DType::F16, 2.5, static_dims(Sizes{2, 2}))) ==
        std::vector<double>{2.5, 2.5, 2.5, 2.5});
  CHECK(bench.numbers(make_const(DType::I32, 7)) == std::vector<double>{7});
  CHECK(bench.numbers(make_const(DType::F32, 7, static_dims(Sizes{3, 0}))).empty());
  CHECK(bench.numbers(make_iota(DType::I32, static_dims(Sizes{2, 3}), 1)) ==
        std::vector<double>{0, 1, 2, 0, 1, 2});
  CHECK(bench.numbers(make_iota(DType::F32, static_dims(Sizes{2, 3}), 0)) ==
        std::vector<double>{0, 0, 0, 1, 1, 1});
  const std::vector<double> wrapping =
      bench.numbers(make_iota(DType::I8, static_dims(Sizes{200}), 0));
  CHECK(wrapping[127] == 127);
  CHECK(wrapping[128] == -128);
  // f8e4m3 has no 17: it ties to 16.
  CHECK(bench.numbers(make_iota(DType::F8E4M3, static_dims(Sizes{18}), 0))[17] == 16);
}

namespace {

// A tensor as a list, and the movement ops on it one coordinate at a time.
struct Naive {
  Sizes shape;
  std::vector<double> elements;

  // The tensor of `result` sizes whose element at c is this one's at from(c), or 0 where from says
  // no.
  Naive moved(const Sizes& result, const std::function<bool(Sizes& at)>& from) const {
    Naive moved{result, {}};
    for (int64_t i = 0; i < product(result); ++i) {
      Sizes at = coordinates_of(i, result);
      moved.elements.push_back(from(at) ? elements[static_cast<size_t>(flat_of(at, shape))] : 0);
    }
    return moved;
  }
};

struct Mover {
  std::mt19937_64 random;
  NodeRef node = nullptr;
  Naive naive = {};

  int64_t draw(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  }
  size_t rank() const { return naive.shape.size(); }

  void permute() {
    Sizes axes(rank());
    for (size_t i = 0; i < rank(); ++i) axes[i] = static_cast<int64_t>(i);
    std::shuffle(axes.begin(), axes.end(), random);
    Sizes shape(rank());
    for (size_t i = 0; i < rank(); ++i) shape[i] = naive.shape[static_cast<size_t>(axes[i])];
    node = make_axes(Op::Permute, node, axes);
    naive = naive.moved(shape, [&](Sizes& at) {
      Sizes from(at.size());
      for (size_t i = 0; i < at.size(); ++i) from[static_cast<size_t>(axes[i])] = at[i];
      at = from;
      return true;
    });
  }
  void flip() {
    Sizes axes;
    for (size_t i = 0; i < rank(); ++i)
      if (draw(0, 1)) axes.push_back(static_cast<int64_t>(i));
    node = make_axes(Op::Flip, node, axes);
    naive = naive.moved(naive.shape, [&](Sizes& at) {
      for (int64_t axis : axes) {
        int64_t& c = at[static_cast<size_t>(axis)];
        c = naive.shape[static_cast<size_t>(axis)] - 1 - c;
      }
      return true;
    });
  }
  void expand() {
    Sizes shape = naive.shape;
    for (int64_t& size : shape)
      if (size == 1) size = draw(0, 9) == 0 ? 0 : draw(1, 3);
    node = make_tail(Op::Expand, node, static_dims(shape));
    naive = naive.moved(shape, [&](Sizes& at) {
      for (size_t i = 0; i < at.size(); ++i)
        if (naive.shape[i] == 1) at[i] = 0;
      return true;
    });
  }
  void pad() {
    Sizes pairs, shape = naive.shape;
    for (size_t i = 0; i < rank(); ++i) {
      const int64_t before = draw(0, 2), after = draw(0, 1);
      pairs.insert(pairs.end(), {before, after});
      shape[i] += before + after;
    }
    if (product(shape) > 4000) return;
    node = make_tail(Op::Pad, node, static_dims(pairs));
    naive = naive.moved(shape, [&](Sizes& at) {
      for (size_t i = 0; i < at.size(); ++i) {
        at[i] -= pairs[2 * i];
        if (at[i] < 0 || at[i] >= naive.shape[i]) return false;
      }
      return true;
    });
  }
  void shrink() {
    Sizes pairs, shape = naive.shape;
    for (size_t i = 0; i < rank(); ++i) {
      const int64_t begin = draw(0, std::min<int64_t>(1, shape[i])),
                    end = draw(std::max(begin, shape[i] - 1), shape[i]);
      pairs.insert(pairs.end(), {begin, end});
      shape[i] = end - begin;
    }
    node = make_tail(Op::Shrink, node, static_dims(pairs));
    naive = naive.moved(shape, [&](Sizes& at) {
      for (size_t i = 0; i < at.size(); ++i) at[i] += pairs[2 * i];
      return true;
    });
  }
  // Takes a size apart, or drops and adds a size of 1.
  void reshape() {
    Sizes shape;
    for (int64_t size : naive.shape) {
      if (size == 1 && draw(0, 1)) continue;
      if (size > 1 && size % 2 == 0 && draw(0, 1)) {
        shape.insert(shape.end(), {size / 2, 2});
      } else if (!shape.empty() && draw(0, 2) == 0) {
        shape.back() *= size;
      } else {
        shape.push_back(size);
      }
    }
    if (draw(0, 1)) shape.push_back(1);
    if (shape.size() > 6) return;
    node = make_tail(Op::Reshape, node, static_dims(shape));
    naive.shape = shape;  // row-major order is the list's own
  }
};

}  // namespace

TEST_CASE("interpreter: chains of movement ops match a coordinate-by-coordinate reference") {
  constexpr void (Mover::* kMoves[])() = {&Mover::permute, &Mover::flip,   &Mover::expand,
                                          &Mover::pad,     &Mover::shrink, &Mover::reshape};
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Bench bench;
    Mover mover{std::mt19937_64(seed)};
    const Sizes starts[] = {{4, 3}, {2, 1, 3}, {6}, {1, 4, 1, 2}, {}, {2, 3, 4}};
    const Sizes& shape = starts[seed % std::size(starts)];
    mover.node = bench.counting(DType::F32, shape);
    mover.naive = {shape, numbers_of(bench.values[mover.node])};
    // The first moves are each op alone, then chains in which views lie on views.
    const int length = seed < 60 ? 1 : 6;
    for (int i = 0; i < length; ++i) {
      (mover.*kMoves[length == 1 ? seed / 10 : mover.random() % std::size(kMoves)])();
      if (product(mover.naive.shape) > 4000) break;
    }
    const Value got = bench.run(mover.node);
    CAPTURE(seed);
    REQUIRE(got.shape == mover.naive.shape);
    REQUIRE(numbers_of(got) == mover.naive.elements);
    // The same views, read by an elementwise op and by a reduction.
    REQUIRE(numbers_of(bench.run(make(Op::Neg, {make(Op::Neg, {mover.node})}))) ==
            mover.naive.elements);
    double sum = 0;
    for (double element : mover.naive.elements) sum += element;
    Sizes all(mover.rank());
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
    REQUIRE(bench.numbers(make_axes(Op::ReduceSum, mover.node, all)) == std::vector<double>{sum});
  }
}

TEST_CASE("interpreter: padding is the zero of each dtype") {
  for (DType dtype : kAllDTypes) {
    if (is_index(dtype)) continue;
    Bench bench;
    NodeRef padded = make_tail(Op::Pad, bench.input(dtype, {1}, {1}), static_dims(Sizes{1, 1}));
    CHECK(bench.numbers(padded) == std::vector<double>{0, 1, 0});
  }
}

// ---- reductions

TEST_CASE("interpreter: reductions over every set of axes match the plain sum") {
  const Sizes shape{2, 3, 4};
  for (unsigned mask = 0; mask < 8; ++mask) {
    Bench bench;
    NodeRef x = bench.counting(DType::I32, shape);
    Sizes axes, reduced = shape;
    for (size_t i = 0; i < 3; ++i)
      if (mask >> i & 1) {
        axes.push_back(static_cast<int64_t>(i));
        reduced[i] = 1;
      }
    std::vector<double> sum(static_cast<size_t>(product(reduced)), 0),
        largest = sum, smallest(sum.size(), 1e9), times(sum.size(), 1);
    for (int64_t i = 0; i < product(shape); ++i) {
      Sizes at = coordinates_of(i, shape);
      for (int64_t axis : axes) at[static_cast<size_t>(axis)] = 0;
      const size_t to = static_cast<size_t>(flat_of(at, reduced));
      const double element = static_cast<double>(i + 1);
      sum[to] += element;
      largest[to] = std::max(largest[to], element);
      smallest[to] = std::min(smallest[to], element);
      times[to] *= element;
    }
    CAPTURE(mask);
    const Value got = bench.run(make_axes(Op::ReduceSum, x, axes));
    CHECK(got.shape == reduced);
    CHECK(numbers_of(got) == sum);
    CHECK(bench.numbers(make_axes(Op::ReduceMax, x, axes)) == largest);
    CHECK(bench.numbers(make_axes(Op::ReduceMin, x, axes)) == smallest);
    CHECK(bench.numbers(make_axes(Op::ReduceSum, make_cast(x, DType::F32), axes)) == sum);
    CHECK(bench.numbers(make_axes(Op::ReduceMax, make_cast(x, DType::F16), axes)) == largest);
    if (mask != 7)  // 24! is no i64
      CHECK(bench.numbers(make_axes(Op::ReduceProd, make_cast(x, DType::F64), axes)) == times);
  }
}

TEST_CASE("interpreter: sums run in f64, in row-major order, and round once") {
  Bench bench;
  const Sizes all{0}, both{0, 1};
  // Rounding at every step would stay at 2048, and at 1.
  NodeRef halves = make_const(DType::F16, 1, static_dims(Sizes{4096}));
  CHECK(bench.numbers(make_axes(Op::ReduceSum, halves, all)) == std::vector<double>{4096});
  NodeRef fine = bench.input(DType::F32, {3}, {1, 0x1p-24, 0x1p-24});
  CHECK(bench.numbers(make_axes(Op::ReduceSum, fine, all)) == std::vector<double>{1 + 0x1p-23});
  // The order shows where f64 itself rounds: 1e300 - 1e300 + 1 and 1e300 + 1 - 1e300.
  NodeRef early = bench.input(DType::F64, {2, 2}, {1e300, -1e300, 1, 0});
  NodeRef late = bench.input(DType::F64, {2, 2}, {1e300, 1, -1e300, 0});
  CHECK(bench.numbers(make_axes(Op::ReduceSum, early, both)) == std::vector<double>{1});
  CHECK(bench.numbers(make_axes(Op::ReduceSum, late, both)) == std::vector<double>{0});
  // The order is that of the tensor reduced, not of the memory under it.
  const Sizes turn{1, 0};
  CHECK(bench.numbers(make_axes(Op::ReduceSum, make_axes(Op::Permute, late, turn), both)) ==
        std::vector<double>{1});
  // 70000 * 70000 is no f16 and no i32, on the way or at the end.
  NodeRef large = bench.input(DType::F16, {2}, {60000, 60000});
  CHECK(bench.numbers(make_axes(Op::ReduceSum, large, all)) == std::vector<double>{kInf});
  NodeRef cancels = bench.input(DType::F16, {3}, {60000, 60000, -60000});
  CHECK(bench.numbers(make_axes(Op::ReduceSum, cancels, all)) == std::vector<double>{60000});
  NodeRef bytes = bench.input(DType::U8, {3}, {200, 100, 3});
  CHECK(bench.numbers(make_axes(Op::ReduceSum, bytes, all)) == std::vector<double>{47});
  CHECK(bench.numbers(make_axes(Op::ReduceProd, bytes, all)) == std::vector<double>{60000 % 256});
  NodeRef signs = bench.input(DType::I8, {2}, {100, 100});
  CHECK(bench.numbers(make_axes(Op::ReduceSum, signs, all)) == std::vector<double>{-56});
}

TEST_CASE("interpreter: reductions of nothing and of NaN") {
  const Sizes all{0};
  for (DType dtype : kAllDTypes) {
    if (is_index(dtype) || is_bool(dtype)) continue;
    Bench bench;
    NodeRef none = bench.input(dtype, {0, 2}, {});
    auto both = [&](Op op, Scalar want) {
      const Value got = bench.run(make_axes(op, none, all));
      return got.shape == Sizes{1, 2} && got.at(0) == want && got.at(1) == want;
    };
    CAPTURE(name(dtype));
    CHECK(both(Op::ReduceSum, Scalar::of(dtype, 0)));
    CHECK(both(Op::ReduceProd, Scalar::of(dtype, 1)));
    CHECK(both(Op::ReduceMax, lowest(dtype)));
    CHECK(both(Op::ReduceMin, highest(dtype)));
    if (is_float(dtype))
      for (Op op : {Op::ReduceSum, Op::ReduceProd, Op::ReduceMax, Op::ReduceMin})
        for (size_t place = 0; place < 3; ++place) {
          std::vector<double> numbers{1, 2, 3};
          numbers[place] = kNan;
          const Value got = bench.run(make_axes(op, bench.input(dtype, {3}, numbers), all));
          CHECK(got.at(0) == Scalar::of(dtype, kNan));
        }
  }
  Bench bench;
  NodeRef big = bench.input(Value{DType::U64, {2}, {uint64_t{1} << 63, 5}});
  CHECK(bench.run(make_axes(Op::ReduceMax, big, all)).payload[0] == uint64_t{1} << 63);
  CHECK(bench.run(make_axes(Op::ReduceMin, big, all)).payload[0] == 5);
  NodeRef infinite = bench.input(DType::F32, {2}, {kInf, -kInf});
  CHECK(bench.run(make_axes(Op::ReduceSum, infinite, all)).at(0) == Scalar::of(DType::F32, kNan));
}

// ---- indexed access

TEST_CASE("interpreter: gather and scatter match their definition") {
  for (int64_t axis : {0, 1, 2})
    for (DType places_dtype : {DType::I32, DType::I64, DType::U8}) {
      Bench bench;
      std::mt19937_64 random(static_cast<uint64_t>(axis));
      const Sizes shape{2, 3, 4};
      Sizes part = shape;
      part[static_cast<size_t>(axis)] = 5;
      NodeRef table = bench.counting(DType::F32, shape);
      std::vector<double> places, updates;
      for (int64_t i = 0; i < product(part); ++i) {
        // From two before the first place to two after the last; u8 wraps to far outside.
        const int64_t place = static_cast<int64_t>(random() % 8) - 2;
        places.push_back(places_dtype == DType::U8 && place < 0 ? 256.0 + static_cast<double>(place)
                                                                : static_cast<double>(place));
        updates.push_back(static_cast<double>(100 * (i + 1)));
      }
      NodeRef at = bench.input(places_dtype, part, places);
      NodeRef values = bench.input(DType::F32, part, updates);

      std::vector<double> gathered, added = numbers_of(bench.values[table]), written = added;
      for (int64_t i = 0; i < product(part); ++i) {
        Sizes c = coordinates_of(i, part);
        const double place = places[static_cast<size_t>(i)];
        const bool inside =
            place >= 0 && place < static_cast<double>(shape[static_cast<size_t>(axis)]);
        c[static_cast<size_t>(axis)] = static_cast<int64_t>(place);
        const size_t flat = inside ? static_cast<size_t>(flat_of(c, shape)) : 0;
        gathered.push_back(inside ? static_cast<double>(flat + 1) : 0);
        if (!inside) continue;
        added[flat] += updates[static_cast<size_t>(i)];
        written[flat] = updates[static_cast<size_t>(i)];
      }
      CAPTURE(axis);
      const Value got = bench.run(make(Op::Gather, {table, at}, Arg(axis)));
      CHECK(got.shape == part);
      CHECK(numbers_of(got) == gathered);
      CHECK(bench.numbers(make(Op::ScatterAdd, {table, at, values}, Arg(axis))) == added);
      CHECK(bench.numbers(make(Op::Scatter, {table, at, values}, Arg(axis))) == written);
      // The operands untouched, and the same through views.
      CHECK(numbers_of(bench.values[table]).front() == 1);
      const Sizes turn{2, 0, 1};
      const int64_t turned = axis == 2 ? 0 : axis + 1;
      auto view = [&](NodeRef node) { return make_axes(Op::Permute, node, turn); };
      const Sizes back{1, 2, 0};
      NodeRef through = make(Op::Gather, {view(table), view(at)}, Arg(turned));
      CHECK(bench.numbers(make_axes(Op::Permute, through, back)) == gathered);
      NodeRef around = make(Op::ScatterAdd, {view(table), view(at), view(values)}, Arg(turned));
      CHECK(bench.numbers(make_axes(Op::Permute, around, back)) == added);
    }
}

TEST_CASE("interpreter: scatter_add rounds once, wraps, and meets extreme places") {
  Bench bench;
  const Arg axis(int64_t{0});
  NodeRef zeros = bench.input(DType::I64, {3}, {0, 0, 0});
  NodeRef fine = make(Op::ScatterAdd,
                      {bench.input(DType::F32, {1}, {1}), zeros,
                       bench.input(DType::F32, {3}, {0x1p-24, 0x1p-24, 0})},
                      axis);
  CHECK(bench.numbers(fine) == std::vector<double>{1 + 0x1p-23});
  NodeRef wraps =
      make(Op::ScatterAdd,
           {bench.input(DType::I8, {1}, {100}), zeros, bench.input(DType::I8, {3}, {100, 100, 1})},
           axis);
  CHECK(bench.numbers(wraps) == std::vector<double>{45});
  NodeRef nan = make(
      Op::ScatterAdd,
      {bench.input(DType::F16, {2}, {kInf, 1}), zeros, bench.input(DType::F16, {3}, {-kInf, 1, 1})},
      axis);
  CHECK(bench.run(nan).at(0) == Scalar::of(DType::F16, kNan));
  CHECK(bench.run(nan).at(1) == Scalar::of(DType::F16, 1));

  NodeRef far =
      bench.input(Value{DType::I64, {2}, {uint64_t{1} << 63, static_cast<uint64_t>(kI64Max)}});
  NodeRef farther = bench.input(Value{DType::U64, {2}, {~uint64_t{0}, uint64_t{1} << 63}});
  NodeRef table = bench.input(DType::F32, {2}, {1, 2});
  for (NodeRef places : {far, farther}) {
    CHECK(bench.numbers(make(Op::Gather, {table, places}, axis)) == std::vector<double>{0, 0});
    CHECK(bench.numbers(make(Op::Scatter, {table, places, table}, axis)) ==
          std::vector<double>{1, 2});
  }
  NodeRef nothing = bench.input(DType::F32, {0}, {});
  NodeRef empty_table = make(Op::Gather, {nothing, zeros}, axis);
  CHECK(bench.numbers(empty_table) == std::vector<double>{0, 0, 0});
}

// ---- graphs

TEST_CASE("interpreter: structure ops pass values on and read no more than they need") {
  Bench bench;
  NodeRef x = bench.input(DType::F32, {2}, {1, 2});
  NodeRef absent = make_buffer("absent", new_buffer_slot(), DType::F32, static_dims(Sizes{2}));
  CHECK(bench.numbers(make(Op::Contiguous, {x})) == std::vector<double>{1, 2});
  CHECK(bench.numbers(make(Op::StopGradient, {x})) == std::vector<double>{1, 2});
  CHECK(bench.numbers(make_named(x)) == std::vector<double>{1, 2});
  CHECK(bench.numbers(make(Op::Assign, {absent, x})) == std::vector<double>{1, 2});
  const Symbol* symbol = bench.graph.intern_symbol("clip", 0, 0);
  CHECK(bench.numbers(make(Op::CustomGrad, {x, absent}, Arg(symbol))) == std::vector<double>{1, 2});
}

TEST_CASE("interpreter: known values stand for the nodes that would compute them") {
  Bench bench;
  NodeRef absent = make_buffer("absent", new_buffer_slot(), DType::F32, static_dims(Sizes{2}));
  NodeRef inner = make(Op::Exp, {absent}), outer = make(Op::Add, {inner, inner});
  const Value ten = value_of(DType::F32, {2}, {10, 20});
  Environment environment = bench.environment();
  environment.known = [&](NodeRef node) { return node == inner ? &ten : nullptr; };
  const NodeRef roots[] = {outer, inner, outer};
  const std::vector<Value> values = interpret(roots, environment);
  REQUIRE(values.size() == 3);
  CHECK(numbers_of(values[0]) == std::vector<double>{20, 40});
  CHECK(numbers_of(values[1]) == std::vector<double>{10, 20});
  CHECK(numbers_of(values[2]) == std::vector<double>{20, 40});
  const Value wrong = value_of(DType::F32, {3}, {1, 2, 3});
  environment.known = [&](NodeRef node) { return node == inner ? &wrong : nullptr; };
  CHECK_THROWS_AS(interpret(roots, environment), UserError);
}

TEST_CASE("interpreter: one graph at several sizes") {
  Bench bench;
  NodeRef n = make_variable("n", 1, 100);
  auto sized = [&](std::initializer_list<NodeRef> dims) { return std::vector<NodeRef>(dims); };
  NodeRef one = index_const(1), three = index_const(3);
  NodeRef x = make_buffer("x", new_buffer_slot(), DType::F32, sized({n, three}));
  NodeRef flat = make_tail(Op::Reshape, x, sized({index_mul(n, three)}));
  NodeRef padded = make_tail(Op::Pad, flat, sized({n, one}));  // 4n + 1
  NodeRef size = index_add(index_mul(n, index_const(4)), one);
  NodeRef tail = make_tail(Op::Shrink, padded, sized({n, size}));  // 3n + 1
  NodeRef counted = make_const(DType::F32, 2, tail->shape->dims());
  const Sizes all{0};
  NodeRef total = make_axes(Op::ReduceSum, make(Op::Mul, {tail, counted}), all);
  NodeRef average = make(Op::Div, {make_tail(Op::Reshape, total, {}), make_cast(n, DType::F32)});
  NodeRef ramp = make_iota(DType::I32, sized({index_floor_div(size, index_const(2))}), 0);
  NodeRef large = make(Op::Lt, {index_const(2), n});
  NodeRef either = make(Op::Where, {large, n, three});
  NodeRef chosen = make_const(DType::Bool, 1, sized({either}));
  for (int64_t value : {1, 2, 5}) {
    bench.sizes[n] = value;
    std::vector<double> numbers(static_cast<size_t>(3 * value));
    double sum = 0;
    for (size_t i = 0; i < numbers.size(); ++i) sum += numbers[i] = static_cast<double>(i * i);
    bench.values[x] = value_of(DType::F32, {value, 3}, numbers);
    CAPTURE(value);
    CHECK(bench.run(padded).shape == Sizes{4 * value + 1});
    numbers.push_back(0);
    CHECK(bench.numbers(tail) == numbers);
    CHECK(bench.run(average).at(0) == Scalar::of(DType::F32, 2 * sum / static_cast<double>(value)));
    CHECK(bench.run(ramp).shape == Sizes{(4 * value + 1) / 2});
    CHECK(bench.run(chosen).shape == Sizes{value > 2 ? value : 3});
    auto variable = [&](NodeRef) { return value; };
    CHECK(interpret_index(size, variable) == 4 * value + 1);
    CHECK(interpret_index(index_mod(size, three), variable) == (4 * value + 1) % 3);
    CHECK(interpret_index(three, nullptr) == 3);
    CHECK(interpret_index(large, variable) == (value > 2));
  }
}

TEST_CASE("interpreter: chains of 100,000 nodes") {
  Bench bench;
  NodeRef x = bench.input(DType::F64, {2}, {0, 1}), one = make_const_like(x, 1), sum = x;
  for (int i = 0; i < 100'000; ++i) sum = make(Op::Add, {sum, one});
  CHECK(bench.numbers(sum) == std::vector<double>{100'000, 100'001});
  NodeRef n = make_variable("n", 0, 10), size = n;
  for (int i = 0; i < 100'000; ++i) size = make(Op::Add, {size, n});
  CHECK(interpret_index(size, [](NodeRef) { return int64_t{3}; }) == 300'003);
}

TEST_CASE("interpreter: errors name what is wrong and both values") {
  Bench bench;
  NodeRef n = make_variable("n", 1, 8), m = make_variable("m", 0, kI64Max);
  auto sized = [&](std::initializer_list<NodeRef> dims) { return std::vector<NodeRef>(dims); };
  NodeRef zero = index_const(0), two = index_const(2), four = index_const(4);
  NodeRef x = bench.input(DType::F32, {4}, {1, 2, 3, 4});
  NodeRef ones = make_const(DType::F32, 1, sized({m}));
  bench.sizes[n] = 9;
  CHECK(mentions(bench.error(make_const(DType::F32, 1, sized({n}))), {"n is 9", "1 and 8"}));
  bench.sizes[n] = 3;
  CHECK(mentions(bench.error(make_tail(Op::Reshape, x, sized({n}))), {"[4] has 4", "[3] has 3"}));
  bench.sizes[m] = 5;
  CHECK(mentions(bench.error(make_tail(Op::Shrink, x, sized({n, m}))), {"axis 0 of 4", "3 to 5"}));
  CHECK(mentions(bench.error(make_tail(Op::Shrink, x, sized({n, two}))), {"3 to 2"}));
  NodeRef minus = index_sub(zero, m);
  CHECK(mentions(bench.error(make_tail(Op::Pad, x, sized({minus, zero}))), {"-5 and 0"}));
  CHECK(mentions(bench.error(make_const(DType::F32, 1, sized({minus}))), {"negative", "-5"}));
  CHECK(mentions(bench.error(make_const(
                     DType::F32, 1, sized({index_floor_div(four, index_sub(m, index_const(5)))}))),
                 {"divided by zero", "4"}));
  bench.sizes[m] = kI64Max;
  CHECK(mentions(bench.error(make_tail(Op::Pad, x, sized({m, zero}))),
                 {"of 4", "9223372036854775807"}));
  CHECK(mentions(bench.error(make(Op::Neg, {ones})), {"too many elements"}));
  CHECK(mentions(bench.error(make_const(DType::F32, 1, sized({m, m}))), {"too many elements"}));
  CHECK(mentions(bench.error(make_const(DType::F32, 1, sized({index_mul(m, two)}))),
                 {"64 bits", "* 2"}));
  bench.sizes[m] = int64_t{1} << 40;
  const Sizes all{0};
  CHECK(mentions(bench.error(make_axes(Op::ReduceSum, ones, all)),
                 {"too many elements", "1099511627776"}));

  NodeRef absent = make_buffer("weights", new_buffer_slot(), DType::F32, sized({two}));
  CHECK(mentions(bench.error(absent), {"weights", "no value"}));
  bench.values[absent] = value_of(DType::F32, {3}, {1, 2, 3});
  CHECK(mentions(bench.error(absent), {"f32[2]", "f32[3]"}));
  bench.values[absent] = value_of(DType::F64, {2}, {1, 2});
  CHECK(mentions(bench.error(absent), {"f32[2]", "f64[2]"}));
  CHECK_THROWS_AS(interpret_index(n, nullptr), UserError);
}

TEST_CASE("interpreter: storage holds each dtype in its own format") {
  auto bytes = [](DType dtype, double number) {
    std::vector<int> codes;
    const Storage storage = to_storage(value_of(dtype, {}, {number}));
    for (std::byte byte : storage.read()) codes.push_back(static_cast<int>(byte));
    return codes;
  };
  CHECK(bytes(DType::Bool, 1) == std::vector{1});
  CHECK(bytes(DType::I8, -2) == std::vector{0xfe});
  CHECK(bytes(DType::I32, 0x01020304) == std::vector{4, 3, 2, 1});
  CHECK(bytes(DType::F8E4M3, 1) == std::vector{0x38});
  CHECK(bytes(DType::F16, 1) == std::vector{0x00, 0x3c});
  CHECK(bytes(DType::BF16, 1) == std::vector{0x80, 0x3f});
  CHECK(bytes(DType::F32, -1) == std::vector{0, 0, 0x80, 0xbf});
  CHECK(bytes(DType::F64, 1) == std::vector{0, 0, 0, 0, 0, 0, 0xf0, 0x3f});
  for (DType dtype : kAllDTypes) {
    if (is_index(dtype)) continue;
    Value value{dtype, {}, {}};
    for (Scalar corner : {lowest(dtype), highest(dtype), Scalar::of_int(dtype, 0),
                          Scalar::of_int(dtype, 1), Scalar::of_int(dtype, -3)})
      value.payload.push_back(corner.bits());
    value.shape = {value.size(), 1};
    const Storage storage = to_storage(value);
    CHECK(storage.read().size() == value.payload.size() * byte_size(dtype));
    const Value back = to_value(storage);
    CHECK(back.dtype == dtype);
    CHECK(back.shape == value.shape);
    CHECK(back.payload == value.payload);
  }
  // Memory may hold any byte in a bool and any NaN in a float; a value has one of each.
  CHECK(to_value({DType::Bool, {1}, {std::byte{2}}}).payload[0] == 1);
  const std::byte ff{0xff};
  CHECK(to_value({DType::F32, {1}, {ff, ff, ff, ff}}).at(0) == Scalar::of(DType::F32, kNan));
  CHECK_THROWS_AS(to_value({DType::F32, {2}, {ff, ff, ff, ff}}), InternalError);
}
