// Losses: one value an element, then the mean, the sum or neither. They are f32 at least: a loss
// that is scaled or averaged over many steps has no digits to give away.
#include "tensor/loss.h"

#include <array>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include <anneal/functional.h>

#include "tensor/lift.h"
#include "tensor/named_gradient.h"
#include "tensor/wide.h"

namespace anneal {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

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

// The memory of targets that the host has and nobody changes; none where a device would have to be
// asked, or a program run. Movement that keeps every element is looked through.
const Storage* known_elements(NodeRef target) {
  constexpr OpSet kKeepsAll{Op::Reshape, Op::Permute, Op::Expand,
                            Op::Flip,    Op::Named,   Op::Contiguous};
  while (kKeepsAll.contains(target->op)) target = target->source(0);
  if (target->op != Op::Buffer || !wrap(target).name().empty()) return nullptr;
  const Storage* storage = current_graph().stored(target);
  return storage && storage->host_is_current() ? storage : nullptr;
}

void check_known_targets(NodeRef target, const Dim& classes, std::optional<int64_t> ignored) {
  const Storage* storage = known_elements(target);
  if (!storage) return;
  const std::span<const std::byte> bytes = storage->read();
  const size_t width = byte_size(storage->dtype);
  for (size_t at = 0; at < bytes.size(); at += width) {
    int64_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, width);
    const Scalar value = Scalar::of_int(storage->dtype, bits);
    const int64_t number = value.as_int();
    if ((number >= 0 && number < classes.max()) || number == ignored) continue;
    fail(fmt::format("target {} of element {} is not one of {} classes", to_text(value), at / width,
                     classes.text()),
         fmt::format("classes count from 0; ignore_index is {}",
                     ignored ? std::to_string(*ignored) : "not used"));
  }
}

// Targets as class indices beside their scores [N, C, ..].
struct Targets {
  Tensor classes;  // [N, ..]
  int64_t axis;
  Dim count;
  std::optional<int64_t> ignored;

  Targets(const Tensor& scores, const Operand& target, std::optional<int64_t> ignore_index)
      : classes(wrap(node_of(target))),
        axis(class_axis(scores)),
        count(scores.dim(axis)),
        ignored(ignore_index) {
    check_known_targets(node_of(classes), count, ignored);
    // One that the dtype cannot hold ignores nothing.
    if (ignored && !fits(*ignored, classes.dtype())) ignored.reset();
  }

  // The score of the target class, [N, ..]. A class that does not exist reads 0. A selection, not a
  // gather: its gradient is elementwise too.
  Tensor score_in(const Tensor& scores) const {
    Sizes sizes(scores.rank() - static_cast<size_t>(axis), 1);
    sizes[0] = count;
    Tensor each = reshape(literal_arange(count), sizes);
    return sum(where(unsqueeze(classes, axis) == each, scores, 0), axis);
  }

  Tensor counted() const { return classes != *ignored; }

  // The losses of classes there are, 0 where the target is ignored, and else NaN.
  Tensor checked(const Tensor& losses) const {
    Tensor exists = (classes >= 0) & (classes < literal_dim(count, DType::I32));
    if (!ignored) return where(exists, losses, kNan);
    const bool is_class = *ignored >= 0 && *ignored < count.max();
    return where(is_class ? exists & counted() : exists, losses, where(counted(), kNan, 0));
  }

  Tensor reduced(const Tensor& losses, Reduction reduction) const {
    if (!ignored || reduction != Reduction::Mean) return anneal::reduced(losses, reduction);
    const Tensor counts = counted();
    return with_named_gradient(sum(losses) / cast(sum(counts), losses.dtype()), "counted_mean", {},
                               {losses, counts});
  }
};

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
  Tensor scores = widen(logits);
  check_classes("logits", scores, target);
  const Targets targets(scores, target, ignore_index);
  if (!(label_smoothing >= 0 && label_smoothing <= 1))
    fail(fmt::format("label_smoothing is {}", label_smoothing), "it is a part of 1: give 0 to 1");
  Tensor log_p = log_softmax(scores, targets.axis);
  Tensor losses = -targets.score_in(log_p);
  if (label_smoothing > 0)
    losses = losses * (1 - label_smoothing) - mean(log_p, targets.axis) * label_smoothing;
  return targets.reduced(targets.checked(losses), reduction);
}

Tensor nll_loss(const Operand& log_probabilities, const Operand& target, Reduction reduction,
                std::optional<int64_t> ignore_index) {
  CallScope call("nll_loss", log_probabilities.where());
  Tensor scores = widen(log_probabilities);
  check_classes("log_probabilities", scores, target);
  const Targets targets(scores, target, ignore_index);
  return targets.reduced(targets.checked(-targets.score_in(scores)), reduction);
}

// The shares of the losses follow from the targets alone. Stored, they are made before the scores
// are there, and whoever goes through rows of scores reads one for each. They count by themselves:
// the number that the loss is divided by is made where the loss is, behind the scores.
Tensor counted_share(const Tensor& counts, DType dtype) {
  const Tensor count = literal_dim(counts.size(), DType::I32) - sum(!counts);
  return contiguous(where(counts, 1.0 / cast(count, dtype), 0));
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
