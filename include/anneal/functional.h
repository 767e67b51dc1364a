// Activations, normalisation, convolution, pooling, resizing, statistics, search and losses:
// compositions of the operations in tensor.h, with PyTorch's layouts and conventions (channels
// before space).
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

// ---- Resizing
enum class Interpolation { Nearest, Linear };  // linear along two axes is bilinear
struct InterpolateOptions {
  Sizes size = {};                 // of the axes of space; one stands for all
  std::vector<double> scale = {};  // instead of the size
  Interpolation mode = Interpolation::Nearest;
  bool align_corners = false;  // linear: the first and last elements keep their places
};
// Of [batch, channels, space..], as PyTorch's.
Tensor interpolate(const Operand& x, const InterpolateOptions& options);

// ---- Statistics. A NaN among the elements gives NaN.
// Of an even number of elements the mean of the two in the middle, as NumPy.
Tensor median(const Operand& x, const Axes& axes = {}, bool keep_axes = false);
// What a part q of the elements does not exceed, interpolated linearly. q is a number, a scalar, or
// an axis of them, which then comes first in the result.
Tensor quantile(const Operand& x, const Operand& q, const Axes& axes = {}, bool keep_axes = false);
// (sum |x|^p)^(1/p); infinity takes the largest |x|, 0 counts what is not 0. Of vectors, also here.
Tensor norm(const Operand& x, double p = 2, const Axes& axes = {}, bool keep_axes = false);

// ---- Search. Sizes do not depend on data: they are given.
// Where in the sorted last axis each value would go, before equal elements or (right) behind them.
// All other axes agree, or the sorted tensor has one axis. i32.
Tensor searchsorted(const Operand& sorted, const Operand& values, bool right = false);
// How often each of 0..length-1 occurs in x, as i32, or the sum of the weights of those elements.
// Other numbers do not count.
Tensor bincount(const Operand& x, const Dim& length, const Tensor& weights = {});
// Places of the first `size` elements that are not 0, in order: i32 [size, rank of x]. Rows that
// are left hold `fill`, which as it stands is no place.
Tensor nonzero(const Operand& x, const Dim& size, int64_t fill = -1);

// ---- Losses, averaged unless said otherwise
enum class Reduction { Mean, Sum, None };
// Class indices against logits [N, C, ..]. Targets equal to ignore_index have no loss and do not
// count in the mean. Any other target outside of the classes is an error where the host has the
// targets, and else makes the loss NaN.
Tensor cross_entropy(const Operand& logits, const Operand& target,
                     Reduction reduction = Reduction::Mean, double label_smoothing = 0,
                     std::optional<int64_t> ignore_index = -100);
Tensor nll_loss(const Operand& log_probabilities, const Operand& target,
                Reduction reduction = Reduction::Mean, std::optional<int64_t> ignore_index = -100);
Tensor mse_loss(const Operand& prediction, const Operand& target,
                Reduction reduction = Reduction::Mean);
Tensor bce_with_logits(const Operand& logits, const Operand& target,
                       Reduction reduction = Reduction::Mean);
Tensor l1_loss(const Operand& prediction, const Operand& target,
               Reduction reduction = Reduction::Mean);
// d^2 / 2 up to |d| = delta, and a straight line from there on.
Tensor huber_loss(const Operand& prediction, const Operand& target,
                  Reduction reduction = Reduction::Mean, double delta = 1);
// The same divided by beta, so that the line's slope is 1. A beta of 0 gives l1_loss.
Tensor smooth_l1_loss(const Operand& prediction, const Operand& target,
                      Reduction reduction = Reduction::Mean, double beta = 1);
// target (log target - x) of log probabilities x; log_target: the target holds logarithms, too. The
// divergence of distributions is the sum: PyTorch's "batchmean" is Reduction::Sum over the batch.
Tensor kl_div(const Operand& log_probabilities, const Operand& target,
              Reduction reduction = Reduction::Mean, bool log_target = false);
// max(0, margin - target x) for targets of -1 and 1.
Tensor hinge_loss(const Operand& scores, const Operand& target,
                  Reduction reduction = Reduction::Mean, double margin = 1);
// x where the target is 1 and max(0, margin - x) where it is -1: x is a distance.
Tensor hinge_embedding_loss(const Operand& distances, const Operand& target,
                            Reduction reduction = Reduction::Mean, double margin = 1);

}  // namespace anneal
