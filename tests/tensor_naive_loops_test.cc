// Convolutions, pools, unfold and einsum against naive loops over random configurations.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "ir/node.h"
#include "naive_array.h"

using namespace anneal;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct ConvSetup {
  size_t space;
  ConvOptions options;
  NaiveArray x, weight, bias;
  std::vector<int64_t> kernel, result;
  int64_t channels, outputs;

  explicit ConvSetup(std::mt19937& random)
      : space(static_cast<size_t>(pick(random, 1, 3))), x({}), weight({}), bias({}) {
    options = {{}, {}, {}, pick(random, 1, 3), {}, true};
    channels = options.groups * pick(random, 1, 2);
    outputs = options.groups * pick(random, 1, 2);
    std::vector<int64_t> shape{pick(random, 1, 2), channels};
    for (size_t i = 0; i < space; ++i) {
      int64_t k = pick(random, 1, 3), s = pick(random, 1, 4), d = pick(random, 1, 3);
      int64_t p = pick(random, 0, 2), extent = d * (k - 1) + 1;
      int64_t size = std::max<int64_t>(1, extent - 2 * p) + pick(random, 0, 4);
      kernel.push_back(k);
      options.stride.push_back(s);
      options.dilation.push_back(d);
      options.padding.push_back(p);
      options.output_padding.push_back((size + 2 * p - extent) % s);
      shape.push_back(size);
      result.push_back((size + 2 * p - extent) / s + 1);
    }
    x = random_array(shape, random);
    weight = random_array(joined({outputs, channels / options.groups}, kernel), random);
    bias = random_array({outputs}, random);
  }

  ConvOptions forward() const {
    ConvOptions plain = options;
    plain.output_padding = {0};
    return plain;
  }
};

using Convolution = Tensor (*)(const Operand&, const Operand&, const Tensor&, const ConvOptions&);
constexpr Convolution kConv[] = {conv1d, conv2d, conv3d};
constexpr Convolution kTransposed[] = {conv_transpose1d, conv_transpose2d, conv_transpose3d};

NaiveArray naive_conv(ConvSetup& c) {
  NaiveArray y(joined({c.x.shape[0], c.outputs}, c.result));
  int64_t inner = c.channels / c.options.groups, each = c.outputs / c.options.groups;
  for_each_place(y.shape, [&](const std::vector<int64_t>& at) {
    double total = c.bias.data[static_cast<size_t>(at[1])];
    for_each_place(joined({inner}, c.kernel), [&](const std::vector<int64_t>& k) {
      std::vector<int64_t> from{at[0], at[1] / each * inner + k[0]}, weight{at[1], k[0]};
      for (size_t i = 0; i < c.space; ++i) {
        from.push_back(at[2 + i] * c.options.stride[i] + k[1 + i] * c.options.dilation[i] -
                       c.options.padding[i]);
        weight.push_back(k[1 + i]);
      }
      total += c.x.read(from) * c.weight.at(weight);
    });
    y.at(at) = total;
  });
  return y;
}

}  // namespace

TEST_CASE("tensor: convolutions are the naive loops, transposed ones their adjoints") {
  std::mt19937 random = random_numbers(5);
  for (int round = 0; round < 80; ++round) {
    CAPTURE(round);
    ConvSetup c(random);
    Tensor x = tensor_of(c.x), weight = tensor_of(c.weight), bias = tensor_of(c.bias);
    Tensor y = kConv[c.space - 1](x, weight, bias, c.forward());
    expect_same(y, naive_conv(c));

    // <conv(x), z> = <x, conv_transpose(z)>, which also is the gradient.
    Tensor z = tensor_of(random_array(joined({c.x.shape[0], c.outputs}, c.result), random));
    Tensor back = kTransposed[c.space - 1](z, weight, {}, c.options);
    REQUIRE(to_text(back.shape()) == to_text(x.shape()));
    NaiveArray gradient(c.x.shape);
    gradient.data = grad(y, {x}, {.seed = z})[0].to_vector<double>();
    expect_same(back, gradient);
    Tensor plain = kConv[c.space - 1](x, weight, {}, c.forward());
    CHECK(close(sum(plain * z).item(), sum(x * back).item(), kNaiveTolerance));

    // The other way round: the gradients of the transposed one are convolutions.
    auto array_of = [](const Tensor& tensor, const NaiveArray& like) {
      NaiveArray array(like.shape);
      array.data = tensor.to_vector<double>();
      return array;
    };
    std::vector<Tensor> parts = grad(back, {z, weight}, {.seed = x});
    expect_same(plain, array_of(parts[0], naive_conv(c)));
    Tensor of_weight = grad(plain, {weight}, {.seed = z})[0];
    expect_same(of_weight, array_of(parts[1], c.weight));
  }
}

