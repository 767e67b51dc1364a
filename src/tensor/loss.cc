// Losses: one value an element, then the mean, the sum or neither. They are f32 at least: a loss
// that is scaled or averaged over many steps has no digits to give away.
#include "tensor/loss.h"

#include <array>

#include <fmt/format.h>

#include <anneal/functional.h>

#include "tensor/lift.h"
#include "tensor/wide.h"

namespace anneal {
namespace {

bool same_sizes(const Sizes& a, const Sizes& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) same = a[i] == b[i];
  return same;
}

// Classes stand on axis 1 of a batch and on the only axis of a single example.
int64_t class_axis(const Tensor& scores) { return scores.rank() > 1 ? 1 : 0; }

void check_classes(const char* what, const Tensor& scores, const Operand& target) {
  if (scores.rank() == 0)
    fail(fmt::format("{} are a scalar", what), "give them an axis of classes");
  Tensor classes = wrap(node_of(target));
  if (!is_int(classes.dtype()))
    fail(fmt::format("target is {}, but holds class indices", name(classes.dtype())),
         "cast it to an integer; for one-hot targets take argmax(target, 1)");
  Sizes wanted = scores.shape();
  wanted.erase(wanted.begin() + class_axis(scores));
  if (!same_sizes(classes.shape(), wanted))
    fail(fmt::format("target is {}, but must be {}: {} are {}", to_text(classes.shape()),
                     to_text(wanted), what, to_text(scores.shape())),
         scores.rank() > 1 ? "target has the axes of the scores without axis 1, the classes"
                           : "scores of one example take a scalar target");
}

// The score of the target class: [N, C, ..] becomes [N, ..]. A class that does not exist reads 0.
// A selection, not a gather: its gradient is elementwise too.
Tensor score_of(const Tensor& scores, const Tensor& target) {
  int64_t axis = class_axis(scores);
  Sizes sizes(scores.rank() - static_cast<size_t>(axis), 1);
  sizes[0] = scores.dim(axis);
  Tensor classes = reshape(literal_arange(scores.dim(axis)), sizes);
  return sum(where(unsqueeze(target, axis) == classes, scores, 0), axis);
}

}  // namespace

Tensor reduced(const Tensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::Mean: return mean(losses);
    case Reduction::Sum: return sum(losses);
    case Reduction::None: break;
  }
  return losses;
}

void check_same_shape(const char* what, const Operand& prediction, const Operand& target) {
  if (prediction.kind() != Operand::Kind::Tensor || target.kind() != Operand::Kind::Tensor) return;
  Sizes a = prediction.tensor().shape(), b = target.tensor().shape();
  if (!same_sizes(a, b))
    fail(fmt::format("shapes differ: {} is {}, target is {}", what, to_text(a), to_text(b)),
         "reshape or expand one of them to the shape of the other");
}

Tensor cross_entropy(const Operand& logits, const Operand& target, Reduction reduction,
                     double label_smoothing, std::optional<int64_t> ignore_index) {
  CallScope call("cross_entropy", logits.where());
  Tensor scores = widen(logits), classes = wrap(node_of(target));
  check_classes("logits", scores, target);
  if (!(label_smoothing >= 0 && label_smoothing <= 1))
    fail(fmt::format("label_smoothing is {}", label_smoothing), "it is a part of 1: give 0 to 1");
  int64_t axis = class_axis(scores);
  Tensor log_p = log_softmax(scores, axis);
  Tensor losses = -score_of(log_p, classes);
  if (label_smoothing > 0)
    losses = losses * (1 - label_smoothing) - mean(log_p, axis) * label_smoothing;
  if (!ignore_index) return reduced(losses, reduction);

  // In 64 bits, as the index to ignore may be one that the target's dtype cannot hold.
  Tensor counts = cast(classes, DType::I64) != *ignore_index;
  losses = where(counts, losses, 0);
  if (reduction != Reduction::Mean) return reduced(losses, reduction);
  return sum(losses) / sum(cast(counts, losses.dtype()));
}

Tensor nll_loss(const Operand& log_probabilities, const Operand& target, Reduction reduction) {
  CallScope call("nll_loss", log_probabilities.where());
  Tensor scores = widen(log_probabilities);
  check_classes("log_probabilities", scores, target);
  Tensor losses = -score_of(scores, wrap(node_of(target)));
  return reduced(losses, reduction);
}

Tensor mse_loss(const Operand& prediction, const Operand& target, Reduction reduction) {
  CallScope call("mse_loss", prediction.where());
  check_same_shape("prediction", prediction, target);
  DType dtype = wide_dtype(meeting_dtype(std::array{&prediction, &target}));
  return reduced(square(cast(prediction, dtype) - cast(target, dtype)), reduction);
}

// -(y log s(x) + (1 - y) log(1 - s(x))) = x (step(x) - y) + log(1 + e^-|x|): both parts are
// exact where the loss is tiny, on either side.
Tensor bce_with_logits(const Operand& logits, const Operand& target, Reduction reduction) {
  CallScope call("bce_with_logits", logits.where());
  check_same_shape("logits", logits, target);
  DType dtype = wide_dtype(meeting_dtype(std::array{&logits, &target}));
  Tensor x = cast(logits, dtype), y = cast(target, dtype);
  Tensor losses = x * (where(x >= 0, 1.0, 0.0) - y) + softplus(where(x >= 0, -x, x));
  return reduced(losses, reduction);
}

}  // namespace anneal
