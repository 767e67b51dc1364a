// What users are told about mistakes in products, activations, norms, convolutions, pools and
// losses.
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "mistakes.h"

using namespace anneal;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

#define MISTAKE(call, message, hint) {__LINE__, [&] { call; }, message, hint}

Tensor of(const Sizes& sizes, DType dtype = DType::F32) { return zeros(sizes, dtype); }

}  // namespace

// clang-format off
TEST_CASE("tensor: mistakes in products") {
  Tensor s = of({}), v3 = of({3}), v4 = of({4}), m = of({2, 3});
  check_mistakes(std::vector<Mistake>{
      MISTAKE(matmul(of({32, 128}), of({10, 128})), "matmul: inner sizes differ: left is [32, 128], right is [10, 128]", "right needs 128 rows; did you mean transpose(right)?"),
      MISTAKE(matmul(of({128, 32}), of({128, 10})), "matmul: inner sizes differ: left is [128, 32], right is [128, 10]", "left needs 128 columns; did you mean transpose(left)?"),
      MISTAKE(matmul(m, v4), "matmul: inner sizes differ: left is [2, 3], right is [4]", "right needs 3 rows"),
      MISTAKE(matmul(of({2, 1}), m.reshape({3, 2})), "matmul: inner sizes differ: left is [2, 1], right is [3, 2]", "right needs 1 rows"),
      MISTAKE(matmul(of({5, 2, 3}), of({4, 3, 2})), "matmul: batch sizes differ: left is [5, 2, 3], right is [4, 3, 2] (5 and 4)", "equal or 1"),
      MISTAKE(matmul(s, m), "matmul: both must have an axis: left is [], right is [2, 3]", "use *"),
      MISTAKE(matmul(m, 2.0), "matmul: both must have an axis: left is [2, 3], right is []", "use *"),
      MISTAKE(matmul(Tensor(), m), "matmul: the tensor is empty", "assign a value"),
      MISTAKE(dot(m, v3), "dot: both must have one axis: left is [2, 3], right is [3]", "use matmul"),
      MISTAKE(dot(v3, v4), "dot: sizes differ: left is [3], right is [4]", "same number of elements"),
      MISTAKE(outer(m, v3), "outer: both must have one axis: left is [2, 3], right is [3]", "flatten"),
      MISTAKE(einsum("ij", {}), "einsum: there are no tensors", "one tensor a term"),
      MISTAKE(einsum("ij,jk", {m}), "einsum: \"ij,jk\" is for 2 tensors, but 1 are given", "commas"),
      MISTAKE(einsum("ij,", {m}), "einsum: \"ij,\" is for 2 tensors, but 1 are given", "commas"),
      MISTAKE(einsum("i1", {m}), "einsum: '1' in \"i1\" is not an index", "letters, commas"),
      MISTAKE(einsum("i..", {m}), "einsum: '.' in \"i..\" is not an index", "letters, commas"),
      MISTAKE(einsum("ij-i", {m}), "einsum: '-' in \"ij-i\" is not an index", "one \"->\""),
      MISTAKE(einsum("......", {m}), "einsum: \"......\" has \"...\" twice in one term", "all axes that have no letter"),
      MISTAKE(einsum("ij->i->j", {m}), "einsum: \"ij->i->j\" has more than one \"->\"", "one \"->\""),
      MISTAKE(einsum("i->i", {m}), "einsum: operand 0 is [2, 3], but its term in \"i->i\" has 1 indices", "one letter an axis"),
      MISTAKE(einsum("ijk...", {m}), "einsum: operand 0 is [2, 3], but its term in \"ijk...\" has 3 indices", "more axes"),
      MISTAKE(einsum("ij->ii", {m}), "einsum: index i is twice in the result of \"ij->ii\"", "names one axis"),
      MISTAKE(einsum("ij->ik", {m}), "einsum: index k of the result is in no term of \"ij->ik\"", "come from an operand"),
      MISTAKE(einsum("ii", {m}), "einsum: index i of \"ii\" is 2 in operand 0 [2, 3] and 3 in operand 0 [2, 3]", "same size"),
      MISTAKE(einsum("ij,jk", {m, m}), "einsum: index j of \"ij,jk\" is 3 in operand 0 [2, 3] and 2 in operand 1 [2, 3]", "same size"),
      MISTAKE(einsum("...,...", {m, v4}), "einsum: an axis of \"...\" of \"...,...\" is 3 in operand 0 [2, 3] and 4 in operand 1 [4]", "same size"),
  });
}

