// Graphs: interning, structural keys, cloning, collection.
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <doctest/doctest.h>
#include <unistd.h>

#include <anneal/anneal.h>

#include "ir/build.h"
#include "ir/index.h"
#include "ir/print.h"
#include "models/program.h"

using namespace anneal;

namespace {

// One program, its independent parts made in one order or the other.
std::vector<NodeRef> two_branches(bool reversed) {
  std::vector<NodeRef> dims{make_variable("n", 1, 64), index_const(8)};
  auto left = [&] { return make(Op::Exp, {make_buffer("x", 0, DType::F32, dims)}); };
  auto right = [&] {
    NodeRef y = make_buffer("y", 0, DType::F32, dims);
    return make(Op::Mul, {y, make_const(DType::F32, 0.5, dims)});
  };
  NodeRef a, b;
  if (reversed) {
    for (int i = 0; i < 100; ++i) make_buffer("unused", i, DType::I8, dims);
    b = right();
    a = left();
  } else {
    a = left();
    b = right();
  }
  std::vector<int64_t> axes{1};
  return {make_axes(Op::ReduceSum, make(Op::Add, {a, b}), axes)};
}

std::string keys_and_text(std::span<const NodeRef> roots) {
  std::string text;
  for (NodeRef node : topological_order(roots)) text += to_text(node->key) + "\n";
  return text + print(roots);
}

// What a fresh process prints for the test case of this name.
std::string output_of_process(const std::string& test_case) {
  std::string command = "/proc/self/exe --no-skip -tc='" + test_case + "' 2>&1";
  char self[4096];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  REQUIRE(length > 0);
  self[length] = 0;
  command.replace(0, std::string("/proc/self/exe").size(), self);
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  CHECK(pclose(pipe) == 0);
  size_t begin = text.find("<<<"), end = text.find(">>>");
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  return text.substr(begin, end - begin);
}

}  // namespace

TEST_CASE("graph: the same structure is the same node") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef x = make_buffer("x", 0, DType::F32, static_dims(std::vector<int64_t>{2, 3}));
  CHECK(make(Op::Exp, {x}) == make(Op::Exp, {x}));
  CHECK(make(Op::Add, {x, x}) != make(Op::Mul, {x, x}));
  CHECK(make_const(DType::F32, 0.0) != make_const(DType::F32, -0.0));
  CHECK(make_const(DType::F32, 1.0) != make_const(DType::F64, 1.0));
  size_t before = graph.node_count();
  make(Op::Exp, {x});
  CHECK(graph.node_count() == before);
}

TEST_CASE("graph: malformed nodes are refused") {
  Graph graph;
  GraphScope scope(graph);
  NodeRef x = make_buffer("x", 0, DType::F32, static_dims(std::vector<int64_t>{2, 3}));
  NodeRef i = make_buffer("i", 0, DType::I32, static_dims(std::vector<int64_t>{2, 3}));
  NodeRef small = make_buffer("s", 0, DType::F32, static_dims(std::vector<int64_t>{3}));
  CHECK_THROWS_AS(make(Op::Add, {x, i}), InternalError);
  CHECK_THROWS_AS(make(Op::Add, {x, small}), InternalError);
  CHECK_THROWS_AS(make(Op::Add, {x}), InternalError);
  CHECK_THROWS_AS(make(Op::Exp, {i}), InternalError);
  CHECK_THROWS_AS(make(Op::Where, {x, x, x}), InternalError);
  CHECK_THROWS_AS(make_axes(Op::Permute, x, std::vector<int64_t>{0, 0}), InternalError);
  CHECK_THROWS_AS(make_axes(Op::ReduceSum, x, std::vector<int64_t>{2}), InternalError);
  CHECK_THROWS_AS(make_tail(Op::Reshape, x, static_dims(std::vector<int64_t>{7})), InternalError);
  CHECK_THROWS_AS(make_tail(Op::Expand, x, static_dims(std::vector<int64_t>{4, 3})), InternalError);
  CHECK_THROWS_AS(make_tail(Op::Shrink, x, static_dims(std::vector<int64_t>{0, 3, 0, 3})),
                  InternalError);
  CHECK_THROWS_AS(make_tail(Op::Pad, x, static_dims(std::vector<int64_t>{-1, 0, 0, 0})),
                  InternalError);
  CHECK_THROWS_AS(make_bitcast(x, DType::F64), InternalError);
  CHECK_THROWS_AS(make(Op::Assign, {make(Op::Exp, {x}), x}), InternalError);
}

TEST_CASE("graph: print the keys of the first order" * doctest::skip()) {
  Graph graph;
  GraphScope scope(graph);
  std::printf("<<<%s", keys_and_text(two_branches(false)).c_str());
  models::Program program = models::mlp();
  std::vector<NodeRef> updates;
  for (const Tensor& update : program.updates) updates.push_back(update.node());
  std::printf("%s>>>", keys_and_text(updates).c_str());
}

