// Index expressions: bounds, every simplification rule, proofs and limits, as tables of texts. Must
// not check values in bulk: symbolic_fuzz_test.cc does, by brute force.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "index_text.h"
#include "ir/build.h"
#include "ir/index.h"
#include "ir/print.h"
#include "rewrite/rewriter.h"
#include "symbolic/bounds.h"
#include "symbolic/limits.h"
#include "symbolic/prove.h"
#include "symbolic/simplify.h"

using namespace anneal;

namespace {

constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();

// ---- simplification

struct Case {
  std::string_view rule, before, after;
};

// One or more lines a rule. Ranges are those of variable() above.
constexpr Case kCases[] = {
    // index-sums
    {"index-sums/fold-by-bounds", "five + a", "a + 5"},
    {"index-sums/fold-by-bounds", "x // 100", "0"},
    {"index-sums/fold-by-bounds", "2 * 3 + 4", "10"},
    {"index-sums/normal-sum", "x + y + x", "x * 2 + y"},
    {"index-sums/normal-sum", "(x + 3) * 2 - x", "x + 6"},
    {"index-sums/fold-by-bounds", "x - x + 4", "4"},
    {"index-sums/normal-product", "(x * 3) * (y * 5)", "x * y * 15"},
    {"index-sums/sum-of-products", "(a + b) * n - a * n", "b * n"},
    {"index-sums/sum-of-products", "a * n + b * n", "(a + b) * n"},
    {"index-sums/recombine-quotient", "x // 4 * 4 + x % 4", "x"},
    {"index-sums/recombine-quotient", "x // 4 * 12 + x % 4 * 3 + y", "x * 3 + y"},
    {"index-sums/recombine-quotient", "(x + 5) // 8 * 8 + (x + 13) % 8", "x + 5"},
    {"index-sums/recombine-quotient", "x // n * n + x % n", "x"},
    {"index-sums/recombine-quotient", "(x + y * 24) // 15 * 15 + (x - y * 6) % 15", "x + y * 24"},
    {"index-sums/recombine-quotient", "z // -4 * -4 + z % -4", "z"},
    {"index-sums/recombine-quotient", "(x + 20) // 12 * 3 + (x // 4 + 5) % 3", "x // 4 + 5"},
    {"index-sums/recombine-quotient", "x // 12 * 12 + (x // 4 % 3) * 4 + x % 4", "x"},
    {"index-sums/recombine-digits", "(z // 4 % 3) * 4 + z % 4", "z % 12"},
    {"index-sums/recombine-digits", "(r // 30 % 5) * 6 + (r // 15 % 2) * 3 + r // 5 % 3",
     "r // 5 % 30"},
    {"index-sums/remainder-of-sum", "x - x // 7 * 7", "x % 7"},
    {"index-sums/remainder-of-sum", "x * 2 + y - (x + y) // 7 * 7", "x + (x + y) % 7"},
    {"index-sums/normal-extremum", "max(x, max(y, x))", "max(x, y)"},
    {"index-sums/drop-dominated", "max(x, x + 1)", "x + 1"},
    {"index-sums/drop-dominated", "min(max(y, x + 99), max(a, z))", "max(a, z)"},
    {"index-sums/common-terms", "max(x + z, y + z)", "max(x, y) + z"},
    {"index-sums/common-terms", "min(x + 3, y + 3)", "min(x, y) + 3"},
    {"index-sums/choose-known", "where(a < 8, x, y)", "x"},
    {"index-sums/choose-equal", "where(a < 4, x, x)", "x"},
    {"index-sums/choose-by-negation", "where(not(a == 4), x, y)", "where(a == 4, y, x)"},
    {"index-sums/choose-twice", "where(a < 4, where(a < 4, x, y), z)", "where(a < 4, x, z)"},
    {"index-sums/choose-twice", "where(a < 4, z, where(a < 4, x, y))", "where(a < 4, z, y)"},
    {"index-sums/choose-common-terms", "where(a < 4, x + z, y + z)", "where(a < 4, x, y) + z"},
    // index-division
    {"index-division/by-one", "x // 1", "x"},
    {"index-division/by-one", "x // -1", "x * -1"},
    {"index-sums/fold-by-bounds", "x % 1", "0"},
    {"index-sums/fold-by-bounds", "(a + 16) // 8", "2"},
    {"index-division/one-quotient", "(a + 16) % 8", "a"},
    {"index-division/one-quotient", "(a - 8) % 8", "a"},
    {"index-division/one-quotient", "p % n // n", "0"},
    {"index-division/one-quotient", "(p % n - n) // n", "-1"},
    {"index-division/exact-terms", "(x * 8 + a) // 8", "x"},
    {"index-division/exact-terms", "(x * 8 + y) // 8", "x + y // 8"},
    {"index-division/exact-terms", "(x * 8 + y * 16 + z + 8) // 8", "x + y * 2 + z // 8 + 1"},
    {"index-division/exact-terms", "(x * 8 + y) % 8", "y % 8"},
    {"index-division/exact-terms", "(x * -6 + z) // -6", "x + z // -6"},
    {"index-division/exact-terms", "(n * z + w) // n", "z + w // n"},
    {"index-division/exact-terms", "((z * 4 + w) * n + x) % n", "x % n"},
    {"index-division/exact-terms", "(z * (n + 2) + x) // (n + 2)", "z + x // (n + 2)"},
    {"index-division/exact-terms", "(n * 3 + 6 + x) // (n + 2)", "x // (n + 2) + 3"},
    {"index-division/reduced-factors", "(x * 9 + 7) % 4", "(x + 3) % 4"},
    {"index-division/reduced-factors", "(x + 13) % 8", "(x + 5) % 8"},
    {"index-division/reduced-factors", "(x * 15 + y) % 8", "(y - x) % 8"},
    {"index-division/remainder-of-remainder", "x % 12 % 4", "x % 4"},
    {"index-division/remainder-of-remainder", "(x % 12 + y) % 4", "(x + y) % 4"},
    {"index-division/remainder-of-remainder", "(x % 6 * 2 + y) % 12", "(x * 2 + y) % 12"},
    {"index-division/remainder-of-remainder", "x % (n * 4) % n", "x % n"},
    {"index-division/quotient-of-quotient", "x // 4 // 3", "x // 12"},
    {"index-division/quotient-of-quotient", "z // -4 // 3", "z // -12"},
    {"index-division/quotient-of-quotient", "(x // 4 + 3) // 5", "(x + 12) // 20"},
    {"index-division/quotient-of-quotient", "x // n // m", "x // (n * m)"},
    {"index-division/quotient-of-remainder", "z % 12 // 4", "z // 4 % 3"},
    {"index-division/quotient-of-remainder", "x % 12 // 4 % 3", "x // 4 % 3"},
    {"index-division/quotient-of-remainder", "r % (n * m) // n", "r // n % m"},
    {"index-division/low-part", "(x * 6 + y * 3) // 9", "(x * 2 + y) // 3"},
    {"index-division/low-part", "(x * 6 + y * 3 + 1) // 9", "(x * 2 + y) // 3"},
    {"index-division/low-part", "(x * 4 + b) // 8", "x // 2"},
    {"index-division/low-part", "(x * 4 + b) % 8", "x % 2 * 4 + b"},
    {"index-division/low-part", "x * 4 % 12", "x % 3 * 4"},
    {"index-division/low-part", "(x * n + p % n) // (n * m)", "x // m"},
    {"index-division/low-part", "(x * n + p % n - n) // (n * m)", "(x - 1) // m"},
    {"index-division/low-part", "(x * n + p % n) % (n * m)", "x % m * n + p % n"},
    {"index-division/congruent", "b * 5 // 4", "b"},
    {"index-division/congruent", "(b * 7 + 3) % 8", "b * -1 + 3"},
    {"index-division/negative-numerator", "(99 - x) // 4", "24 - x // 4"},
    {"index-division/negative-numerator", "(99 - x) % 4", "3 - x % 4"},
    // index-comparison
    {"index-comparison/decided", "a < 8", "true"},
    {"index-comparison/decided", "x + 1 <= x", "false"},
    {"index-comparison/decided", "x + a == x - 1", "false"},
    {"index-comparison/decided", "(n - 1) * m + q < n * m + 16", "true"},
    {"index-comparison/normal-comparison", "x * 2 + 3 <= y * 2", "x + 1 < y"},
    {"index-comparison/normal-comparison", "x + 3 <= 9", "x < 7"},
    {"index-comparison/normal-comparison", "5 <= x", "4 < x"},
    {"index-comparison/normal-comparison", "x < y + 1", "x <= y"},
    {"index-comparison/normal-comparison", "x * 3 < 10", "x < 4"},
    {"index-comparison/normal-comparison", "z * -2 < 7", "-4 < z"},
    {"index-comparison/decided", "x * 4 + 2 == y * 4", "false"},
    {"index-comparison/normal-comparison", "y + x == y + 5", "x == 5"},
    {"index-comparison/low-part", "x * 4 + b < 12", "x < 3"},
    {"index-comparison/low-part", "x * 4 + c == y * 8 + 3", "false"},
    {"index-comparison/compared-quotient", "x // 4 < 3", "x < 12"},
    {"index-comparison/compared-quotient", "3 < x // 4", "15 < x"},
    // index-conditions
    {"index-conditions/fold-by-bounds", "and(a == b, false)", "false"},
    {"index-conditions/fold-by-bounds", "or(a == b, true)", "true"},
    {"index-conditions/normal-xor", "xor(a == b, a == b)", "false"},
    {"index-conditions/normal-xor", "xor(false, a == b)", "a == b"},
    {"index-conditions/opposite", "not(x < 5)", "4 < x"},
    {"index-conditions/opposite", "not(x <= y)", "y < x"},
    {"index-conditions/opposite", "not(not(x == y))", "x == y"},
    {"index-conditions/opposite-of-junction", "not(and(x < 5, y < z))", "or(4 < x, z <= y)"},
    {"index-conditions/opposite-of-junction", "not(or(not(x == 5), y < z))", "and(x == 5, z <= y)"},
    {"index-conditions/normal-junction", "and(x == 5, true)", "x == 5"},
    {"index-conditions/normal-junction", "or(x == 5, or(y == 5, x == 5))", "or(x == 5, y == 5)"},
    {"index-conditions/absorbed", "and(x == 5, or(y == 5, x == 5))", "x == 5"},
    {"index-conditions/absorbed", "or(x == y, not(x == y))", "true"},
    {"index-conditions/absorbed", "and(x < y, y <= x)", "false"},
    {"index-conditions/merge-ranges", "and(x < 5, x < 3)", "x < 3"},
    {"index-conditions/merge-ranges", "and(x < 5, 4 < x)", "false"},
    {"index-conditions/merge-ranges", "and(x < 6, 4 < x)", "x == 5"},
    {"index-conditions/merge-ranges", "or(x < 5, x < 3)", "x < 5"},
    {"index-conditions/merge-ranges", "or(x < 5, 3 < x)", "true"},
    {"index-conditions/merge-ranges", "and(x + y < 9, and(z < 4, x + y < 7))",
     "and(x + y < 7, z < 4)"},
};

// What stays as it is, because it cannot be made shorter or could overflow.
constexpr std::string_view kFixed[] = {
    "x",
    "x // 7",
    "(x + 5) // 7",
    "(x * 5) // 7",
    "x // n",
    "x % (n * 4)",
    "huge * 4",
    "huge * 4 // 4",
    "huge + huge * 3",
    "x // 0",
    "x % 0",
    "z // -7",
    "z % -7",
    "max(x, y)",
    "where(x < y, x, y)",
    "x < y",
    "not(x == y)",
    "xor(x < y, z < w)",
    "(9223372036854775807 + x) // 3",
};

void check_simplifies(std::string_view before_text, std::string_view after_text) {
  NodeRef before = read(before_text), after = read(after_text), simple = simplify(before);
  INFO(before_text, " became ", to_text(simple), ", not ", after_text);
  CHECK(simple == simplify(after));
  CHECK(tree_size(simple) <= tree_size(after));
  CHECK(simplify(simple) == simple);
}

}  // namespace

