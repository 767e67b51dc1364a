// What a product is: graphs and the bodies made of them agree, and planners find its sides.
#include "schedule/graph/products.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "body/product.h"
#include "ir/build.h"
#include "schedule/schedule.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

struct Row {
  std::string name;
  Tensor (*build)();
  bool is_product;
};

Tensor of(std::vector<int64_t> sizes, const char* name, DType dtype = DType::F32) {
  return input(name, Sizes(sizes.begin(), sizes.end()), dtype);
}
Tensor squares(Tensor (*join)(const Tensor&, const Tensor&)) {
  const Tensor x = of({24, 1, 16}, "x"), y = of({1, 32, 16}, "y");
  return sum(join(x, y), {2});
}

const Row kRows[] = {
    {"matmul", [] { return matmul(of({24, 16}, "a"), of({16, 32}, "b")); }, true},
    {"of transposed operands",
     [] { return matmul(transpose(of({16, 24}, "a")), transpose(of({32, 16}, "b"))); }, true},
    {"of a batch", [] { return matmul(of({3, 24, 16}, "a"), of({3, 16, 32}, "b")); }, true},
    {"of bf16",
     [] { return matmul(of({24, 16}, "a", DType::BF16), of({16, 32}, "b", DType::BF16)); }, true},
    {"of what is computed", [] { return matmul(exp(of({24, 16}, "a")), of({16, 32}, "b") + 1); },
     true},
    {"convolution", [] { return conv2d(of({2, 3, 8, 8}, "x"), of({4, 3, 3, 3}, "w")); }, true},
    {"outer, summed over a batch",
     [] { return einsum("bi,bj->ij", {of({5, 6}, "a"), of({5, 7}, "b")}); }, true},
    {"matrix times vector", [] { return matmul(of({24, 16}, "a"), of({16}, "b")); }, false},
    {"of the same elements", [] { return sum(of({24, 16}, "a") * of({24, 16}, "b"), {1}); }, false},
    {"weighted rows", [] { return sum(of({24, 16}, "a") * of({24, 1}, "b"), {1}); }, false},
    {"weighted columns", [] { return sum(of({24, 16}, "a") * of({16}, "b"), {0}); }, false},
    {"a sum", [] { return sum(of({24, 16}, "a"), {1}); }, false},
    {"a largest product", [] { return max(of({24, 1, 16}, "x") * of({1, 32, 16}, "y"), {2}); },
     false},
    {"of distances",
     [] { return squares([](const Tensor& x, const Tensor& y) { return abs(x - y); }); }, false},
};

// The only reduction of a program's only kernel.
NodeRef only_sum(const KernelBody& body) {
  NodeRef found = nullptr;
  for (NodeRef node : topological_order(body.stores))
    if (is_reduce_over(node->op)) {
      REQUIRE(!found);
      found = node;
    }
  REQUIRE(found);
  return found;
}

AxisSet summed_by(NodeRef sum, const FreeAxes& free) {
  AxisSet axes;
  for (NodeRef axis : sum->sources().subspan(1)) axes.add(free.number(axis));
  return axes;
}

// Whether any two axes of the results make it one, as planners ask.
bool has_sides(const KernelBody& body, NodeRef sum, FreeAxes& free) {
  const AxisSet summed = summed_by(sum, free);
  NodeRef term = sum->source(0);
  for (size_t rows = 0; rows < body.axes.size(); ++rows)
    for (size_t columns = 0; columns < body.axes.size(); ++columns)
      if (rows != columns && !summed.contains(rows) && !summed.contains(columns) &&
          product_operands({&term, 1}, summed, rows, columns, free).is_product())
        return true;
  return false;
}

}  // namespace

TEST_CASE("products: graphs, bodies and planners agree on what is one") {
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    Graph graph;
    GraphScope scope(graph);
    const std::vector<NodeRef> roots = simplify_program(std::vector<NodeRef>{row.build().node()});
    int products = 0;
    for (NodeRef node : topological_order(roots)) products += is_product(node);
    CHECK(products == (row.is_product ? 1 : 0));

    ScheduleOptions options;
    options.disabled = {"split-reduce"};
    const Schedule schedule = schedule_program(roots, options);
    GraphScope inside(*schedule.graph);
    REQUIRE(schedule.kernels.size() == 1);
    const KernelBody& body = schedule.kernels[0].phases[0][0].body;
    NodeRef sum = only_sum(body), term = sum->source(0);
    while (term->op == Op::Cast) term = term->source(0);
    FreeAxes free(body);
    const FactorAxes axes = term->op == Op::Mul && sum->op == Op::SumOver
                                ? factor_axes(free.of(term->source(0)), free.of(term->source(1)))
                                : FactorAxes{};
    CHECK(axes.is_product() == row.is_product);
    // Of two factors every axis of the one and every axis of the other will do.
    const AxisSet summed = summed_by(sum, free);
    for (size_t rows : axes.rows.list())
      for (size_t columns : axes.columns.list()) {
        const ProductOperands operands = product_operands({&term, 1}, summed, rows, columns, free);
        CHECK((operands.is_product() || !row.is_product));
      }
    // Planners ask for more: any function may join the sides.
    const bool joined = row.name == "of distances" || row.name == "a largest product";
    CHECK(has_sides(body, sum, free) == (row.is_product || joined));
  }
}

TEST_CASE("products: a factor that is made of itself again and again is looked at once") {
  Graph graph;
  GraphScope scope(graph);
  const Tensor x = of({8, 1, 4}, "x"), y = of({1, 8, 4}, "y");
  NodeRef twice = x.node();
  for (int i = 0; i < 100; ++i) twice = make(Op::Add, {twice, twice});
  const std::vector<NodeRef> dims = static_dims(std::vector<int64_t>{8, 8, 4});
  const int64_t summed = 2;
  auto sum_of = [&](NodeRef factor) {
    return make_axes(
        Op::ReduceSum,
        make(Op::Mul, {make_tail(Op::Expand, factor, dims), make_tail(Op::Expand, y.node(), dims)}),
        {&summed, 1});
  };
  CHECK(is_product(sum_of(twice)));
  // And where it is repeated first.
  NodeRef wide = make_tail(Op::Expand, x.node(), dims);
  for (int i = 0; i < 60; ++i) wide = make(Op::Add, {wide, wide});
  NodeRef other = make_tail(Op::Expand, y.node(), dims);
  CHECK(is_product(make_axes(Op::ReduceSum, make(Op::Mul, {wide, other}), {&summed, 1})));
}
