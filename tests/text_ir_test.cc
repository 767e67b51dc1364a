// The text form of the IR: print and parse are inverse, errors name their place, verify finds what
// is wrong. Must not depend on the ids or addresses of nodes.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/build.h"
#include "ir/index.h"
#include "ir/infer.h"
#include "ir/print.h"
#include "ir/verify.h"

using namespace anneal;
using namespace std::string_view_literals;

namespace {

constexpr int64_t kI64Min = std::numeric_limits<int64_t>::min();
constexpr int64_t kI64Max = std::numeric_limits<int64_t>::max();

#ifndef ANNEAL_SOURCE_DIR
#define ANNEAL_SOURCE_DIR "."
#endif
constexpr const char* kCorpus = ANNEAL_SOURCE_DIR "/tests/fuzz/corpus/text_ir";

using Roots = std::vector<NodeRef>;

std::vector<NodeRef> dims(std::initializer_list<int64_t> sizes) {
  return static_dims(std::span(sizes.begin(), sizes.size()));
}
NodeRef var(std::string_view name, int64_t max = 1024) { return make_variable(name, 1, max); }
NodeRef axes(Op op, NodeRef source, std::initializer_list<int64_t> list) {
  return make_axes(op, source, std::span(list.begin(), list.size()));
}
NodeRef input(DType dtype, std::span<const NodeRef> sizes, int64_t slot = 0) {
  return make_buffer("x", slot, dtype, sizes);
}

std::string describe(const std::variant<Roots, ParseError>& result) {
  const ParseError* error = std::get_if<ParseError>(&result);
  return error ? fmt::format("{}:{}: {}", error->line, error->column, error->message) : "accepted";
}

// In the graph of the roots the same handles come back; in a fresh one the same text.
void check_round_trip(const Roots& roots) {
  const std::string text = print(roots);
  auto again = parse(text);
  INFO(text.substr(0, 4000), describe(again));
  REQUIRE(std::holds_alternative<Roots>(again));
  CHECK(std::get<Roots>(again) == roots);
  CHECK(verify(roots, kTensorStage) == "");

  Graph fresh;
  GraphScope scope(fresh);
  auto copy = parse(text);
  REQUIRE(std::holds_alternative<Roots>(copy));
  CHECK(print(std::get<Roots>(copy)) == text);
  CHECK(std::equal(roots.begin(), roots.end(), std::get<Roots>(copy).begin(),
                   std::get<Roots>(copy).end(),
                   [](NodeRef a, NodeRef b) { return a->key == b->key; }));
}

// ---- programs

// Every elementwise op over every dtype it takes: the table says which, try_make agrees.
Roots elementwise() {
  Roots roots;
  NodeRef condition = input(DType::Bool, {}, 99);
  for (int i = 0; i < kTensorOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (!is_elementwise(op)) continue;
    for (DType dtype : kAllDTypes) {
      NodeRef x = dtype == DType::Index ? var("n") : input(dtype, {}, i);
      Roots sources(info(op).sources, x);
      if (op == Op::Where) sources[0] = condition;
      for (DType to : kAllDTypes) {
        if (info(op).type != TypeRule::Given && to != dtype) continue;
        std::string error;
        if (NodeRef node = current_graph().try_make(op, to, sources, {}, &error))
          roots.push_back(node);
      }
    }
  }
  return roots;
}

Roots constants() {
  Roots roots;
  for (DType dtype : kAllDTypes) {
    std::vector<Scalar> values{lowest(dtype), highest(dtype), Scalar::of_int(dtype, 0),
                               Scalar::of_int(dtype, 1)};
    if (is_float(dtype)) {
      for (double value : {std::nan(""), -0.0, 0.1, -2.5, 5e-324, 1e-45, 6e-8, 0.001953125,
                           lowest_finite(dtype), largest_finite(dtype)})
        values.push_back(Scalar::of(dtype, value));
    }
    for (const Scalar& value : values) roots.push_back(make_const(value));
  }
  roots.push_back(make_const(DType::F32, 0.5, dims({2, 0, 3})));
  return roots;
}

Roots movements() {
  NodeRef n = var("n"), m = var("m");
  NodeRef x = input(DType::F32, Roots{n, index_const(1), m});
  NodeRef n1 = index_add(n, index_const(1));
  return {
      make_tail(Op::Reshape, x, Roots{index_mul(n, m)}),
      make_tail(Op::Reshape, input(DType::F32, dims({1})), {}),
      axes(Op::Permute, x, {2, 0, 1}),
      make_tail(Op::Expand, x, Roots{n, n1, m}),
      make_tail(Op::Pad, x, Roots{index_const(0), n, n1, index_const(0), n, m}),
      make_tail(Op::Shrink, x, Roots{index_const(1), n, index_const(0), index_const(1), n1, m}),
      axes(Op::Flip, x, {0, 2}),
      axes(Op::Flip, x, {}),
  };
}

Roots reductions() {
  NodeRef x = input(DType::F32, Roots{index_const(4), index_const(5), var("n")});
  Roots roots;
  for (Op op : {Op::ReduceSum, Op::ReduceProd, Op::ReduceMax, Op::ReduceMin}) {
    roots.push_back(axes(op, x, {0, 2}));
    roots.push_back(axes(op, input(DType::I8, {}), {}));
  }
  return roots;
}

Roots indexed() {
  NodeRef x = input(DType::F32, dims({4, 3})), places = input(DType::I32, dims({4, 7}), 1);
  NodeRef values = input(DType::F32, dims({4, 7}), 2);
  return {make(Op::Gather, {x, places}, Arg(int64_t{1})),
          make(Op::Scatter, {x, places, values}, Arg(int64_t{1})),
          make(Op::ScatterAdd, {x, places, values}, Arg(int64_t{1})),
          make_iota(DType::I32, dims({4, 3}), 0), make_iota(DType::F64, Roots{var("n")}, 0)};
}

Roots structure() {
  NodeRef x = input(DType::F32, dims({2}));
  Graph& graph = current_graph();
  return {make(Op::Contiguous, {x}),
          make(Op::StopGradient, {x}),
          make(Op::CustomGrad, {x, var("n"), x}, Arg(graph.intern_symbol("mine", 3, 0))),
          make(Op::CustomGrad, {x}, Arg(graph.intern_symbol("", -3, kI64Min))),
          make(Op::Named, {x}, Arg(graph.intern_symbol("hidden", 7, 0))),
          make(Op::Named, {x}, Arg(graph.intern_symbol("", 8, 0))),
          make(Op::Assign, {x, make(Op::Neg, {x})})};
}

// As written, not in normal form: the parser must not tidy them.
Roots index_expressions() {
  NodeRef n = var("n"), three = index_const(3);
  NodeRef messy = make(Op::Add, {make(Op::Add, {three, three}), make(Op::Mul, {three, n})});
  NodeRef picked = make(Op::Where, {make(Op::Lt, {n, three}), messy, n});
  return {messy,
          picked,
          input(DType::F32, Roots{picked, messy}),
          three,
          n,
          index_const(kI64Min),
          index_const(kI64Max)};
}

Roots names() {
  Roots roots;
  int64_t slot = 0;
  for (std::string_view text :
       {""sv, "a b"sv, "q\"uo\\te"sv, "two\nlines\r\t"sv, "\0nul"sv, "gr\xc3\xbc\xff"sv,
        "// no comment"sv, "%1"sv, "return"sv, "axis"sv}) {
    roots.push_back(make_buffer(text, slot++, DType::F32, Roots{var(text), var("n")}));
    roots.push_back(var(text));
  }
  return roots;
}

// Bounds are part of a variable: two may share their name.
Roots shared_names() {
  NodeRef narrow = var("n", 4), wide = var("n", 8), other = make_variable("m", kI64Min, kI64Max);
  return {input(DType::F32, Roots{narrow, wide, other}), wide, narrow};
}

Roots same_root_twice() {
  NodeRef x = input(DType::U8, {});
  return {x, x};
}

struct Program {
  const char* name;
  Roots (*build)();
};
const Program kPrograms[] = {
    {"elementwise", elementwise},
    {"constants", constants},
    {"movements", movements},
    {"reductions", reductions},
    {"indexed", indexed},
    {"structure", structure},
    {"names", names},
    {"index expressions", index_expressions},
    {"shared names", shared_names},
    {"same root twice", same_root_twice},
    {"no roots", [] { return Roots{}; }},
};

}  // namespace