TEST_CASE("symbolic: every rule simplifies as the table says") {
  for (const Case& row : kCases) {
    INFO(row.rule);
    check_simplifies(row.before, row.after);
  }
}

TEST_CASE("symbolic: every rule fires for each of its lines of the table") {
  auto fired = [](const RewriteLog& log, std::string_view rule) {
    return std::any_of(log.hits().begin(), log.hits().end(), [&](const RewriteLog::Hit& hit) {
      return fmt::format("{}/{}", hit.set, hit.rule) == rule;
    });
  };
  std::set<std::string> covered;
  for (const Case& row : kCases) {
    RewriteLog log;
    Rewriter(index_rules(), Direction::BottomUp, {}, &log).run(read(row.before));
    INFO(row.before);
    CHECK_MESSAGE(fired(log, row.rule), row.rule, " did not fire");
    covered.emplace(row.rule);
  }
  for (const RuleSet* set : index_rules())
    for (const Rule& rule : set->rules())
      CHECK_MESSAGE(covered.contains(fmt::format("{}/{}", set->name(), rule.name)), rule.name,
                    " is untested");
}

TEST_CASE("symbolic: what cannot be simplified keeps its value and length") {
  for (std::string_view text : kFixed) {
    NodeRef before = read(text), after = simplify(before);
    INFO(text, " became ", to_text(after));
    CHECK(tree_size(after) == tree_size(before));
    CHECK(simplify(after) == after);
  }
  NodeRef fixed = read("huge * 4 // 4");
  CHECK(simplify(fixed) == fixed);
}