TEST_CASE("tensor: more output padding than stride has its gradients too") {
  Tensor x = constant({2, 2, 4}), w = constant({2, 3, 2});
  Tensor y = conv_transpose1d(
      x, w, {}, {.stride = {2}, .padding = {1}, .dilation = {5}, .output_padding = {4}});
  CHECK(to_text(y.shape()) == "[2, 3, 14]");
  Tensor seed = constant({2, 3, 14});
  std::vector<Tensor> parts = grad(y, {x, w}, {.seed = seed});
  // Of a form that is linear in each.
  const double value = sum(y * seed).item();
  CHECK(close(sum(x * parts[0]).item(), value, kNaiveTolerance));
  CHECK(close(sum(w * parts[1]).item(), value, kNaiveTolerance));
}

TEST_CASE("tensor: a transposed convolution with a bias, and padding beyond the kernel") {
  Tensor x = constant({1, 2, 4}), w = constant({2, 3, 1}), b = constant({3});
  Tensor plain = conv_transpose1d(x, w, {}, {.stride = {3}, .output_padding = {2}});
  CHECK(to_text(plain.shape()) == "[1, 3, 12]");
  Tensor cut = conv_transpose1d(x, w, b, {.stride = {3}, .padding = {2}, .output_padding = {2}});
  Tensor wanted = slice(plain, {{}, {}, {2, 10}}) + reshape(b, {3, 1});
  CHECK(cut.to_vector<double>() == wanted.to_vector<double>());
}

TEST_CASE("tensor: products and convolutions are one product and one sum over the last axes") {
  struct Row {
    Tensor result;
    size_t rank, summed;
  };
  const Row rows[] = {
      {matmul(constant({2, 3}), constant({3, 4})), 3, 1},
      {matmul(constant({5, 2, 3}), constant({3, 4})), 4, 1},
      {einsum("bqhd,bkhd->bhqk", {constant({2, 3, 2, 4}), constant({2, 5, 2, 4})}), 5, 1},
      {conv2d(constant({2, 4, 5, 5}), constant({6, 2, 3, 3}), {}, {.groups = 2}), 8, 3},
      {conv1d(constant({2, 4, 5}), constant({6, 4, 3})), 6, 2},
  };
  for (const Row& row : rows) {
    CAPTURE(to_text(row.result.shape()));
    NodeRef node = row.result.node();
    while (node->op == Op::Reshape || node->op == Op::Permute || node->op == Op::CustomGrad)
      node = node->source(0);
    REQUIRE(node->op == Op::ReduceSum);
    CHECK(node->rank() == row.rank);
    CHECK(node->axes().size() == row.summed);
    CHECK(node->axes().front() == static_cast<int64_t>(row.rank - row.summed));
    CHECK(node->source(0)->op == Op::Mul);
  }
}

