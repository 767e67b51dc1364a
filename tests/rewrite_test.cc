// The rewrite engine: patterns, drivers, counts, traces, disabling.
#include <doctest/doctest.h>

#include "ir/build.h"
#include "ir/index.h"
#include "ir/print.h"
#include "rewrite/rewriter.h"

using namespace anneal;
using namespace anneal::captures;

namespace {

struct Leaves {
  Graph graph;
  GraphScope scope{graph};
  std::vector<NodeRef> dims = static_dims(std::vector<int64_t>{4});
  NodeRef p = make_buffer("p", 0, DType::F32, dims), q = make_buffer("q", 0, DType::F32, dims);
  NodeRef i = make_buffer("i", 0, DType::I32, dims);
  NodeRef number(double value) { return make_const(DType::F32, value, dims); }
};

bool matches(const Pattern& pattern, NodeRef node, Match* found = nullptr) {
  for (const Pattern& order : pattern.orders()) {
    Match match;
    if (!order.match(node, match)) continue;
    if (found) *found = match;
    return true;
  }
  return false;
}

bool is_i32(NodeRef node) { return node->dtype == DType::I32; }

}  // namespace

TEST_CASE("rewrite: captures, numbers and constants") {
  Leaves l;
  Match m;
  CHECK(matches(x * 2, make(Op::Mul, {l.p, l.number(2)}), &m));
  CHECK(m[x] == l.p);
  CHECK(m.root()->op == Op::Mul);
  CHECK(!matches(x * 2, make(Op::Mul, {l.p, l.number(3)})));
  CHECK(matches(x * c, make(Op::Mul, {l.p, l.number(3)}), &m));
  CHECK(m[c] == l.number(3));
  CHECK(!matches(x * c, make(Op::Mul, {l.p, l.q})));
  // -0.0 is not 0
  CHECK(!matches(x + 0, make(Op::Add, {l.p, l.number(-0.0)})));
}

TEST_CASE("rewrite: commutative ops match in either order, others do not") {
  Leaves l;
  CHECK(matches(x * 2, make(Op::Mul, {l.number(2), l.p})));
  CHECK(matches((x + 1) * 2, make(Op::Mul, {l.number(2), make(Op::Add, {l.number(1), l.p})})));
  CHECK(matches(x / 2, make(Op::Div, {l.p, l.number(2)})));
  CHECK(!matches(x / 2, make(Op::Div, {l.number(2), l.p})));
}

TEST_CASE("rewrite: a capture used twice needs the same node twice") {
  Leaves l;
  CHECK(matches(x + x, make(Op::Add, {l.p, l.p})));
  CHECK(!matches(x + x, make(Op::Add, {l.p, l.q})));
  // needs backtracking over the order of the inner product
  CHECK(matches((x * y) + y, make(Op::Add, {make(Op::Mul, {l.q, l.p}), l.q})));
}

TEST_CASE("rewrite: op sets, names and guards") {
  Leaves l;
  Pattern either = any_of({Op::Exp, Op::Log}, x).as(z);
  Match m;
  CHECK(matches(either, make(Op::Log, {l.p}), &m));
  CHECK(m[z]->op == Op::Log);
  CHECK(!matches(either, make(Op::Sin, {l.p})));
  CHECK(matches(any_of({Op::Buffer}), l.p));
  CHECK(matches((x + y).when(is_i32), make(Op::Add, {l.i, l.i})));
  CHECK(!matches((x + y).when(is_i32), make(Op::Add, {l.p, l.p})));
}

TEST_CASE("rewrite: bottom-up runs to a fixpoint and keeps unchanged handles") {
  Leaves l;
  const RuleSet rules{
      "test",
      {{"exp-log", op(Op::Exp, op(Op::Log, x)), [](const Match& m) { return m[x]; }},
       {"sin-to-log", op(Op::Sin, x), [](const Match& m) { return make(Op::Log, {m[x]}); }}}};
  NodeRef untouched = make(Op::Add, {l.p, l.q});
  RewriteLog log(10);
  Rewriter rewriter({&rules}, Direction::BottomUp, {}, &log);
  CHECK(rewriter.run(untouched) == untouched);
  // exp(sin(p)) becomes exp(log(p)) becomes p, and the sum is rebuilt around it
  NodeRef changed = make(Op::Add, {make(Op::Exp, {make(Op::Sin, {l.p})}), l.q});
  CHECK(rewriter.run(changed) == untouched);
  REQUIRE(log.hits().size() == 2);
  CHECK(log.hits()[0].rule == "sin-to-log");
  CHECK(log.hits()[0].count == 1);
  CHECK(log.hits()[1].rule == "exp-log");
  REQUIRE(log.events().size() == 2);
  CHECK(log.events()[1].before.find("exp %") != std::string::npos);
  CHECK(log.events()[1].after == print(l.p));
  // memoised: the same question again fires nothing
  CHECK(rewriter.run(changed) == untouched);
  CHECK(log.hits()[0].count == 1);
}