TEST_CASE("graph: print the keys of the second order" * doctest::skip()) {
  Graph graph;
  GraphScope scope(graph);
  // Other things first, so that ids, addresses and interning order all differ.
  models::attention();
  models::Program program = models::mlp();
  std::vector<NodeRef> updates;
  for (const Tensor& update : program.updates) updates.push_back(update.node());
  std::string later = keys_and_text(updates);
  std::printf("<<<%s%s>>>", keys_and_text(two_branches(true)).c_str(), later.c_str());
}

TEST_CASE("graph: two orders in two processes give the same keys and text") {
  std::string first = output_of_process("graph: print the keys of the first order");
  std::string second = output_of_process("graph: print the keys of the second order");
  CHECK(first.size() > 10000);
  CHECK(first == second);
}

TEST_CASE("graph: a clone has the same keys and text") {
  Graph from, to;
  std::vector<NodeRef> roots;
  {
    GraphScope scope(from);
    roots = two_branches(false);
  }
  std::vector<NodeRef> copies = clone(roots, to);
  CHECK(copies[0] != roots[0]);
  CHECK(copies[0]->key == roots[0]->key);
  CHECK(print(copies) == print(roots));
  CHECK(to.node_count() < from.node_count() + 1);
}

TEST_CASE("graph: a collection keeps what handles reach, and values") {
  Graph graph;
  GraphScope scope(graph);
  Tensor kept = tensor({1.0f, 2.0f, 3.0f}) * 2;
  std::string before = print(kept.node());
  {
    Tensor dropped = exp(tensor({1.0f, 2.0f}) + 1);
    for (int i = 0; i < 1000; ++i) dropped = dropped + i;
  }
  Variable n("n", 1, 9);
  size_t nodes = graph.node_count();
  graph.collect();
  CHECK(graph.node_count() < nodes / 10);
  CHECK(print(kept.node()) == before);
  CHECK(kept.to_vector() == std::vector<float>{2, 4, 6});
  CHECK((n + 1).text() == "n + 1");
}

TEST_CASE("graph: handles that outlive their graph are of no use") {
  Tensor outlives;
  {
    Graph graph;
    GraphScope scope(graph);
    outlives = zeros({2});
  }
  CHECK(outlives.graph() == nullptr);
  CHECK_THROWS_AS(outlives + 1, UserError);
}

TEST_CASE("graph: two threads build and differentiate graphs of their own") {
  std::string texts[2];
  auto work = [&](int which) {
    models::Program program = models::mlp();
    std::vector<NodeRef> roots;
    for (const Tensor& gradient : program.gradients) roots.push_back(gradient.node());
    texts[which] = keys_and_text(roots);
  };
  std::thread first(work, 0), second(work, 1);
  first.join();
  second.join();
  CHECK(texts[0] == texts[1]);
}

TEST_CASE("graph: a tensor of another thread is a user error") {
  Tensor mine = zeros({2});
  std::string message;
  std::thread other([&] {
    try {
      mine + 1;
    } catch (const UserError& error) {
      message = error.what();
    }
  });
  other.join();
  CHECK(message.find("made on another thread") != std::string::npos);
}

TEST_CASE("graph: a tensor of a thread that has ended says so, and so do its copies") {
  Tensor kept;
  std::thread([&] { kept = exp(zeros({2})); }).join();
  Tensor copy = kept, moved = std::move(copy);
  for (const Tensor& tensor : {kept, moved, Tensor(moved)}) {
    CHECK(tensor.defined());
    std::string message;
    try {
      tensor + 1;
    } catch (const UserError& error) {
      message = error.what();
    }
    CHECK(message.find("the tensor was made in a thread that has ended") != std::string::npos);
    CHECK(message.find("before the thread ends") != std::string::npos);
  }
  kept = ones({2});  // the place can be used again
  CHECK((kept + 1).to_vector() == std::vector<float>{2, 2});
  CHECK_FALSE(copy.defined());  // NOLINT(bugprone-use-after-move): what is moved from is empty
}

TEST_CASE("graph: a loop that builds and realises keeps memory flat") {
  Graph graph;
  GraphScope scope(graph);
  Tensor weight = parameter("w", ones({8, 8}));
  size_t peak = 0;
  for (int i = 0; i < 3000; ++i) {
    Tensor x = from_data(std::vector<float>(8, static_cast<float>(i)), {8});
    float y = sum(matmul(x, weight) + i).item<float>();
    CHECK(y == doctest::Approx(8.0 * 8 * i + 8.0 * i));
    peak = std::max(peak, graph.node_count());
  }
  CHECK(peak < 40000);
}

TEST_CASE("graph: many users of one node, and of the newest one, stay quick to find") {
  Graph graph;
  GraphScope scope(graph);
  std::vector<NodeRef> dims = static_dims(std::vector<int64_t>{4});
  std::vector<NodeRef> many;
  for (int i = 0; i < 100000; ++i) many.push_back(make_buffer("x", i, DType::F32, dims));
  NodeRef newest = make(Op::Exp, {many[0]});
  // Every one of these is looked for at the same place first; a scan of them all would take
  // minutes.
  for (NodeRef x : many) make(Op::Add, {x, newest});
  size_t count = graph.node_count();
  for (NodeRef x : many) make(Op::Add, {x, newest});
  CHECK(graph.node_count() == count);
}