TEST_CASE("symbolic: rules leave tensors alone") {
  std::vector<NodeRef> none;
  NodeRef t = make_buffer("t", new_buffer_slot(), DType::I32, none);
  NodeRef flag = make(Op::Lt, {t, t});
  std::vector<NodeRef> roots{
      make(Op::Add, {t, make_const_like(t, 0)}),
      make(Op::FloorDiv, {t, make_const_like(t, 1)}),
      make(Op::Max, {t, t}),
      make(Op::Eq, {t, t}),
      make(Op::And, {flag, flag}),
      make(Op::Where, {flag, t, t}),
      make(Op::Xor, {flag, make_const(DType::Bool, 0)}),
  };
  CHECK(simplify(roots) == roots);
}

TEST_CASE("symbolic: long and deep expressions are no problem") {
  NodeRef sum = variable("x"), nested = variable("x");
  for (int i = 0; i < 20000; ++i) {
    sum = make(Op::Add, {sum, variable(i % 2 ? "x" : "y")});
    nested = make(Op::Max, {make(Op::Mod, {nested, index_const(1000 + i)}), variable("z")});
  }
  CHECK(bounds(sum).max == 99 * 20001);
  CHECK(tree_size(simplify(sum)) <= tree_size(sum));
  CHECK(to_text(simplify(nested)) == to_text(simplify(read("max(x, z)"))));
  // Shared so often that written out it would have 2^60 leaves.
  NodeRef shared = variable("x");
  for (int i = 0; i < 60; ++i) shared = make(Op::Add, {shared, shared});
  CHECK(simplify(shared) == simplify(simplify(shared)));
}