TEST_CASE("tensor: mistakes in activations and norms") {
  Tensor s = of({}), v = of({6}), x = of({2, 6, 4});
  Variable n("n", 1, 9);
  Tensor symbolic = input("x", {2, n, 4});
  check_mistakes(std::vector<Mistake>{
      MISTAKE(relu(Tensor()), "relu: the tensor is empty", "assign"),
      MISTAKE(gelu(Tensor()), "gelu: the tensor is empty", "assign"),
      MISTAKE(softmax(x, 3), "softmax: axis 3 is out of range for rank 3", "-3 to 2"),
      MISTAKE(log_softmax(s), "log_softmax: axis -1 is out of range for rank 0", "a scalar has no axes"),
      MISTAKE(layer_norm(x, 4), "layer_norm: 4 axes to normalise, but x is [2, 6, 4]", "1 to 3"),
      MISTAKE(layer_norm(x, 0), "layer_norm: 0 axes to normalise", "1 to 3"),
      MISTAKE(layer_norm(x, 1, v), "layer_norm: x is [2, 6, 4], whose last axes are [4], but the weight is for [6]", "give x last axes of [6]"),
      MISTAKE(layer_norm(x, 2, {}, v), "layer_norm: x is [2, 6, 4], whose last axes are [6, 4], but the bias is for [6]", "or a bias of [6, 4]"),
      MISTAKE(layer_norm(x, 1, {}, {}, -1), "layer_norm: epsilon is -1", "0 or more"),
      MISTAKE(layer_norm(x, 1, {}, {}, kNan), "layer_norm: epsilon is nan", "0 or more"),
      MISTAKE(rms_norm(s), "rms_norm: x is a scalar", "its last one"),
      MISTAKE(rms_norm(x, v), "rms_norm: x is [2, 6, 4], whose last axes are [4], but the weight is for [6]", "give x last axes of [6]"),
      MISTAKE(group_norm(x, 0), "group_norm: groups is 0", "at least one"),
      MISTAKE(group_norm(x, 4), "group_norm: 6 channels do not divide into 4 groups", "divides the channels"),
      MISTAKE(group_norm(symbolic, 2), "group_norm: n channels do not divide into 2 groups", "variable * groups"),
      MISTAKE(group_norm(v, 2), "group_norm: x is [6], but needs a batch and a channel axis", "[batch, channels, ..]"),
      MISTAKE(batch_norm(v), "batch_norm: x is [6], but needs a batch and a channel axis", "[batch, channels, ..]"),
      MISTAKE(batch_norm(x, of({4})), "batch_norm: x is [2, 6, 4] and has 6 channels, but the weight is for 4", "give x 4 channels"),
      MISTAKE(batch_norm(x, of({4}), v, {}, {}), "batch_norm: x is [2, 6, 4] and has 6 channels, but the mean is for 4", "give x 4 channels"),
      MISTAKE(batch_norm(x, of({4}), of({4})), "batch_norm: x is [2, 6, 4] and has 6 channels, but the weight is for 4", "give x 4 channels"),
      MISTAKE(group_norm(x, 2, of({4}), of({4})), "group_norm: x is [2, 6, 4] and has 6 channels, but the weight is for 4", "axis 1"),
      MISTAKE(batch_norm(x, of({6, 1})), "batch_norm: the weight is [6, 1], but needs one value a channel", "the shape [6]"),
      MISTAKE(batch_norm(x, v, {}, {}, {}), "batch_norm: the variance is empty", "the batch's own"),
  });
}