TEST_CASE("text ir: every program comes back") {
  for (const Program& program : kPrograms) {
    CAPTURE(program.name);
    Graph graph;
    GraphScope scope(graph);
    check_round_trip(program.build());
  }
}

TEST_CASE("text ir: the programs cover every op and every dtype") {
  std::vector<bool> ops(kTensorOpCount), dtypes(kDTypeCount);
  Graph graph;
  GraphScope scope(graph);
  for (const Program& program : kPrograms)
    for (NodeRef node : topological_order(program.build())) {
      ops[static_cast<size_t>(node->op)] = true;
      dtypes[static_cast<size_t>(node->dtype)] = true;
    }
  for (size_t i = 0; i < ops.size(); ++i) {
    CAPTURE(name(static_cast<Op>(i)));
    CHECK(ops[i]);
  }
  CHECK(std::find(dtypes.begin(), dtypes.end(), false) == dtypes.end());
}

TEST_CASE("text ir: the format is the documented one") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef n = var("n");
  Roots sizes{n, index_const(784)};
  NodeRef half = make_const(DType::F32, 0.5, sizes);
  NodeRef product = make(Op::Mul, {make_buffer("x", 0, DType::F32, sizes), half});
  NodeRef flat = make_tail(Op::Reshape, product, Roots{index_mul(n, index_const(784))});
  CHECK(print(flat) ==
        "variable n 1..1024\n"
        "%0 = buffer \"x\" #0 : f32[n, 784]\n"
        "%1 = const 0.5 : f32[n, 784]\n"
        "%2 = mul %0, %1 : f32[n, 784]\n"
        "%3 = mul n, 784 : index\n"
        "%4 = reshape %2, [%3] : f32[%3]\n"
        "return %4\n");

  const std::string text =
      "variable n 1..8\n"
      "%0 = buffer \"x\" #-1 : f32[2, n]\n"
      "%1 = iota axis 0 : i32[2, n]\n"
      "%2 = gather %0, %1 axis 1 : f32[2, n]\n"
      "%3 = permute %2 {1, 0} : f32[n, 2]\n"
      "%4 = reduce_sum %3 {0, 1} : f32[1, 1]\n"
      "%5 = add n, 1 : index\n"
      "%6 = pad %4, [0, n, 0, 0] : f32[%5, 1]\n"
      "%7 = cast %6 : f16[%5, 1]\n"
      "%8 = custom_grad %7, %0 \"g\" #3/4 : f16[%5, 1]\n"
      "%9 = const nan : f32[]\n"
      "%10 = variable \"a b\" 1..2 : index\n"
      "return %8, 5, n, %9, %10\n";
  auto roots = parse(text);
  INFO(describe(roots));
  REQUIRE(std::holds_alternative<Roots>(roots));
  CHECK(print(std::get<Roots>(roots)) == text);
  CHECK(print_line(std::get<Roots>(roots), std::get<Roots>(roots)[0]) ==
        "%8 = custom_grad %7, %0 \"g\" #3/4 : f16[%5, 1]");
  CHECK(print_line(std::get<Roots>(roots), std::get<Roots>(roots)[1]) == "5");
  CHECK(print_line(std::get<Roots>(roots), std::get<Roots>(roots)[2]) == "variable n 1..8");
}