TEST_CASE("tensor: pools and unfold are the naive loops") {
  std::mt19937 random = random_numbers(6);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    size_t space = static_cast<size_t>(pick(random, 1, 3));
    PoolOptions options{{}, {}, {}, pick(random, 0, 1) == 1};
    std::vector<int64_t> kernel, shape{2, 2}, windows;
    for (size_t i = 0; i < space; ++i) {
      int64_t k = pick(random, 1, 3), s = pick(random, 1, 4), d = pick(random, 1, 2);
      int64_t extent = d * (k - 1) + 1, p = pick(random, 0, extent / 2);
      // Long enough that no dilated window steps over the whole axis.
      int64_t size = extent + pick(random, 0, 3);
      kernel.push_back(k);
      options.stride.push_back(s);
      options.padding.push_back(p);
      options.dilation.push_back(d);
      shape.push_back(size);
      windows.push_back((size + 2 * p - extent) / s + 1);
    }
    NaiveArray x = random_array(shape, random);
    NaiveArray largest(joined({2, 2}, windows)), average(largest.shape);
    int64_t columns = 1, elements = 1;
    for (int64_t count : windows) columns *= count;
    for (int64_t k : kernel) elements *= k;
    NaiveArray unfolded({2, 2 * elements, columns});
    for_each_place(largest.shape, [&](const std::vector<int64_t>& at) {
      double most = -kInf, total = 0, inside = 0;
      int64_t column = 0, row = 0;
      for (size_t i = 0; i < space; ++i) column = column * windows[i] + at[2 + i];
      for_each_place(kernel, [&](const std::vector<int64_t>& k) {
        std::vector<int64_t> from{at[0], at[1]};
        bool valid = true;
        for (size_t i = 0; i < space; ++i) {
          from.push_back(at[2 + i] * options.stride[i] + k[i] * options.dilation[i] -
                         options.padding[i]);
          valid = valid && from.back() >= 0 && from.back() < shape[2 + i];
        }
        unfolded.at({at[0], at[1] * elements + row++, column}) = x.read(from);
        if (!valid) return;
        most = std::max(most, x.at(from));
        total += x.at(from);
        ++inside;
      });
      largest.at(at) = most;
      average.at(at) = total / (options.count_padding ? static_cast<double>(elements) : inside);
    });
    Tensor data = tensor_of(x);
    expect_same(max_pool(data, kernel, options), largest, 0);
    expect_same(avg_pool(data, kernel, options), average);
    expect_same(unfold(data, kernel, options), unfolded, 0);
  }
}

TEST_CASE("tensor: adaptive pools are the naive loops") {
  std::mt19937 random = random_numbers(7);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    size_t space = static_cast<size_t>(pick(random, 1, 3));
    std::vector<int64_t> sizes, shape{2};
    for (size_t i = 0; i < space; ++i) {
      sizes.push_back(pick(random, 1, 5));
      shape.push_back(pick(random, 1, 8));
    }
    NaiveArray x = random_array(shape, random), most(joined({2}, sizes)), average(most.shape);
    for_each_place(most.shape, [&](const std::vector<int64_t>& at) {
      std::vector<int64_t> begin, length;
      for (size_t i = 0; i < space; ++i) {
        int64_t n = shape[1 + i], o = at[1 + i], parts = sizes[i];
        begin.push_back(o * n / parts);
        length.push_back(((o + 1) * n + parts - 1) / parts - begin.back());
      }
      double total = 0, count = 0, largest = -kInf;
      for_each_place(length, [&](const std::vector<int64_t>& k) {
        std::vector<int64_t> from{at[0]};
        for (size_t i = 0; i < space; ++i) from.push_back(begin[i] + k[i]);
        largest = std::max(largest, x.at(from));
        total += x.at(from);
        ++count;
      });
      most.at(at) = largest;
      average.at(at) = total / count;
    });
    expect_same(adaptive_max_pool(tensor_of(x), sizes), most, 0);
    expect_same(adaptive_avg_pool(tensor_of(x), sizes), average);
  }
}

namespace {

struct EinsumRow {
  std::string equation;
  std::vector<std::vector<int64_t>> shapes;
  const char* expanded;  // with letters for "..." and an explicit result; null: as written
};

// Every letter is a loop; an operand's axis of size 1 stays at 0.
NaiveArray naive_einsum(const std::string& equation, std::vector<NaiveArray>& operands) {
  std::vector<std::string> terms{""};
  size_t arrow = equation.find("->");
  for (char c : equation.substr(0, arrow)) {
    if (c == ',')
      terms.emplace_back();
    else if (c != ' ')
      terms.back() += c;
  }
  std::string output, letters;
  for (char c : equation.substr(arrow + 2))
    if (c != ' ') output += c;
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t axis = 0; axis < terms[i].size(); ++axis)
      sizes[terms[i][axis]] = std::max(sizes[terms[i][axis]], operands[i].shape[axis]);
  std::vector<int64_t> all, shape;
  for (const auto& [letter, size] : sizes) {
    letters += letter;
    all.push_back(size);
  }
  for (char c : output) shape.push_back(sizes[c]);
  NaiveArray result(shape);
  for_each_place(all, [&](const std::vector<int64_t>& loop) {
    double product = 1;
    for (size_t i = 0; i < terms.size(); ++i) {
      std::vector<int64_t> place;
      for (size_t axis = 0; axis < terms[i].size(); ++axis)
        place.push_back(operands[i].shape[axis] == 1 ? 0 : loop[letters.find(terms[i][axis])]);
      product *= operands[i].at(place);
    }
    std::vector<int64_t> place;
    for (char c : output) place.push_back(loop[letters.find(c)]);
    result.at(place) += product;
  });
  return result;
}

}  // namespace