TEST_CASE("tensor: mistakes in convolutions") {
  Tensor x = of({2, 4, 9}), w = of({6, 4, 3}), image = of({1, 4, 5, 5});
  Variable n("n", 2, 9), k("k", 1, 3);
  Tensor sequence = input("x", {2, 4, n});
  check_mistakes(std::vector<Mistake>{
      MISTAKE(conv1d(image, w), "conv1d: x is [1, 4, 5, 5], but needs 3 axes", "[batch, channels, space..]"),
      MISTAKE(conv2d(image, w), "conv2d: weight is [6, 4, 3], but needs 4 axes", "[out channels, channels / groups, kernel..]"),
      MISTAKE(conv_transpose1d(x, image), "conv_transpose1d: weight is [1, 4, 5, 5], but needs 3 axes", "[channels, out channels / groups, kernel..]"),
      MISTAKE(conv1d(x, of({6, 3, 3})), "conv1d: channels differ: x is [2, 4, 9], weight is [6, 3, 3]", "x needs 3 channels"),
      MISTAKE(conv1d(x, w, {}, {.groups = 2}), "conv1d: channels differ: x is [2, 4, 9], weight is [6, 4, 3] with 2 groups", "x needs 8 channels"),
      MISTAKE(conv1d(x, of({5, 2, 3}), {}, {.groups = 2}), "conv1d: the 5 channels of weight do not divide into 2 groups", "multiple of groups"),
      MISTAKE(conv1d(x, w, {}, {.groups = 0}), "conv1d: groups is 0", "at least one"),
      MISTAKE(conv1d(x, w, of({4})), "conv1d: bias is [4], but the result has 6 channels", "shape [6]"),
      MISTAKE(conv1d(x, w, {}, {.stride = {1, 2}}), "conv1d: stride has 2 numbers for 1 spatial axes", "one for each"),
      MISTAKE(conv1d(x, w, {}, {.stride = {}}), "conv1d: stride has 0 numbers for 1 spatial axes", "one for each"),
      MISTAKE(conv1d(x, w, {}, {.stride = {0}}), "conv1d: stride is [0]", "starts at 1"),
      MISTAKE(conv1d(x, w, {}, {.padding = {-1}}), "conv1d: padding is [-1]", "starts at 0"),
      MISTAKE(conv1d(x, w, {}, {.dilation = {0}}), "conv1d: dilation is [0]", "starts at 1"),
      MISTAKE(conv1d(x, of({6, 4, 0})), "conv1d: kernel is [0]", "starts at 1"),
      MISTAKE(conv1d(x, w, {}, {.output_padding = {1}}), "conv1d: output_padding is 1", "transposed"),
      MISTAKE(conv1d(x, w, {}, {.dilation = {5}}), "conv1d: a window spans 11, but axis 2 has 9 elements", "smaller kernel"),
      MISTAKE(conv1d(x, w, {}, {.padding = {1}, .dilation = {8}}), "conv1d: a window spans 17, but axis 2 has 11 elements with its padding of 1", "pad more"),
      MISTAKE(conv1d(sequence, w), "conv1d: a window spans 3, but axis 2 of size n can have as few as 2 elements", "larger minimum"),
      MISTAKE(conv1d(x, input("w", {6, 4, k})), "conv1d: the kernel size k of weight [6, 4, k] is symbolic", "must be numbers"),
      MISTAKE(conv_transpose1d(x, w), "conv_transpose1d: channels differ: x is [2, 4, 9], weight is [6, 4, 3]", "x's channels, 4"),
      MISTAKE(conv_transpose1d(x, of({4, 6, 3}), of({4})), "conv_transpose1d: bias is [4], but the result has 6 channels", "shape [6]"),
      MISTAKE(conv_transpose1d(x, of({4, 6, 3}), {}, {.groups = 3}), "conv_transpose1d: the 4 channels of weight do not divide into 3 groups", "multiple of groups"),
      MISTAKE(conv_transpose1d(x, of({4, 6, 3}), {}, {.stride = {2}, .output_padding = {2}}), "conv_transpose1d: output_padding is 2, stride is 2 and dilation is 1", "smaller than one of them"),
      MISTAKE(conv_transpose1d(x, of({4, 6, 3}), {}, {.padding = {6}}), "conv_transpose1d: the result would have the size -1 on axis 2: x is [2, 4, 9], padding is 6", "pad less"),
      MISTAKE(conv_transpose1d(sequence, of({4, 6, 3}), {}, {.padding = {2}}), "conv_transpose1d: the result would have the size 0 or less on axis 2", "pad less"),
  });
}