TEST_CASE("text ir: what is not printed but may be written") {
  Graph graph;
  GraphScope scope(graph);
  auto roots = parse(
      "// comments, blank lines, any numbering, any spacing\r\n\n"
      "  variable\tn 1 .. 4 // here too\n"
      "%7=const 5:index\n"
      "%2 = buffer \"\xc3\xbc\" # 1: f32[ n ,%7 ]\n"
      "return\t%2 , %7");
  INFO(describe(roots));
  REQUIRE(std::holds_alternative<Roots>(roots));
  CHECK(print(std::get<Roots>(roots)) ==
        "variable n 1..4\n"
        "%0 = buffer \"\\xc3\\xbc\" #1 : f32[n, 5]\n"
        "return %0, 5\n");
}

TEST_CASE("text ir: depth has no limit") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef deep = input(DType::F32, dims({2})), sum = var("n");
  for (int i = 0; i < 100'000; ++i) {
    deep = make(Op::Neg, {deep});
    sum = make(Op::Add, {sum, index_const(i)});
  }
  check_round_trip({deep, sum});
  CHECK(to_text(sum).size() < 2100);
}

TEST_CASE("text ir: the order of creation does not show") {
  std::vector<std::function<NodeRef()>> parts{
      [] { return index_mul(index_add(var("n"), var("m")), index_const(3)); },
      [] { return make_buffer("w", 4, DType::F16, dims({3, 1})); },
      [] { return make(Op::Exp, {make_buffer("x", 2, DType::F32, Roots{var("m"), var("n")})}); },
      [] { return make_const(DType::F32, 2, Roots{index_add(var("k"), var("n"))}); },
  };
  auto build = [&](Graph& graph, const std::vector<size_t>& order) {
    GraphScope scope(graph);
    Roots roots(parts.size());
    for (size_t i : order) roots[i] = parts[i]();
    return roots;
  };
  Graph one, two;
  Roots first = build(one, {0, 1, 2, 3}), second = build(two, {3, 2, 1, 0});
  CHECK(print(first) == print(second));
  for (size_t i = 0; i < first.size(); ++i) CHECK(first[i]->key == second[i]->key);
}

