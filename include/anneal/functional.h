// Activations, normalisation, convolution, pooling and losses: compositions of the operations in
// tensor.h, with PyTorch's layouts and conventions (channels before space).
#pragma once

#include <anneal/tensor.h>

namespace anneal {

// ---- Activations
Tensor relu(const Operand& x);
Tensor leaky_relu(const Operand& x, double slope = 0.01);
Tensor elu(const Operand& x, double alpha = 1.0);
Tensor gelu(const Operand& x);       // x * Phi(x), with erf
Tensor gelu_tanh(const Operand& x);  // the tanh approximation
Tensor sigmoid(const Operand& x);
Tensor silu(const Operand& x);
Tensor softplus(const Operand& x);
Tensor hardswish(const Operand& x);
Tensor mish(const Operand& x);
Tensor softmax(const Operand& x, int64_t axis = -1);
Tensor log_softmax(const Operand& x, int64_t axis = -1);

// ---- Normalisation. An empty weight or bias is left out.
Tensor layer_norm(const Operand& x, int64_t normalised_axes = 1, const Tensor& weight = {},
                  const Tensor& bias = {}, double epsilon = 1e-5);
Tensor rms_norm(const Operand& x, const Tensor& weight = {}, double epsilon = 1e-6);
Tensor group_norm(const Operand& x, int64_t groups, const Tensor& weight = {},
                  const Tensor& bias = {}, double epsilon = 1e-5);
// With the batch's own statistics, or with the given ones.
Tensor batch_norm(const Operand& x, const Tensor& weight = {}, const Tensor& bias = {},
                  double epsilon = 1e-5);
Tensor batch_norm(const Operand& x, const Tensor& mean, const Tensor& variance,
                  const Tensor& weight, const Tensor& bias, double epsilon = 1e-5);

// ---- Convolution. One number stands for every spatial axis.
struct ConvOptions {
  std::vector<int64_t> stride = {1}, padding = {0}, dilation = {1};
  int64_t groups = 1;
  std::vector<int64_t> output_padding = {0};  // of a transposed convolution
  // Whether f32 kernels of 3x3 without a stride may be multiplied in Winograd's way where that is
  // faster: it rounds up to four times as much, and keeps more memory for the gradients.
  bool winograd = true;
};
Tensor conv1d(const Operand& x, const Operand& weight, const Tensor& bias = {},
              const ConvOptions& options = {});
Tensor conv2d(const Operand& x, const Operand& weight, const Tensor& bias = {},
              const ConvOptions& options = {});
Tensor conv3d(const Operand& x, const Operand& weight, const Tensor& bias = {},
              const ConvOptions& options = {});
Tensor conv_transpose1d(const Operand& x, const Operand& weight, const Tensor& bias = {},
                        const ConvOptions& options = {});
Tensor conv_transpose2d(const Operand& x, const Operand& weight, const Tensor& bias = {},
                        const ConvOptions& options = {});
Tensor conv_transpose3d(const Operand& x, const Operand& weight, const Tensor& bias = {},
                        const ConvOptions& options = {});

// ---- Pooling over the last kernel.size() axes. The stride is the kernel unless given.
struct PoolOptions {
  std::vector<int64_t> stride = {}, padding = {0}, dilation = {1};
  bool count_padding = true;  // whether an average counts the zeros of the padding
};
Tensor max_pool(const Operand& x, const std::vector<int64_t>& kernel,
                const PoolOptions& options = {});
Tensor avg_pool(const Operand& x, const std::vector<int64_t>& kernel,
                const PoolOptions& options = {});
Tensor adaptive_avg_pool(const Operand& x, const std::vector<int64_t>& sizes);
Tensor adaptive_max_pool(const Operand& x, const std::vector<int64_t>& sizes);
// Sliding windows of [N, C, space..] as columns: [N, C * prod(kernel), windows].
Tensor unfold(const Operand& x, const std::vector<int64_t>& kernel,
              const PoolOptions& options = {});

// ---- Losses, averaged unless said otherwise
enum class Reduction { Mean, Sum, None };
// Class indices against logits [N, C, ..]; targets equal to ignore_index do not count.
Tensor cross_entropy(const Operand& logits, const Operand& target,
                     Reduction reduction = Reduction::Mean, double label_smoothing = 0,
                     std::optional<int64_t> ignore_index = {});
Tensor nll_loss(const Operand& log_probabilities, const Operand& target,
                Reduction reduction = Reduction::Mean);
Tensor mse_loss(const Operand& prediction, const Operand& target,
                Reduction reduction = Reduction::Mean);
Tensor bce_with_logits(const Operand& logits, const Operand& target,
                       Reduction reduction = Reduction::Mean);

}  // namespace anneal