TEST_CASE("tensor: einsum is the naive loops") {
  const std::vector<EinsumRow> rows{
      {"i->i", {{3}}, nullptr},
      {"i->", {{3}}, nullptr},
      {"i", {{3}}, "i->i"},
      {"ba", {{2, 3}}, "ba->ab"},
      {"ij->ji", {{2, 3}}, nullptr},
      {"ii", {{3, 3}}, "ii->"},
      {"ii->i", {{3, 3}}, nullptr},
      {"iji->j", {{3, 2, 3}}, nullptr},
      {"iij->ji", {{3, 3, 2}}, nullptr},
      {"iii->i", {{2, 2, 2}}, nullptr},
      {"ijij->ij", {{2, 3, 2, 3}}, nullptr},
      {"ij,jk", {{2, 3}, {3, 4}}, "ij,jk->ik"},
      {"ij,kj->ki", {{2, 3}, {4, 3}}, nullptr},
      {" i j , j k -> i k ", {{2, 3}, {3, 4}}, nullptr},
      {"i,j->", {{2}, {3}}, nullptr},
      {"i,i->i", {{3}, {3}}, nullptr},
      {"i,i", {{3}, {3}}, "i,i->"},
      {"ij,j->ij", {{2, 3}, {3}}, nullptr},
      {"bij,bjk->bik", {{2, 3, 4}, {2, 4, 2}}, nullptr},
      {"bhqd,bhkd->bhqk", {{1, 2, 3, 4}, {1, 2, 5, 4}}, nullptr},
      {"ij,kl->jl", {{2, 3}, {4, 2}}, nullptr},
      {"ii,ij->j", {{3, 3}, {3, 2}}, nullptr},
      {"ij,ijk,k->", {{2, 3}, {2, 3, 4}, {4}}, nullptr},
      {"ab,bc,cd,de->ae", {{2, 3}, {3, 2}, {2, 4}, {4, 2}}, nullptr},
      {"a,b,a->b", {{2}, {3}, {2}}, nullptr},
      {"aB,Ba->B", {{2, 3}, {3, 2}}, nullptr},
      {",i->i", {{}, {3}}, nullptr},
      {"...->...", {{2, 3}}, "ab->ab"},
      {"...", {{2, 3}}, "ab->ab"},
      {"...i->...", {{2, 3, 4}}, "abi->ab"},
      {"i...->...i", {{2, 3, 4}}, "iab->abi"},
      {"...ij->ij...", {{2, 3, 4}}, "aij->ija"},
      {"...ij,...jk->...ik", {{2, 3, 4}, {2, 4, 2}}, "aij,ajk->aik"},
      {"...ij,...jk", {{5, 1, 3, 4}, {2, 4, 2}}, "abij,bjk->abik"},
      {"...i,...i->...", {{4, 1, 3}, {2, 3}}, "abi,bi->ab"},
      {"...i,...i->", {{1, 3}, {2, 3}}, "ai,ai->"},
      {"...i,j...->ij", {{2, 3}, {4, 2}}, "ai,ja->ij"},
      {"...i,i->...", {{3}, {3}}, "i,i->"},
      {"b...,...,b->...", {{2, 3}, {3}, {2}}, "ba,a,b->a"},
      {"...ii->...i", {{2, 3, 3}}, "aii->ai"},
  };
  std::mt19937 random = random_numbers(8);
  for (const EinsumRow& row : rows) {
    CAPTURE(row.equation);
    std::vector<NaiveArray> operands;
    std::vector<Tensor> tensors;
    for (const std::vector<int64_t>& shape : row.shapes) {
      operands.push_back(random_array(shape, random));
      tensors.push_back(tensor_of(operands.back()));
    }
    expect_same(einsum(row.equation, tensors),
                naive_einsum(row.expanded ? row.expanded : row.equation, operands));
  }
  CHECK(einsum("ij,j", {zeros({2, 3}, DType::I8), zeros({3}, DType::I32)}).dtype() == DType::I32);
  CHECK(einsum("i,i", {zeros({3}, DType::Bool), zeros({3}, DType::Bool)}).dtype() == DType::I32);
  CHECK(matmul(zeros({2, 3}, DType::F16), zeros({3}, DType::F16)).dtype() == DType::F16);
}