// ---- bad text

TEST_CASE("text ir: errors name their place and reason") {
  struct Bad {
    std::string_view text, error;  // "line:column: fragment of the message"
  };
  const Bad kBad[] = {
      {"", "1:1: expected return"},
      {"// only a comment", "1:18: expected return"},
      {"hello", "1:1: expected %number, variable or return"},
      {"\n\n  @", "3:3: expected %number, variable or return"},
      {"return %0", "1:8: %0 is not defined above"},
      {"return n", "1:8: there is no variable 'n'"},
      {"return 1,", "1:10: expected %number, an integer or a variable, found the end of the text"},
      {"return 1 2", "1:10: expected the end of the line, found '2'"},
      {"return 1\nreturn 2", "2:1: nothing may follow return"},
      {"return 9223372036854775808", "1:8: the integer does not fit in 64 bits"},
      {"return -", "1:8: expected an integer, found '-'"},
      {"return %", "1:9: expected an integer, found the end of the text"},
      {"return %-1", "1:9: a node's number is not negative"},
      {"variable 3 1..2", "1:10: expected a name, found '3'"},
      {"variable n 1.2", "1:13: expected '..', found '.'"},
      {"variable n 2..1", "1:10: variable: bounds are 2 and 1"},
      {"variable n 1..2\nvariable n 1..3", "2:10: variable n is declared twice"},
      {"variable n 1..", "1:15: expected an integer, found the end of the text"},
      {"%0 = \n", "1:6: there is no op ''"},
      {"%0 = frobnicate %1 : f32[]", "1:6: there is no op 'frobnicate'"},
      {"%0 const 1 : f32[]", "1:4: expected '=', found 'c'"},
      {"%0 = const 1 : f32[]\n%0 = const 2 : f32[]", "2:1: %0 is defined twice"},
      {"%0 = const 1 : f31[]", "1:16: there is no dtype 'f31'"},
      {"%0 = const 1.5 : i32[]", "1:12: '1.5' is no value of i32"},
      {"%0 = const 256 : u8[]", "1:12: '256' is no value of u8"},
      {"%0 = const : f32[]", "1:12: '' is no value of f32"},
      {"%0 = const 1 f32[]", "1:14: expected ':', found 'f'"},
      {"%0 = const 1 : f32", "1:19: expected '[', found the end of the text"},
      {"%0 = const 1 : f32[2", "1:21: expected ']', found the end of the text"},
      {"%0 = const 1 : f32[2,]", "1:22: expected %number, an integer or a variable, found ']'"},
      {"%0 = const 1 : f32[-1]", "1:6: const: a size is -1"},
      {"%0 = const 1 : f32[4294967296, 4294967296]", "1:6: const: has more elements"},
      {"%0 = const 1 : f32[]\n%1 = const 1 : f32[%0]", "2:6: const: a size is f32"},
      {"%0 = const 1 : index[2]", "1:21: expected the end of the line, found '['"},
      {"%0 = buffer x #0 : f32[]", "1:13: expected a quoted name, found 'x'"},
      {"%0 = buffer \"x", "1:13: the quoted name is not closed on its line"},
      {"%0 = buffer \"x\n\" #0 : f32[]", "1:13: the quoted name is not closed on its line"},
      {"%0 = buffer \"a\\q\" #0 : f32[]", "1:15: unknown escape"},
      {"%0 = buffer \"a\\x0g\" #0 : f32[]", "1:15: unknown escape"},
      {"%0 = buffer \"a\tb\" #0 : f32[]", "1:15: byte 0x09 in a quoted name"},
      {"%0 = buffer \"x\" 0 : f32[]", "1:17: expected '#', found '0'"},
      {"%0 = buffer \"x\" #0 : index", "1:6: buffer: cannot be index"},
      {"%0 = iota axis 2 : i32[4, 3]", "1:6: iota: axis is 2, rank is 2"},
      {"%0 = iota 0 : i32[4]", "1:11: expected 'axis', found '0'"},
      {"%0 = const 1 : f32[2]\n%1 = add %0 : f32[2]", "2:6: add has 1 operands, needs 2"},
      {"%0 = const 1 : f32[2]\n%1 = neg %0 : f32[3]", "2:15: neg: the type is f32[2], not f32[3]"},
      {"%0 = const 1 : f32[2]\n%1 = neg %0 : f16[2]", "2:15: neg: the type is f32[2], not f16[2]"},
      {"%0 = const 1 : f32[2]\n%1 = neg %0 : index", "2:15: neg: the type is f32[2], not index"},
      {"%0 = const 1 : f32[2]\n%1 = reshape %0 : f32[2]", "2:17: expected ',', found ':'"},
      {"%0 = const 1 : f32[2]\n%1 = reshape %0, 2 : f32[2]", "2:18: expected '[', found '2'"},
      {"%0 = const 1 : f32[2]\n%1 = reshape %0, [3] : f32[3]", "2:6: reshape: [2] and [3] differ"},
      {"%0 = const 1 : f32[2]\n%1 = pad %0, [1] : f32[3]", "2:6: pad: has 2 sources, needs 3"},
      {"%0 = const 1 : f32[2]\n%1 = flip %0 {1} : f32[2]", "2:6: flip: axes are not increasing"},
      {"%0 = const 1 : f32[2]\n%1 = flip %0 {0 : f32[2]", "2:17: expected '}', found ':'"},
      {"%0 = const 1 : f32[2]\n%1 = flip %0 : f32[2]", "2:14: expected '{', found ':'"},
      {"%0 = const 1 : f32[2]\n%1 = cast %0 : index", "2:6: cast: cannot make an index"},
      {"%0 = const 1 : f32[2]\n%1 = assign %0, %0 : f32[2]", "2:6: assign: writes to what is not"},
      {"%0 = and 1, 2 : index", "1:6: and: source 0 cannot be index"},
      {"\0"sv, "1:1: expected %number"},
      {"return \0"sv, "1:8: expected %number, an integer or a variable, found byte 0x00"},
  };
  for (const Bad& bad : kBad) {
    Graph graph;
    GraphScope scope(graph);
    const std::string got = describe(parse(bad.text));
    INFO(bad.text);
    CHECK(got.substr(0, bad.error.size()) == bad.error);
  }
}

