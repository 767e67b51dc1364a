// Op cases: activations, normalisation, convolution, pooling and losses.
// Rows only; the order of a row is name, inputs, program, options.
#include <limits>

#include "op_cases.h"

namespace anneal {
namespace {

InputSpec numbers(double low = -4, double high = 4) { return reals({3, 4}, low, high).symbolic(0); }
InputSpec reals1(std::vector<int64_t> shape) { return reals(std::move(shape), -1, 1); }
InputSpec scales(std::vector<int64_t> shape) { return reals(std::move(shape), 0.5, 1.5); }
InputSpec images(std::vector<int64_t> shape) { return reals1(std::move(shape)).symbolic(0); }
InputSpec apart(std::vector<int64_t> shape) {
  return distinct(std::move(shape), -2, 2).symbolic(0);
}

constexpr double kInf = std::numeric_limits<double>::infinity();

constexpr CaseOptions kPick{.tolerance = kExact};
constexpr CaseOptions kRing{.any_integer = true};

}  // namespace

std::vector<OpCase> functional_cases() {
  return {
      // ---- activations
      {"relu",
       {numbers()},
       [](Args x) { return relu(x[0]); },
       {.tolerance = kExact, .any_integer = true}},
      {"leaky_relu", {numbers()}, [](Args x) { return leaky_relu(x[0]); }},
      {"leaky_relu_slope", {numbers()}, [](Args x) { return leaky_relu(x[0], 0.25); }},
      {"elu", {numbers()}, [](Args x) { return elu(x[0]); }},
      {"elu_alpha", {numbers()}, [](Args x) { return elu(x[0], 0.5); }},
      {"gelu", {numbers()}, [](Args x) { return gelu(x[0]); }},
      {"gelu_tanh", {numbers()}, [](Args x) { return gelu_tanh(x[0]); }},
      {"sigmoid", {numbers()}, [](Args x) { return sigmoid(x[0]); }},
      {"silu", {numbers()}, [](Args x) { return silu(x[0]); }},
      {"softplus", {numbers()}, [](Args x) { return softplus(x[0]); }},
      {"hardswish", {numbers()}, [](Args x) { return hardswish(x[0]); }},
      {"mish", {numbers()}, [](Args x) { return mish(x[0]); }},
      {"activations_far",
       {listed({6}, {-1000, -50, -20, 20, 50, 1000})},
       [](Args x) {
         return stack(
             {sigmoid(x[0]), silu(x[0]), softplus(x[0]), mish(x[0]), elu(x[0]), gelu(x[0])});
       },
       {.any_float = false}},
      {"softmax", {numbers()}, [](Args x) { return softmax(x[0]); }},
      {"softmax_axis",
       {reals({2, 3, 4}, -4, 4).symbolic(1)},
       [](Args x) { return softmax(x[0], 1); }},
      {"softmax_far",
       {listed({2, 3}, {1000, 1001, 999, -1000, 0, 1000})},
       [](Args x) { return softmax(x[0]); },
       {.any_float = false}},
      {"softmax_masked",
       {numbers(), listed({4}, {1, 0, 1, 1}, DType::Bool)},
       [](Args x) { return softmax(where(x[1], x[0], -kInf)); }},
      {"log_softmax", {numbers()}, [](Args x) { return log_softmax(x[0]); }},
      {"log_softmax_axis",
       {reals({2, 3, 4}, -4, 4).symbolic(0)},
       [](Args x) { return log_softmax(x[0], -2); }},
      {"log_softmax_far",
       {listed({2, 3}, {1000, 1001, 999, -1000, 0, 1000})},
       [](Args x) { return log_softmax(x[0]); },
       {.any_float = false}},

      // ---- normalisation
      {"layer_norm", {numbers()}, [](Args x) { return layer_norm(x[0]); }},
      {"layer_norm_affine",
       {numbers(), scales({4}), reals1({4})},
       [](Args x) { return layer_norm(x[0], 1, x[1], x[2]); }},
      {"layer_norm_two_axes",
       {reals({2, 3, 4}, -4, 4).symbolic(0), scales({3, 4})},
       [](Args x) { return layer_norm(x[0], 2, x[1], {}, 0.5); }},
      {"rms_norm", {numbers()}, [](Args x) { return rms_norm(x[0]); }},
      {"rms_norm_weight",
       {numbers(), scales({4})},
       [](Args x) { return rms_norm(x[0], x[1], 0.25); }},
      {"group_norm",
       {reals({2, 4, 3}, -4, 4).symbolic(0)},
       [](Args x) { return group_norm(x[0], 2); }},
      {"group_norm_affine",
       {reals({2, 4, 2, 2}, -4, 4).symbolic(0), scales({4}), reals1({4})},
       [](Args x) { return group_norm(x[0], 2, x[1], x[2], 0.1); }},
      {"batch_norm",
       {reals({3, 2, 4}, -4, 4).symbolic(0)},
       [](Args x) { return batch_norm(x[0]); }},
      {"batch_norm_affine",
       {reals({3, 4}, -4, 4).symbolic(0), scales({4}), reals1({4})},
       [](Args x) { return batch_norm(x[0], x[1], x[2], 0.1); }},
      {"batch_norm_images",
       {reals({2, 3, 2, 2}, -4, 4), scales({3}), reals1({3})},
       [](Args x) { return batch_norm(x[0], x[1], x[2]); }},
      {"batch_norm_given",
       {reals({3, 2, 4}, -4, 4).symbolic(0), reals1({2}), scales({2}), scales({2}), reals1({2})},
       [](Args x) { return batch_norm(x[0], x[1], x[2], x[3], x[4]); }},
      {"batch_norm_given_plain",
       {reals({3, 2}, -4, 4).symbolic(0), reals1({2}), scales({2})},
       [](Args x) { return batch_norm(x[0], x[1], x[2], Tensor(), Tensor()); }},

      // ---- convolution
      {"conv1d",
       {images({2, 2, 6}), reals1({3, 2, 3})},
       [](Args x) { return conv1d(x[0], x[1]); },
       kRing},
      {"conv1d_all",
       {images({2, 4, 7}), reals1({2, 2, 2}), reals1({2})},
       [](Args x) {
         return conv1d(x[0], x[1], x[2],
                       {.stride = {2}, .padding = {1}, .dilation = {2}, .groups = 2});
       },
       kRing},
      {"conv2d",
       {images({1, 2, 4, 4}), reals1({2, 2, 3, 3})},
       [](Args x) { return conv2d(x[0], x[1]); },
       kRing},
      {"conv2d_bias",
       {images({2, 1, 3, 4}), reals1({2, 1, 2, 2}), reals1({2})},
       [](Args x) { return conv2d(x[0], x[1], x[2]); },
       kRing},
      {"conv2d_stride",
       {images({1, 1, 5, 6}), reals1({2, 1, 2, 2})},
       [](Args x) { return conv2d(x[0], x[1], {}, {.stride = {2, 3}}); },
       kRing},
      {"conv2d_padding",
       {images({1, 2, 3, 4}), reals1({2, 2, 3, 3})},
       [](Args x) { return conv2d(x[0], x[1], {}, {.padding = {1}}); },
       kRing},
      {"conv2d_dilation",
       {images({1, 1, 5, 6}), reals1({1, 1, 2, 3})},
       [](Args x) { return conv2d(x[0], x[1], {}, {.dilation = {2, 2}}); },
       kRing},
      {"conv2d_groups",
       {images({1, 4, 3, 3}), reals1({4, 2, 2, 2})},
       [](Args x) { return conv2d(x[0], x[1], {}, {.groups = 2}); },
       kRing},
      {"conv2d_depthwise",
       {images({1, 3, 4, 4}), reals1({3, 1, 3, 3})},
       [](Args x) { return conv2d(x[0], x[1], {}, {.padding = {1, 1}, .groups = 3}); },
       kRing},
      {"conv2d_all",
       {images({1, 4, 5, 6}), reals1({2, 2, 2, 3}), reals1({2})},
       [](Args x) {
         return conv2d(x[0], x[1], x[2],
                       {.stride = {2, 1}, .padding = {1, 2}, .dilation = {2, 1}, .groups = 2});
       },
       kRing},
      {"conv3d",
       {images({1, 1, 3, 3, 4}), reals1({2, 1, 2, 2, 2}), reals1({2})},
       [](Args x) { return conv3d(x[0], x[1], x[2], {.padding = {0, 1, 0}}); },
       kRing},
      {"conv_transpose1d",
       {images({2, 2, 4}), reals1({2, 3, 3}), reals1({3})},
       [](Args x) { return conv_transpose1d(x[0], x[1], x[2]); },
       kRing},
      {"conv_transpose1d_all",
       {images({1, 4, 4}), reals1({4, 2, 3})},
       [](Args x) {
         return conv_transpose1d(
             x[0], x[1], {},
             {.stride = {3}, .padding = {1}, .dilation = {2}, .groups = 2, .output_padding = {1}});
       },
       kRing},
      {"conv_transpose2d",
       {images({1, 2, 3, 3}), reals1({2, 2, 2, 2})},
       [](Args x) { return conv_transpose2d(x[0], x[1]); },
       kRing},
      {"conv_transpose2d_stride",
       {images({1, 2, 2, 3}), reals1({2, 1, 3, 2}), reals1({1})},
       [](Args x) {
         return conv_transpose2d(x[0], x[1], x[2],
                                 {.stride = {2, 2}, .padding = {1, 0}, .output_padding = {1, 0}});
       },
       kRing},
      {"conv_transpose3d",
       {images({1, 1, 2, 2, 2}), reals1({1, 2, 2, 2, 2})},
       [](Args x) { return conv_transpose3d(x[0], x[1], {}, {.stride = {2}}); },
       kRing},

      // ---- pooling
      {"max_pool1d", {apart({2, 2, 6})}, [](Args x) { return max_pool(x[0], {2}); }, kPick},
      {"max_pool2d", {apart({1, 2, 4, 4})}, [](Args x) { return max_pool(x[0], {2, 2}); }, kPick},
      {"max_pool2d_all",
       {apart({1, 1, 6, 7})},
       [](Args x) {
         return max_pool(x[0], {3, 2}, {.stride = {2, 1}, .padding = {1, 1}, .dilation = {1, 2}});
       },
       kPick},
      {"max_pool2d_rest",
       {apart({1, 1, 5, 5})},
       [](Args x) { return max_pool(x[0], {2, 3}); },
       kPick},
      {"avg_pool1d", {images({2, 2, 6})}, [](Args x) { return avg_pool(x[0], {3}); }},
      {"avg_pool2d",
       {images({1, 2, 4, 4})},
       [](Args x) { return avg_pool(x[0], {2, 2}, {.stride = {1}}); }},
      {"avg_pool2d_padding",
       {images({1, 1, 4, 5})},
       [](Args x) { return avg_pool(x[0], {3, 3}, {.stride = {2, 2}, .padding = {1}}); }},
      {"avg_pool2d_uncounted",
       {images({1, 1, 4, 5})},
       [](Args x) {
         return avg_pool(x[0], {3, 3}, {.stride = {2, 2}, .padding = {1}, .count_padding = false});
       }},
      {"avg_pool3d", {images({1, 1, 2, 4, 4})}, [](Args x) { return avg_pool(x[0], {2, 2, 2}); }},
      {"adaptive_avg_pool",
       {images({1, 2, 4, 6})},
       [](Args x) { return adaptive_avg_pool(x[0], {2, 3}); }},
      {"adaptive_avg_pool_uneven",
       {images({2, 1, 7})},
       [](Args x) { return adaptive_avg_pool(x[0], {3}); }},
      {"adaptive_avg_pool_one",
       {images({2, 2, 3, 3})},
       [](Args x) { return adaptive_avg_pool(x[0], {1, 1}); }},
      {"adaptive_max_pool",
       {apart({1, 2, 4, 6})},
       [](Args x) { return adaptive_max_pool(x[0], {2, 3}); },
       kPick},
      {"adaptive_max_pool_uneven",
       {apart({2, 1, 7})},
       [](Args x) { return adaptive_max_pool(x[0], {3}); },
       kPick},
      {"unfold",
       {images({1, 2, 3, 4})},
       [](Args x) { return unfold(x[0], {2, 2}, {.stride = {1}}); },
       {.tolerance = kExact, .any_integer = true}},
      {"unfold_all",
       {images({1, 2, 4, 5})},
       [](Args x) {
         return unfold(x[0], {2, 3}, {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}});
       },
       {.tolerance = kExact, .any_integer = true}},

      // ---- losses
      {"cross_entropy",
       {numbers(), integers({3}, 0, 3).symbolic(0)},
       [](Args x) { return cross_entropy(x[0], x[1]); }},
      {"cross_entropy_sum",
       {numbers(), integers({3}, 0, 3, DType::I32).symbolic(0)},
       [](Args x) { return cross_entropy(x[0], x[1], Reduction::Sum); }},
      {"cross_entropy_none",
       {numbers(), integers({3}, 0, 3).symbolic(0)},
       [](Args x) { return cross_entropy(x[0], x[1], Reduction::None); }},
      {"cross_entropy_space",
       {reals({2, 4, 3}, -4, 4).symbolic(0), integers({2, 3}, 0, 3).symbolic(0)},
       [](Args x) { return cross_entropy(x[0], x[1]); }},
      {"cross_entropy_smooth",
       {numbers(), integers({3}, 0, 3).symbolic(0)},
       [](Args x) { return cross_entropy(x[0], x[1], Reduction::Mean, 0.1); }},
      {"cross_entropy_ignore",
       {reals({5, 3}, -4, 4), listed({5}, {0, 2, 1, 2, 0}, DType::I64)},
       [](Args x) { return cross_entropy(x[0], x[1], Reduction::Mean, 0, 2); }},
      {"cross_entropy_ignore_outside",
       {reals({4, 3}, -4, 4), listed({4}, {0, -100, 1, 2}, DType::I64)},
       [](Args x) { return cross_entropy(x[0], x[1], Reduction::Mean, 0, -100); }},
      {"cross_entropy_ignore_none",
       {reals({4, 3}, -4, 4), listed({4}, {0, -100, 1, 2}, DType::I64)},
       [](Args x) { return cross_entropy(x[0], x[1], Reduction::None, 0, -100); }},
      {"cross_entropy_ignore_smooth",
       {reals({5, 3}, -4, 4), listed({5}, {0, 2, 1, 2, 0}, DType::I64)},
       [](Args x) { return cross_entropy(x[0], x[1], Reduction::Mean, 0.2, 2); }},
      {"nll_loss",
       {numbers(-4, -0.5), integers({3}, 0, 3).symbolic(0)},
       [](Args x) { return nll_loss(x[0], x[1]); }},
      {"nll_loss_space",
       {reals({2, 3, 2}, -4, -0.5).symbolic(0), integers({2, 2}, 0, 2).symbolic(0)},
       [](Args x) { return nll_loss(x[0], x[1], Reduction::Sum); }},
      {"nll_loss_none",
       {numbers(-4, -0.5), integers({3}, 0, 3).symbolic(0)},
       [](Args x) { return nll_loss(x[0], x[1], Reduction::None); }},
      {"mse_loss", {numbers(), numbers()}, [](Args x) { return mse_loss(x[0], x[1]); }},
      {"mse_loss_sum",
       {numbers(), numbers()},
       [](Args x) { return mse_loss(x[0], x[1], Reduction::Sum); }},
      {"mse_loss_none",
       {numbers(), numbers()},
       [](Args x) { return mse_loss(x[0], x[1], Reduction::None); }},
      {"bce_with_logits",
       {numbers(), reals({3, 4}, 0, 1).symbolic(0)},
       [](Args x) { return bce_with_logits(x[0], x[1]); }},
      {"bce_with_logits_sum",
       {numbers(), reals({3, 4}, 0, 1).symbolic(0)},
       [](Args x) { return bce_with_logits(x[0], x[1], Reduction::Sum); }},
      {"bce_with_logits_far",
       {listed({4}, {-1000, -40, 40, 1000}), listed({4}, {1, 0, 0.5, 1})},
       [](Args x) { return bce_with_logits(x[0], x[1], Reduction::None); },
       {.any_float = false}},
      {"attention",
       {reals({2, 3, 4}, -2, 2).symbolic(1), reals({2, 3, 4}, -2, 2).symbolic(1),
        reals({2, 3, 4}, -2, 2).symbolic(1)},
       [](Args x) {
         Tensor scores = matmul(x[0], transpose(x[1])) * 0.5;
         Tensor position = arange(x[0].dim(1));
         return matmul(softmax(where(position <= unsqueeze(position, 1), scores, -1e4)), x[2]);
       },
       {}},
  };
}

}  // namespace anneal
