// Lowered bodies do what the bodies say, with and without each transformation.
#include "kernel/lower.h"

#include <doctest/doctest.h>

#include "body_maker.h"
#include "lower_check.h"

using namespace anneal;

namespace {

struct Fixture {
  Graph graph;
  GraphScope scope{graph};
  BodyMaker maker;

  NodeRef axis(const char* name, int64_t size) { return maker.axis(name, size); }
  NodeRef buffer(int64_t elements, DType dtype = DType::F32) {
    return maker.buffer(dtype, elements);
  }
  void check(const std::vector<int64_t>& sizes = {}) { check_lowering(maker.body, sizes); }
};

NodeRef add(NodeRef a, NodeRef b) { return make(Op::Add, {a, b}); }
NodeRef mul(NodeRef a, NodeRef b) { return make(Op::Mul, {a, b}); }
NodeRef minus(NodeRef a, NodeRef b) { return add(a, make(Op::Neg, {b})); }
NodeRef number(double value) { return make_const(DType::F32, value); }
NodeRef sum(NodeRef term, std::vector<NodeRef> axes, Op op = Op::SumOver) {
  axes.insert(axes.begin(), term);
  return make(op, axes);
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "elementwise over several axes") {
  for (int64_t last : {1, 5, 16, 67}) {
    maker = {};
    NodeRef i = axis("i", 3), j = axis("j", 4), k = axis("k", last);
    NodeRef a = buffer(12 * last), b = buffer(last), out = buffer(12 * last);
    NodeRef at = BodyMaker::at({i, j, k}, std::vector<int64_t>{3, 4, last});
    NodeRef value = add(mul(BodyMaker::load(a, at), number(3)), BodyMaker::load(b, k));
    maker.store(out, at, value, {i, j, k});
    check();
  }
}

TEST_CASE_FIXTURE(Fixture, "two stores of one loop, in place") {
  NodeRef i = axis("i", 37);
  NodeRef a = buffer(37), b = buffer(37);
  NodeRef x = BodyMaker::load(a, i), y = BodyMaker::load(b, i);
  maker.store(a, i, y, {i});
  maker.store(b, i, x, {i});
  check();
}

TEST_CASE_FIXTURE(Fixture, "transposes of matrices too large for a cache") {
  struct Sizes {
    int64_t count, rows, columns;
  };
  for (auto [count, rows, columns] :
       {Sizes{3, 40, 50}, Sizes{2, 64, 32}, Sizes{1, 9, 130}, Sizes{150, 4, 5}}) {
    maker = {};
    NodeRef b = axis("b", count), i = axis("i", rows), j = axis("j", columns);
    NodeRef a = buffer(count * rows * columns), out = buffer(count * rows * columns);
    NodeRef from = BodyMaker::at({b, j, i}, std::vector<int64_t>{count, columns, rows});
    NodeRef to = BodyMaker::at({b, i, j}, std::vector<int64_t>{count, rows, columns});
    maker.store(out, to, BodyMaker::load(a, from), {b, i, j});
    check();
  }
}

TEST_CASE_FIXTURE(Fixture, "transposes and reshapes with divisions") {
  NodeRef i = axis("i", 12), j = axis("j", 20);
  NodeRef a = buffer(240), out = buffer(240);
  NodeRef four = index_const(4);
  // [12, 20] -> [3, 4, 20] -> [4, 3, 20], stored row by row.
  NodeRef outer = index_floor_div(i, four), inner = index_mod(i, four);
  NodeRef from = BodyMaker::at({inner, outer, j}, std::vector<int64_t>{4, 3, 20});
  maker.store(out, BodyMaker::at({j, i}, std::vector<int64_t>{20, 12}), BodyMaker::load(a, from),
              {i, j});
  check();
}

TEST_CASE_FIXTURE(Fixture, "pads and shifts by conditions") {
  NodeRef i = axis("i", 9), j = axis("j", 35);
  NodeRef a = buffer(7 * 30), out = buffer(9 * 35);
  NodeRef row = index_sub(i, index_const(1)), column = index_sub(j, index_const(3));
  auto within = [](NodeRef x, int64_t size) {
    return make(Op::And, {make(Op::Le, {index_const(0), x}), make(Op::Lt, {x, index_const(size)})});
  };
  NodeRef inside = make(Op::And, {within(row, 7), within(column, 30)});
  NodeRef x = BodyMaker::load(a, BodyMaker::at({row, column}, std::vector<int64_t>{7, 30}), inside);
  maker.store(out, BodyMaker::at({i, j}, std::vector<int64_t>{9, 35}), add(x, number(1)), {i, j});
  check();
}

TEST_CASE_FIXTURE(Fixture, "sums of rows, of columns and of everything") {
  for (int64_t n : {1, 7, 16, 65, 130}) {
    maker = {};
    NodeRef i = axis("i", 5), k = axis("k", n);
    NodeRef a = buffer(5 * n), rows = buffer(5);
    NodeRef x = BodyMaker::load(a, BodyMaker::at({i, k}, std::vector<int64_t>{5, n}));
    maker.store(rows, i, sum(x, {k}), {i});
    check();

    maker = {};
    NodeRef j = axis("j", n), r = axis("r", 6);
    NodeRef b = buffer(6 * n), columns = buffer(n), largest = buffer(n);
    NodeRef y = BodyMaker::load(b, BodyMaker::at({r, j}, std::vector<int64_t>{6, n}));
    maker.store(columns, j, sum(y, {r}), {j});
    maker.store(largest, j, sum(y, {r}, Op::MaxOver), {j});
    check();

    maker = {};
    NodeRef p = axis("p", 3), q = axis("q", n);
    NodeRef c = buffer(3 * n), one = buffer(1);
    NodeRef z = BodyMaker::load(c, BodyMaker::at({p, q}, std::vector<int64_t>{3, n}));
    maker.store(one, index_const(0), sum(z, {p, q}, Op::MinOver), {});
    check();
  }
}

// One axis is in both, among others of its size.
TEST_CASE_FIXTURE(Fixture, "reductions that have an axis in common") {
  NodeRef k0 = axis("k0", 3), k1 = axis("k1", 2), k2 = axis("k2", 3);
  NodeRef k3 = axis("k3", 2), k4 = axis("k4", 6);
  NodeRef a = buffer(18), b = buffer(24), out = buffer(1);
  NodeRef x = BodyMaker::load(a, BodyMaker::at({k0, k1, k2}, std::vector<int64_t>{3, 2, 3}));
  NodeRef y = BodyMaker::load(b, BodyMaker::at({k3, k1, k4}, std::vector<int64_t>{2, 2, 6}));
  maker.store(out, index_const(0), add(sum(x, {k0, k1, k2}), sum(y, {k3, k1, k4})), {});
  check();
}

TEST_CASE_FIXTURE(Fixture, "sums of long columns, of which one needs a mean of each row") {
  for (int64_t rows : {9, 16, 21}) {
    maker = {};
    NodeRef j = axis("j", 600), r = axis("r", rows), k = axis("k", 600);
    NodeRef a = buffer(rows * 600), plain = buffer(600), centred = buffer(600);
    auto x = [&](NodeRef column) {
      return BodyMaker::load(a, BodyMaker::at({r, column}, std::vector<int64_t>{rows, 600}));
    };
    NodeRef mean = mul(sum(x(k), {k}), number(1.0 / 600));
    maker.store(plain, j, sum(x(j), {r}), {j});
    check();
    maker.store(centred, j, sum(minus(x(j), mean), {r}), {j});
    check();
  }
}

TEST_CASE_FIXTURE(Fixture, "softmax: reductions of reductions") {
  for (int64_t n : {1, 10, 33, 64}) {
    maker = {};
    NodeRef i = axis("i", 4), j = axis("j", n), k = axis("k", n), l = axis("l", n);
    NodeRef a = buffer(4 * n), out = buffer(4 * n), totals = buffer(4);
    auto x = [&](NodeRef column) {
      return BodyMaker::load(a, BodyMaker::at({i, column}, std::vector<int64_t>{4, n}));
    };
    NodeRef largest = sum(x(k), {k}, Op::MaxOver);
    auto weight = [&](NodeRef column) {
      NodeRef difference = minus(x(column), largest);
      return mul(difference, difference);
    };
    NodeRef total = sum(weight(l), {l});
    NodeRef result = make(Op::Div, {weight(j), add(total, number(1))});
    maker.store(out, BodyMaker::at({i, j}, std::vector<int64_t>{4, n}), result, {i, j});
    maker.store(totals, i, total, {i});
    check();
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "a row that is kept is summed while it is stored, the next one fetched") {
  for (int64_t n : {300, 320}) {
    maker = {};
    NodeRef i = axis("i", 5), j = axis("j", n), k = axis("k", n), l = axis("l", n);
    NodeRef a = buffer(5 * n), out = buffer(5 * n);
    auto x = [&](NodeRef column) {
      return BodyMaker::load(a, BodyMaker::at({i, column}, std::vector<int64_t>{5, n}));
    };
    NodeRef largest = sum(x(k), {k}, Op::MaxOver);
    auto weight = [&](NodeRef column) { return make(Op::Exp, {minus(x(column), largest)}); };
    NodeRef result = make(Op::Div, {weight(j), sum(weight(l), {l})});
    maker.store(out, BodyMaker::at({i, j}, std::vector<int64_t>{5, n}), result, {i, j});
    check();
    LowerOptions options;
    options.capabilities.fast_memory_bytes = 1 << 12;
    const Program program = lower(maker.body, options).program;
    auto count = [&](Code code) {
      return std::ranges::count(program.code, code, &Instruction::code);
    };
    CHECK(count(Code::Prefetch) >= 1);
    CHECK(count(Code::Loop) == 4);  // rows; the largest, exponentials and their sum, quotients
  }
}

TEST_CASE_FIXTURE(Fixture, "matrix products with prologue and epilogue") {
  struct Sizes {
    int64_t m, n, k;
  };
  for (auto [m, n, k] : {Sizes{3, 5, 4}, Sizes{17, 35, 9}, Sizes{8, 64, 33}, Sizes{1, 40, 7}})
    for (int transposed : {0, 1, 2, 3}) {
      maker = {};
      NodeRef i = axis("i", m), j = axis("j", n), l = axis("l", k);
      NodeRef a = buffer(m * k), b = buffer(k * n), bias = buffer(n), out = buffer(m * n);
      NodeRef at_a = transposed & 1 ? BodyMaker::at({l, i}, std::vector<int64_t>{k, m})
                                    : BodyMaker::at({i, l}, std::vector<int64_t>{m, k});
      NodeRef at_b = transposed & 2 ? BodyMaker::at({j, l}, std::vector<int64_t>{n, k})
                                    : BodyMaker::at({l, j}, std::vector<int64_t>{k, n});
      NodeRef left = make(Op::Max, {BodyMaker::load(a, at_a), number(0)});
      NodeRef product = sum(mul(left, BodyMaker::load(b, at_b)), {l});
      NodeRef result = make(Op::Max, {add(product, BodyMaker::load(bias, j)), number(-1)});
      maker.store(out, BodyMaker::at({i, j}, std::vector<int64_t>{m, n}), result, {i, j});
      check();
    }
}

TEST_CASE_FIXTURE(Fixture, "products of matrices too large for a cache, transposed or not") {
  for (int transposed : {0, 1, 2, 3}) {
    maker = {};
    constexpr int64_t m = 40, n = 64, k = 48;
    NodeRef i = axis("i", m), j = axis("j", n), l = axis("l", k);
    NodeRef a = buffer(m * k), b = buffer(k * n), out = buffer(m * n);
    NodeRef at_a = transposed & 1 ? BodyMaker::at({l, i}, std::vector<int64_t>{k, m})
                                  : BodyMaker::at({i, l}, std::vector<int64_t>{m, k});
    NodeRef at_b = transposed & 2 ? BodyMaker::at({j, l}, std::vector<int64_t>{n, k})
                                  : BodyMaker::at({l, j}, std::vector<int64_t>{k, n});
    NodeRef product = sum(mul(BodyMaker::load(a, at_a), BodyMaker::load(b, at_b)), {l});
    maker.store(out, BodyMaker::at({i, j}, std::vector<int64_t>{m, n}), product, {i, j});
    check();
  }
}

TEST_CASE_FIXTURE(Fixture, "products of symbolic sizes") {
  struct Sizes {
    int64_t m, n, k;
  };
  for (auto [m, n, k] : {Sizes{5, 20, 7}, Sizes{33, 70, 40}, Sizes{1, 1, 1}, Sizes{9, 17, 0}})
    for (int transposed : {0, 3}) {
      maker = {};
      NodeRef rows = maker.variable("m", 1, 512), columns = maker.variable("n", 1, 512);
      NodeRef steps = maker.variable("k", 0, 512);
      NodeRef i = maker.axis("i", rows, 512), j = maker.axis("j", columns, 512);
      NodeRef l = maker.axis("l", steps, 512);
      NodeRef a = maker.buffer(DType::F32, index_mul(rows, steps));
      NodeRef b = maker.buffer(DType::F32, index_mul(steps, columns));
      NodeRef out = maker.buffer(DType::F32, index_mul(rows, columns));
      NodeRef at_a = transposed & 1 ? BodyMaker::at({l, i}, std::vector<NodeRef>{steps, rows})
                                    : BodyMaker::at({i, l}, std::vector<NodeRef>{rows, steps});
      NodeRef at_b = transposed & 2 ? BodyMaker::at({j, l}, std::vector<NodeRef>{columns, steps})
                                    : BodyMaker::at({l, j}, std::vector<NodeRef>{steps, columns});
      NodeRef product = sum(mul(BodyMaker::load(a, at_a), BodyMaker::load(b, at_b)), {l});
      maker.store(out, BodyMaker::at({i, j}, std::vector<NodeRef>{rows, columns}), product, {i, j});
      check({m, n, k});
    }
}

TEST_CASE_FIXTURE(Fixture, "two products of one operand, with a mean of its rows") {
  NodeRef i = axis("i", 21), j = axis("j", 37), k = axis("k", 50);
  NodeRef x = buffer(21 * 50), u = buffer(50 * 37), v = buffer(50 * 37), out = buffer(21 * 37);
  NodeRef left = BodyMaker::load(x, BodyMaker::at({i, k}, std::vector<int64_t>{21, 50}));
  NodeRef at = BodyMaker::at({k, j}, std::vector<int64_t>{50, 37});
  NodeRef first = sum(mul(left, BodyMaker::load(u, at)), {k});
  NodeRef second = sum(mul(left, BodyMaker::load(v, at)), {k});
  NodeRef mean = mul(sum(left, {k}), number(0.02));
  NodeRef gate = make(Op::Div, {first, add(mul(second, second), number(1))});
  maker.store(out, BodyMaker::at({i, j}, std::vector<int64_t>{21, 37}), add(gate, mean), {i, j});
  check();
}

TEST_CASE_FIXTURE(Fixture, "a norm before a product") {
  NodeRef i = axis("i", 19), j = axis("j", 40), k = axis("k", 24), l = axis("l", 24);
  NodeRef x = buffer(19 * 24), w = buffer(24 * 40), out = buffer(19 * 40);
  auto row = [&](NodeRef column) {
    return BodyMaker::load(x, BodyMaker::at({i, column}, std::vector<int64_t>{19, 24}));
  };
  NodeRef square = sum(mul(row(l), row(l)), {l});
  NodeRef left = make(Op::Div, {row(k), make(Op::Sqrt, {add(square, number(1))})});
  NodeRef right = BodyMaker::load(w, BodyMaker::at({k, j}, std::vector<int64_t>{24, 40}));
  maker.store(out, BodyMaker::at({i, j}, std::vector<int64_t>{19, 40}), sum(mul(left, right), {k}),
              {i, j});
  check();
}

TEST_CASE_FIXTURE(Fixture, "products of narrow floats and of integers") {
  for (DType dtype : {DType::BF16, DType::F16, DType::I32, DType::F64}) {
    maker = {};
    NodeRef i = axis("i", 18), j = axis("j", 33), k = axis("k", 40);
    NodeRef x = buffer(18 * 40, dtype), y = buffer(33 * 40, dtype), out = buffer(18 * 33, dtype);
    NodeRef left = BodyMaker::load(x, BodyMaker::at({i, k}, std::vector<int64_t>{18, 40}));
    NodeRef right = BodyMaker::load(y, BodyMaker::at({j, k}, std::vector<int64_t>{33, 40}));
    maker.store(out, BodyMaker::at({i, j}, std::vector<int64_t>{18, 33}),
                sum(mul(left, right), {k}), {i, j});
    check();
  }
}

TEST_CASE_FIXTURE(Fixture, "long sums go on in stages") {
  struct Shape {
    int64_t rows, columns, terms;
  };
  for (auto [rows, columns, terms] : {Shape{3, 4, 9000}, Shape{4, 3, 9001}, Shape{3, 4, 50'000}}) {
    maker = {};
    NodeRef i = axis("i", rows), j = axis("j", columns), k = axis("k", terms);
    NodeRef x = buffer(rows * terms), y = buffer(terms * columns), out = buffer(rows * columns);
    NodeRef left = BodyMaker::load(x, BodyMaker::at({i, k}, std::vector<int64_t>{rows, terms}));
    NodeRef right = BodyMaker::load(y, BodyMaker::at({k, j}, std::vector<int64_t>{terms, columns}));
    maker.store(out, BodyMaker::at({i, j}, std::vector<int64_t>{rows, columns}),
                sum(mul(left, right), {k}), {i, j});
    check();
  }
  for (auto [rows, columns, terms] : {Shape{1, 1, 40'003}, Shape{1, 600, 700}, Shape{3, 2, 5000}}) {
    maker = {};
    NodeRef i = axis("i", rows), j = axis("j", columns), k = axis("k", terms);
    NodeRef x = buffer(rows * terms * columns), out = buffer(rows * columns);
    NodeRef term =
        BodyMaker::load(x, BodyMaker::at({i, k, j}, std::vector<int64_t>{rows, terms, columns}));
    NodeRef twice = add(sum(term, {k}), sum(mul(term, term), {k}));
    maker.store(out, BodyMaker::at({i, j}, std::vector<int64_t>{rows, columns}), twice, {i, j});
    check();
  }
}

TEST_CASE_FIXTURE(Fixture, "batched products and products of products") {
  NodeRef b = axis("b", 2), i = axis("i", 9), j = axis("j", 18), k = axis("k", 6), l = axis("l", 5);
  NodeRef x = buffer(2 * 9 * 5), y = buffer(5 * 6), z = buffer(2 * 6 * 18),
          out = buffer(2 * 9 * 18);
  NodeRef left = BodyMaker::load(x, BodyMaker::at({b, i, l}, std::vector<int64_t>{2, 9, 5}));
  NodeRef middle = BodyMaker::load(y, BodyMaker::at({l, k}, std::vector<int64_t>{5, 6}));
  NodeRef right = BodyMaker::load(z, BodyMaker::at({b, k, j}, std::vector<int64_t>{2, 6, 18}));
  NodeRef inner = sum(mul(left, middle), {l});
  maker.store(out, BodyMaker::at({b, i, j}, std::vector<int64_t>{2, 9, 18}),
              sum(mul(inner, right), {k}), {b, i, j});
  check();
}

TEST_CASE_FIXTURE(Fixture, "convolution with pads, strides and channels") {
  struct Shape {
    int64_t channels, outputs, size, stride;
  };
  for (auto [channels, outputs, size, stride] :
       {Shape{2, 3, 8, 1}, Shape{3, 17, 9, 1}, Shape{2, 5, 16, 2}, Shape{20, 12, 7, 1},
        Shape{17, 5, 4, 1}, Shape{9, 7, 7, 2}}) {
    maker = {};
    const int64_t out_size = (size + 2 - 3) / stride + 1;
    NodeRef o = axis("o", outputs), y = axis("y", out_size), x = axis("x", out_size);
    NodeRef c = axis("c", channels), v = axis("v", 3), u = axis("u", 3);
    const int64_t images = size <= 7 ? 3 : 1;
    NodeRef b = axis("b", images);
    NodeRef image = buffer(images * channels * size * size),
            weight = buffer(outputs * channels * 9);
    NodeRef out = buffer(images * outputs * out_size * out_size);
    NodeRef step = index_const(stride), one = index_const(1), n = index_const(size);
    NodeRef row = index_sub(index_add(index_mul(y, step), v), one);
    NodeRef column = index_sub(index_add(index_mul(x, step), u), one);
    auto within = [&](NodeRef at) {
      return make(Op::And, {make(Op::Le, {index_const(0), at}), make(Op::Lt, {at, n})});
    };
    NodeRef pixel =
        BodyMaker::load(image, BodyMaker::at({b, c, row, column}, {n, index_const(channels), n, n}),
                        make(Op::And, {within(row), within(column)}));
    NodeRef w = BodyMaker::load(
        weight, BodyMaker::at({o, c, v, u}, std::vector<int64_t>{outputs, channels, 3, 3}));
    maker.store(
        out, BodyMaker::at({b, o, y, x}, std::vector<int64_t>{images, outputs, out_size, out_size}),
        sum(mul(pixel, w), {c, v, u}), {b, o, y, x});
    check();
  }
}

TEST_CASE_FIXTURE(Fixture, "two operands in turns, and every second element") {
  for (int64_t size : {1, 3, 8, 16, 21, 70}) {
    maker = {};
    NodeRef row = axis("row", 5), i = axis("i", size), which = axis("which", 2);
    NodeRef even = buffer(5 * size), odd = buffer(5 * size), out = buffer(5 * size * 2);
    NodeRef place = BodyMaker::at({row, i}, std::vector<int64_t>{5, size});
    NodeRef first = make(Op::Lt, {which, index_const(1)});
    NodeRef second = make(Op::Le, {index_const(1), which});
    maker.store(
        out, BodyMaker::at({row, i, which}, std::vector<int64_t>{5, size, 2}),
        make(Op::Add, {BodyMaker::load(even, place, first), BodyMaker::load(odd, place, second)}),
        {row, i, which});
    check();

    maker = {};
    NodeRef r = axis("r", 5), j = axis("j", size);
    NodeRef all = buffer(5 * size * 2), half = buffer(5 * size);
    NodeRef from = index_add(index_mul(r, index_const(2 * size)), index_mul(j, index_const(2)));
    maker.store(half, BodyMaker::at({r, j}, std::vector<int64_t>{5, size}),
                BodyMaker::load(all, index_add(from, index_const(1))), {r, j});
    check();
  }
}

TEST_CASE_FIXTURE(Fixture, "axes that only choose between values") {
  for (int64_t size : {1, 5, 16, 37}) {
    maker = {};
    NodeRef which = axis("which", 3), row = axis("row", 4), half = axis("half", 2);
    NodeRef i = axis("i", size), a = buffer(4 * size), b = buffer(4 * size);
    NodeRef out = buffer(24 * size);
    NodeRef at = BodyMaker::at({row, i}, std::vector<int64_t>{4, size});
    NodeRef x = BodyMaker::load(a, at), y = BodyMaker::load(b, at), both = mul(x, y);
    auto before = [](NodeRef choice, int64_t end) {
      return make(Op::Lt, {make_cast(choice, DType::I32),
                           make_const(DType::I32, static_cast<double>(end))});
    };
    NodeRef first = make(Op::Where, {before(half, 1), add(both, x), minus(both, x)});
    NodeRef second = make(Op::Where, {before(half, 1), both, number(2)});
    NodeRef value = make(
        Op::Where, {before(which, 1), first, make(Op::Where, {before(which, 2), second, both})});
    maker.store(out, BodyMaker::at({which, row, half, i}, std::vector<int64_t>{3, 4, 2, size}),
                value, {which, row, half, i});
    check();
  }
}

TEST_CASE_FIXTURE(Fixture, "symbolic sizes, empty ones too") {
  for (int64_t size : {0, 1, 5, 16, 35}) {
    maker = {};
    NodeRef n = maker.variable("n", 0, 64);
    NodeRef i = axis("i", 3), j = maker.axis("j", n, 64), k = maker.axis("k", n, 64);
    NodeRef a = maker.buffer(DType::F32, index_mul(n, index_const(3)));
    NodeRef out = maker.buffer(DType::F32, index_mul(n, index_const(3))), total = buffer(3);
    auto x = [&](NodeRef column) { return BodyMaker::load(a, index_add(index_mul(i, n), column)); };
    NodeRef rows = sum(x(k), {k});
    maker.store(out, index_add(index_mul(i, n), j), add(x(j), add(rows, x(index_const(0)))),
                {i, j});
    maker.store(total, i, rows, {i});
    check({size});
  }
}

TEST_CASE_FIXTURE(Fixture, "gathers, scatters and sums of scatters") {
  NodeRef t = axis("t", 11), d = axis("d", 21);
  NodeRef table = buffer(8 * 21), places = buffer(11, DType::I32), out = buffer(11 * 21);
  NodeRef gradient = buffer(8 * 21), last = buffer(8);
  NodeRef place = make(Op::AsIndex, {BodyMaker::load(places, t)});
  NodeRef inside =
      make(Op::And, {make(Op::Le, {index_const(0), place}), make(Op::Lt, {place, index_const(8)})});
  NodeRef at = index_add(index_mul(place, index_const(21)), d);
  NodeRef here = BodyMaker::at({t, d}, std::vector<int64_t>{11, 21});
  maker.store(out, here, BodyMaker::load(table, at, inside), {t, d});
  check();
  maker.body.stores.clear();
  maker.store(gradient, at, BodyMaker::load(out, here), {d, t}, inside, 1, Op::StoreAdd);
  check();
  maker.body.stores.clear();
  maker.store(
      last, place,
      BodyMaker::load(out, BodyMaker::at({t, index_const(0)}, std::vector<int64_t>{11, 21})), {t},
      inside, 0);
  check();
}

TEST_CASE_FIXTURE(Fixture, "integers, bools, indices and narrow floats as values") {
  NodeRef i = axis("i", 6), k = axis("k", 19);
  NodeRef a = buffer(6 * 19, DType::I8), b = buffer(6 * 19, DType::BF16);
  NodeRef total = buffer(6, DType::I8), mean = buffer(6, DType::BF16), where = buffer(6 * 19);
  NodeRef at = BodyMaker::at({i, k}, std::vector<int64_t>{6, 19});
  NodeRef x = BodyMaker::load(a, at), y = BodyMaker::load(b, at);
  maker.store(total, i, sum(x, {k}), {i});
  maker.store(mean, i, sum(y, {k}), {i});
  NodeRef large = make(Op::Lt, {make_const(DType::I8, 2), x});
  NodeRef column = make_cast(k, DType::F32);
  maker.store(where, at, make(Op::Where, {large, column, make_cast(y, DType::F32)}), {i, k});
  check();
}

TEST_CASE_FIXTURE(Fixture, "axes of nothing: no stores, units of reductions") {
  NodeRef i = axis("i", 0), j = axis("j", 4);
  NodeRef a = buffer(4), out = buffer(4), none = buffer(0);
  maker.store(out, j, add(sum(BodyMaker::load(a, i), {i}), number(2)), {j});
  maker.store(none, i, number(1), {i});
  check();
}