TEST_CASE("text ir: limits hold") {
  Graph graph;
  GraphScope scope(graph);
  ParseLimits limits;
  limits.text_bytes = 400;
  limits.nodes = 10;
  limits.rank = 3;
  limits.string_bytes = 4;
  limits.index_work = 20;
  auto error = [&](const std::string& text) { return describe(parse(text, limits)); };

  CHECK(error(std::string(401, '\n')) == "1:1: the text is longer than 400 bytes");
  CHECK(error("%0 = const 1 : f32[1, 1, 1, 1]") == "1:19: more than 3 sizes");
  CHECK(error("%0 = const 1 : f32[]\n%1 = flip %0 {0, 1, 2, 3}") == "2:14: more than 3 axes");
  CHECK(error("%0 = buffer \"abcde\" #0 : f32[]") ==
        "1:13: the quoted name is longer than 4 bytes");
  CHECK(error("variable abcde 1..2") == "1:10: the name is longer than 4 bytes");
  CHECK(error("return 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20") == "1:48: more than 10 nodes");

  // A size named on many lines is summed on each of them.
  limits.nodes = 100;
  std::string text = "variable n 1..9\n%0 = mul n, 2 : index\n%1 = const 1 : f32[%0]\n";
  for (int i = 2; i < 9; ++i) text += fmt::format("%{} = shrink %1, [0, %0] : f32[%0]\n", i);
  CHECK(error(text).find("more than 20 steps of index arithmetic") != std::string::npos);

  std::string wide = "%0 = const 1 : f32[]\n%1 = custom_grad %0";
  for (size_t i = 0; i < Limits::kSources; ++i) wide += ", %0";
  CHECK(describe(parse(wide)) == "2:6: custom_grad has more than 4096 operands");
}