TEST_CASE("rewrite: top-down sees a node before its sources") {
  Leaves l;
  const RuleSet rules{
      "test",
      {{"exp-of-sin", op(Op::Exp, op(Op::Sin, x)),
        [](const Match& m) { return make(Op::Sqrt, {m[x]}); }},
       {"sin-to-log", op(Op::Sin, x), [](const Match& m) { return make(Op::Log, {m[x]}); }}}};
  NodeRef node = make(Op::Exp, {make(Op::Sin, {l.p})});
  CHECK(Rewriter({&rules}, Direction::TopDown).run(node) == make(Op::Sqrt, {l.p}));
  CHECK(Rewriter({&rules}, Direction::BottomUp).run(node) == make(Op::Exp, {make(Op::Log, {l.p})}));
  NodeRef shared = make(Op::Add, {node, make(Op::Sin, {l.p})});
  CHECK(Rewriter({&rules}, Direction::TopDown).run(shared) ==
        make(Op::Add, {make(Op::Sqrt, {l.p}), make(Op::Log, {l.p})}));
}

TEST_CASE("rewrite: sets and rules can be left out by name") {
  Leaves l;
  const RuleSet rules{
      "test",
      {{"neg-neg", op(Op::Neg, op(Op::Neg, x)), [](const Match& m) { return m[x]; }},
       {"abs-abs", op(Op::Abs, op(Op::Abs, x).as(y)), [](const Match& m) { return m[y]; }}}};
  NodeRef node = make(Op::Neg, {make(Op::Neg, {make(Op::Abs, {make(Op::Abs, {l.p})})})});
  CHECK(Rewriter({&rules}).run(node) == make(Op::Abs, {l.p}));
  CHECK(Rewriter({&rules}, Direction::BottomUp, {"test/neg-neg"}).run(node) ==
        make(Op::Neg, {make(Op::Neg, {make(Op::Abs, {l.p})})}));
  CHECK(Rewriter({&rules}, Direction::BottomUp, {"test"}).run(node) == node);
}

TEST_CASE("rewrite: rules know the facts that the rewriter is given, and no others") {
  Leaves l;
  struct Limit {
    int most;
  };
  const RuleSet rules{"test", {{"few-steps", op(Op::Exp, x), [](const Match& m) {
                                  return m.facts<Limit>().most < 3 ? m[x] : unchanged;
                                }}}};
  NodeRef node = make(Op::Exp, {l.p});
  auto run = [&](const Facts& facts) {
    return Rewriter({&rules}, Direction::BottomUp, {}, nullptr, nullptr, facts).run(node);
  };
  const Limit few{2}, many{3};
  CHECK(run(Facts(few)) == l.p);
  CHECK(run(Facts(many)) == node);
  CHECK(run(Facts(few)) == l.p);
  const int other = 2;
  CHECK_THROWS_AS(run(Facts(other)), InternalError);
  CHECK_THROWS_AS(run(Facts()), InternalError);
}

TEST_CASE("rewrite: rules that never end are an internal error, not a hang") {
  Leaves l;
  const RuleSet rules{"test", {{"grow", op(Op::Exp, x), [](const Match& m) {
                                  return make(Op::Exp, {make(Op::Neg, {m[x]})});
                                }}}};
  CHECK_THROWS_AS(Rewriter({&rules}).run(make(Op::Exp, {l.p})), InternalError);
}

TEST_CASE("rewrite: a chain of 100,000 nodes") {
  Leaves l;
  const RuleSet rules{
      "test", {{"neg-neg", op(Op::Neg, op(Op::Neg, x)), [](const Match& m) { return m[x]; }}}};
  NodeRef node = l.p;
  for (int i = 0; i < 100000; ++i) node = make(Op::Neg, {node});
  CHECK(Rewriter({&rules}).run(node) == l.p);
  NodeRef mixed = l.p;
  for (int i = 0; i < 100000; ++i) mixed = make(i % 2 ? Op::Neg : Op::Exp, {mixed});
  CHECK(Rewriter({&rules}, Direction::TopDown).run(mixed) == mixed);
}