TEST_CASE("tensor: mistakes in pools") {
  Tensor x = of({2, 4, 9});
  check_mistakes(std::vector<Mistake>{
      MISTAKE(max_pool(x, {}), "max_pool: kernel is empty", "one number an axis"),
      MISTAKE(max_pool(x, {1, 2, 3, 4}), "max_pool: kernel has 4 numbers, but x is [2, 4, 9]", "last axes are pooled"),
      MISTAKE(max_pool(x, {0}), "max_pool: kernel is [0]", "starts at 1"),
      MISTAKE(max_pool(x, {2}, {.padding = {2}}), "max_pool: padding is 2, but a window spans 2", "half a window"),
      MISTAKE(max_pool(x, {10}), "max_pool: a window spans 10, but axis 2 has 9 elements", "smaller kernel"),
      MISTAKE(avg_pool(x, {2}, {.padding = {2}}), "avg_pool: padding is 2, but a window spans 2", "half a window"),
      MISTAKE(avg_pool(x, {2, 2}, {.stride = {1, 1, 1}}), "avg_pool: stride has 3 numbers for 2 spatial axes", "one for each"),
      MISTAKE(adaptive_avg_pool(x, {}), "adaptive_avg_pool: sizes is empty", "one number an axis"),
      MISTAKE(adaptive_avg_pool(x, {0}), "adaptive_avg_pool: a size is 0", "start at 1"),
      MISTAKE(adaptive_max_pool(of({2, 0}), {1}), "adaptive_max_pool: axis 1 of [2, 0] can be empty", "nothing to pool"),
      MISTAKE(unfold(x, {2, 2}), "unfold: x is [2, 4, 9], but a kernel of 2 numbers needs 4 axes", "[batch, channels, space..]"),
      MISTAKE(unfold(x, {2}, {.dilation = {0}}), "unfold: dilation is [0]", "starts at 1"),
  });
}

TEST_CASE("tensor: mistakes in losses") {
  Tensor logits = of({8, 3}), classes = of({8}, DType::I32);
  check_mistakes(std::vector<Mistake>{
      MISTAKE(cross_entropy(of({}), classes), "cross_entropy: logits are a scalar", "axis of classes"),
      MISTAKE(cross_entropy(logits, of({8})), "cross_entropy: target is f32, but holds class indices", "argmax"),
      MISTAKE(cross_entropy(logits, of({8, 1}, DType::I32)), "cross_entropy: target is [8, 1], but must be [8]: logits are [8, 3]", "without axis 1"),
      MISTAKE(cross_entropy(of({3}), classes), "cross_entropy: target is [8], but must be []: logits are [3]", "a scalar target"),
      MISTAKE(cross_entropy(logits, from_data(std::vector{0, 1, 2, 3, 0, 0, 0, 0}, {8})), "cross_entropy: target 3 of element 3 is not one of 3 classes", "ignore_index is -100"),
      MISTAKE(nll_loss(logits, from_data(std::vector<int8_t>{0, -1, 2, 2, 0, 0, 0, 0}, {2, 4}).flatten()), "nll_loss: target -1 of element 1 is not one of 3 classes", "count from 0"),
      MISTAKE(cross_entropy(logits, full({8}, 5, DType::U8).realize(), Reduction::Mean, 0, {}), "cross_entropy: target 5 of element 0 is not one of 3 classes", "ignore_index is not used"),
      MISTAKE(cross_entropy(logits, classes, Reduction::Mean, 1.5), "cross_entropy: label_smoothing is 1.5", "0 to 1"),
      MISTAKE(cross_entropy(logits, classes, Reduction::Mean, kNan), "cross_entropy: label_smoothing is nan", "0 to 1"),
      MISTAKE(nll_loss(logits, of({3}, DType::I64)), "nll_loss: target is [3], but must be [8]: log_probabilities are [8, 3]", "without axis 1"),
      MISTAKE(mse_loss(of({8, 1}), of({8})), "mse_loss: shapes differ: prediction is [8, 1], target is [8]", "reshape or expand"),
      MISTAKE(bce_with_logits(of({8, 1}), of({8})), "bce_with_logits: shapes differ: logits is [8, 1], target is [8]", "reshape or expand"),
  });
}
// clang-format on