// A sum of shared parts doubles with every line: written out it would have 2^60 terms.
TEST_CASE("text ir: shared expressions cost what they are, not what they stand for") {
  for (std::string_view op : {"add"sv, "mul"sv, "max"sv}) {
    Graph graph;
    GraphScope scope(graph);
    std::string text = fmt::format("variable n 1..9\n%0 = {} n, n : index\n", op);
    for (int i = 1; i < 60; ++i)
      text += fmt::format("%{} = {} %{}, %{} : index\n", i, op, i - 1, i - 1);
    text += "%60 = const 1 : f32[%59]\n";
    auto roots = parse(text + "return %60, %59\n");
    INFO(describe(roots));
    REQUIRE(std::holds_alternative<Roots>(roots));
    check_round_trip(std::get<Roots>(roots));
    NodeRef huge = std::get<Roots>(roots)[1];
    CHECK(to_text(huge).size() < 2100);
    // Sizes of results are sums of it.
    std::string bad = describe(parse(text + "%61 = pad %60, [1, %58] : f32[n]\nreturn %61\n"));
    CHECK(bad.substr(0, 4) == "63:2");
    CHECK(bad.size() < 5000);
    CHECK(index_mul(huge, huge) != nullptr);
  }
}

TEST_CASE("text ir: the corpus of the fuzz target is read, but for what is bad") {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const bool bad = entry.path().filename().string().starts_with("bad_");
    Graph graph;
    GraphScope scope(graph);
    auto roots = parse(text);
    INFO(entry.path().string(), ": ", describe(roots));
    CHECK(std::holds_alternative<ParseError>(roots) == bad);
    if (!bad) check_round_trip(std::get<Roots>(roots));
    ++files;
  }
  CHECK(files >= 16);
}

// ---- text for people