// ---- bounds

TEST_CASE("symbolic: bounds") {
  struct Row {
    std::string_view text;
    int64_t min, max;
  };
  const Row kRows[] = {
      {"7", 7, 7},
      {"z", -50, 49},
      {"x + z * 2", -100, 197},
      {"x - x", 0, 0},
      {"(x + z) * 2 - x * 2", -100, 98},
      {"z * w", -2450, 2500},
      {"z * z", 0, 2500},
      {"z // 7", -8, 7},
      {"z // -7", -7, 7},
      {"z // n", -50, 49},
      {"100 // n", 1, 100},
      {"z % 7", 0, 6},
      {"z % -7", -6, 0},
      {"(a + 16) % 12", 4, 11},
      {"(a + 10) % 12", 0, 11},
      {"(b + 16) % 12", 4, 7},
      {"x % n", 0, 63},
      {"b % (n + 3)", 0, 3},
      {"x // z", -99, 99},
      {"max(z, 3)", 3, 49},
      {"min(z, a)", -50, 7},
      {"where(x < 200, a, z)", 0, 7},
      {"where(x < 20, a, z)", -50, 49},
      {"x < 5", 0, 1},
      {"x < x + 1", 1, 1},
      {"x + 1 == x", 0, 0},
      {"and(x < 5, x < 0)", 0, 0},
      {"not(x < 0)", 1, 1},
      {"x // 0", kLow, kHigh},
      {"huge * 2 + huge", kLow, kHigh},
  };
  for (const Row& row : kRows) {
    INFO(row.text);
    CHECK(bounds(read(row.text)).min == row.min);
    CHECK(bounds(read(row.text)).max == row.max);
  }
}

// ---- proofs

