// Losses that compare each element with its own target: distances, divergences and margins. They
// are f32 at least.
#include <array>

#include <fmt/format.h>

#include <anneal/functional.h>

#include "tensor/lift.h"
#include "tensor/loss.h"
#include "tensor/wide.h"

namespace anneal {
namespace {

// Both in the dtype of the loss.
struct Pair {
  Tensor x, target;

  Pair(const char* what, const Operand& given, const Operand& wanted) {
    check_same_shape(what, given, wanted);
    const DType dtype = wide_dtype(meeting_dtype(std::array{&given, &wanted}));
    x = cast(given, dtype);
    target = cast(wanted, dtype);
  }
};

void check_width(const char* what, double width, bool may_be_zero) {
  if (!(width > 0 || (width == 0 && may_be_zero)))
    fail(fmt::format("{} is {}", what, width),
         may_be_zero ? "give 0 or more" : "give a number above 0");
}

// d^2 / 2 up to |d| = width, and the line with the slope `width` that goes on from there.
Tensor bowl(const Tensor& difference, double width) {
  const Tensor distance = abs(difference);
  return where(distance <= width, square(difference) * 0.5, (distance - width / 2) * width);
}

Tensor positive_part(const Tensor& x) { return where(x > 0, x, 0); }

}  // namespace

Tensor l1_loss(const Operand& prediction, const Operand& target, Reduction reduction) {
  CallScope call("l1_loss", prediction.where());
  const Pair pair("prediction", prediction, target);
  return reduced(abs(pair.x - pair.target), reduction);
}

Tensor huber_loss(const Operand& prediction, const Operand& target, Reduction reduction,
                  double delta) {
  CallScope call("huber_loss", prediction.where());
  check_width("delta", delta, /*may_be_zero=*/false);
  const Pair pair("prediction", prediction, target);
  return reduced(bowl(pair.x - pair.target, delta), reduction);
}

Tensor smooth_l1_loss(const Operand& prediction, const Operand& target, Reduction reduction,
                      double beta) {
  CallScope call("smooth_l1_loss", prediction.where());
  check_width("beta", beta, /*may_be_zero=*/true);
  if (beta == 0) return l1_loss(prediction, target, reduction);
  const Pair pair("prediction", prediction, target);
  return reduced(bowl(pair.x - pair.target, beta) / beta, reduction);
}

// t log t is 0 at 0, whatever x is there.
Tensor kl_div(const Operand& log_probabilities, const Operand& target, Reduction reduction,
              bool log_target) {
  CallScope call("kl_div", log_probabilities.where());
  const Pair pair("log_probabilities", log_probabilities, target);
  if (log_target) return reduced(exp(pair.target) * (pair.target - pair.x), reduction);
  const Tensor nothing = pair.target == 0;
  const Tensor safe = where(nothing, 1, pair.target), x = where(nothing, 0, pair.x);
  return reduced(pair.target * (log(safe) - x), reduction);
}

Tensor hinge_loss(const Operand& scores, const Operand& target, Reduction reduction,
                  double margin) {
  CallScope call("hinge_loss", scores.where());
  const Pair pair("scores", scores, target);
  return reduced(positive_part(margin - pair.target * pair.x), reduction);
}

Tensor hinge_embedding_loss(const Operand& distances, const Operand& target, Reduction reduction,
                            double margin) {
  CallScope call("hinge_embedding_loss", distances.where());
  const Pair pair("distances", distances, target);
  const Tensor far = positive_part(margin - pair.x);
  return reduced(where(pair.target > 0, pair.x, far), reduction);
}

}  // namespace anneal