TEST_CASE("text ir: infix text has the parentheses it needs") {
  Graph graph;
  GraphScope scope(graph);
  struct Case {
    const char *nodes, *text;
  };
  const Case kCases[] = {
      {"return -7", "-7"},
      {"return n", "n"},
      {"%0 = mul n, 3 : index\n%1 = add %0, 1 : index\nreturn %1", "n * 3 + 1"},
      {"%0 = add n, 1 : index\n%1 = floor_div %0, 2 : index\n%2 = mod %1, 4 : index\nreturn %2",
       "(n + 1) // 2 % 4"},
      {"%0 = mod m, 4 : index\n%1 = floor_div n, %0 : index\nreturn %1", "n // (m % 4)"},
      {"%0 = add m, 4 : index\n%1 = add n, %0 : index\nreturn %1", "n + (m + 4)"},
      {"%0 = min n, 3 : index\n%1 = max %0, m : index\nreturn %1", "max(min(n, 3), m)"},
      {"%0 = add n, -1 : index\nreturn %0", "n - 1"},
      {"%0 = add n, -9223372036854775808 : index\nreturn %0", "n - 9223372036854775808"},
      {"%0 = mul m, -1 : index\n%1 = add n, %0 : index\n%2 = add %1, 2 : index\nreturn %2",
       "n - m + 2"},
      {"%0 = add m, n : index\n%1 = mul %0, -2 : index\n%2 = add n, %1 : index\nreturn %2",
       "n - (m + n) * 2"},
      {"%0 = lt n, 3 : bool[]\n%1 = where %0, n, m : index\nreturn %1", "where(n < 3, n, m)"},
      {"%0 = variable \"a b\" 1..2 : index\n%1 = add %0, n : index\nreturn %1", "\"a b\" + n"},
  };
  for (const Case& c : kCases) {
    auto roots = parse(fmt::format("variable n 1..9\nvariable m 1..9\n{}", c.nodes));
    INFO(c.nodes, "\n", describe(roots));
    REQUIRE(std::holds_alternative<Roots>(roots));
    CHECK(to_text(std::get<Roots>(roots)[0]) == c.text);
  }
  Roots sizes{var("n"), index_const(784)};
  CHECK(to_text(*input(DType::F32, sizes)->shape) == "[n, 784]");
  CHECK(type_text(input(DType::F32, sizes)) == "f32[n, 784]");
  CHECK(type_text(input(DType::Bool, {})) == "bool[]");
  CHECK(type_text(var("n")) == "index");

  NodeRef nested = var("n");
  for (int i = 0; i < 100; ++i) nested = make(Op::Max, {index_const(i), nested});
  CHECK(to_text(nested).find("…") != std::string::npos);
  CHECK(to_text(var(std::string(5000, 'v'))).size() < 2100);
}

// ---- verify

TEST_CASE("text ir: verify knows what a stage may hold") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef x = input(DType::F32, dims({2}));
  Roots roots{make(Op::Exp, {make(Op::StopGradient, {x})})};
  CHECK(verify(roots, kTensorStage) == "");
  CHECK(verify(roots, kProgramStage) ==
        "%1 = stop_gradient %0 : f32[2]: stop_gradient is not legal in stage program");
  CHECK(verify(Roots{x}, kProgramStage) == "");
  CHECK(verify(Roots{x}, {"none", {}}) == "2: const is not legal in stage none");
}

TEST_CASE("text ir: a copy in another graph is whole, whichever graph is current") {
  Graph from, to;
  Roots copy;
  {
    GraphScope scope(from);
    Roots roots = movements();
    for (NodeRef node : reductions()) roots.push_back(node);
    copy = clone(roots, to);
  }
  GraphScope scope(to);
  CHECK(verify(copy, kTensorStage) == "");
  check_round_trip(copy);
}

TEST_CASE("text ir: verify infers every node again") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef x = input(DType::F32, dims({2}));
  // A broken node cannot be made, so one is broken after it was.
  Node* broken = const_cast<Node*>(make(Op::Exp, {x}));
  Roots roots{make(Op::Neg, {broken})};
  const Shape* right = broken->shape;
  broken->shape = input(DType::F32, dims({3}))->shape;
  CHECK(verify(roots, kTensorStage) == "%1 = exp %0 : f32[3]: its shape is [2], not [3]");
  broken->shape = right;
  broken->dtype = DType::F16;
  CHECK(verify(roots, kTensorStage) == "%1 = exp %0 : f16[2]: its dtype is f32, not f16");
  broken->dtype = DType::Index;
  broken->op = Op::Cast;
  CHECK(verify(roots, kTensorStage) == "%1 = cast %0 : index: cannot make an index");
  broken->dtype = DType::F32;
  broken->op = Op::Exp;
  CHECK(verify(roots, kTensorStage) == "");
}