TEST_CASE("symbolic: bounds of a node are never those of one that was freed") {
  Graph own;
  GraphScope scope(own);
  const auto n_below = [](int64_t size) { return make_variable("n", 0, size - 1); };
  bounds(n_below(1000));
  const size_t remembered = remembered_facts();
  for (int64_t size = 2; size < 100; ++size) {  // the same numbers, and likely the same addresses
    Graph scratch;
    const auto in_scratch = [&] {
      GraphScope inner(scratch);
      return n_below(size);
    };
    CHECK(bounds(in_scratch()).max == size - 1);
    CHECK(simplify(n_below(size))->arg.symbol->second == size - 1);
  }
  CHECK(remembered_facts() < remembered + 200);  // of its own nodes alone

  for (int64_t size = 1; size < 100; ++size) {
    own.collect();
    CHECK(remembered_facts() == 0);
    CHECK(bounds(n_below(size)).max == size - 1);
  }
}

TEST_CASE("symbolic: a graph of its own keeps its facts while another is current") {
  Graph outer, inner;
  GraphScope scope(outer);
  const NodeRef n = make_variable("n", 0, 7);
  CHECK(bounds(n).max == 7);
  {
    GraphScope other(inner);
    CHECK(remembered_facts() == 0);
    CHECK(bounds(n).max == 7);
    CHECK(remembered_facts() == 0);  // n can be gone before this graph is
    CHECK_THROWS_AS(simplify(n), InternalError);
  }
  CHECK(remembered_facts() == 1);
}

TEST_CASE("symbolic: proofs") {
  enum Shown { kNothing, kLess, kLessEqual, kEqual };
  struct Row {
    std::string_view a, b;
    Shown shown;
  };
  const Row kRows[] = {
      {"a", "8", kLess},
      {"a", "7", kLessEqual},
      {"a", "6", kNothing},
      {"x + y", "y + x", kEqual},
      {"x", "x + n", kLess},
      {"x // 4 * 4", "x", kLessEqual},
      {"n // 2", "n", kLess},
      {"x // 2 + x // 3", "x", kLessEqual},
      {"x // 2 + x // 3 + x // 4", "x", kNothing},
      {"x - 3", "(x + 1) // 2 * 2", kLess},
      {"z // 2", "z", kNothing},
      {"x % n", "n", kLess},
      {"x", "max(y, x)", kLessEqual},
      {"min(y, x)", "x", kLessEqual},
      {"max(a, b)", "8", kLess},
      {"5", "min(n + 5, m + 5)", kLess},
      {"a * n", "8 * n", kLess},
      {"b * n + p % n", "4 * n", kLess},
      {"n * m - n", "n * m", kLess},
      {"(x + 1) * (n + 1)", "x * n + x + n + 1", kEqual},
      {"x", "y", kNothing},
      {"n * m", "n", kNothing},
  };
  for (const Row& row : kRows) {
    INFO(row.a, " and ", row.b);
    NodeRef left = read(row.a), right = read(row.b);
    CHECK(prove_less(left, right) == (row.shown == kLess));
    CHECK(prove_less_equal(left, right) == (row.shown != kNothing));
    CHECK(prove_equal(left, right) == (row.shown == kEqual));
  }
  CHECK(prove_nonnegative(read("x - x // 3 * 3")));
  CHECK(!prove_nonnegative(read("z")));
  CHECK(prove_true(read("or(x < y, y <= x)")));
  CHECK(!prove_true(read("x < y")));
}

TEST_CASE("symbolic: limits between variables") {
  const Case kRows[] = {
      {"", "(x * n + p) // n", "x"},
      {"", "(x * n + p) % n", "p"},
      {"", "((a * m + q) * n + p) // n % m", "q"},
      {"", "((a * m + q) * n + p) // (n * m)", "a"},
      {"", "r // n // m", "0"},
      {"", "(r % n * m + r // n) // m", "r % n"},
      {"", "(r % n * m + r // n) % m", "r // n"},
      {"", "r // n * n + r % n", "r"},
      {"", "(x * n + n - 1 - p) // n", "x"},
      {"", "p < n", "true"},
      {"", "p + 2 < n + 2", "true"},
      {"", "q * n + p < n * m", "true"},
  };
  std::vector<Limit> limits{
      {read("p"), read("n")}, {read("q"), read("m")}, {read("r"), read("n * m")}};
  {
    LimitScope scope(limits);
    for (const Case& row : kRows) check_simplifies(row.before, row.after);
    CHECK(prove_less(read("p"), read("n")));
    CHECK(prove_nonnegative(read("n - p - 1")));
  }
  CHECK(!prove_less(read("p"), read("n")));
  CHECK(simplify(read("p < n")) == read("p < n"));
}
