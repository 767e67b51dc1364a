// Products with a sum: matmul, dot, outer, einsum. All of them end in one multiplication over
// [batch.., left.., right.., summed..] and one sum over the last axes, the form kernels look for.
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include <fmt/format.h>

#include <anneal/tensor.h>

#include "tensor/movement.h"

namespace anneal {
namespace {

// The operands as numbers of the dtype in which they meet.
std::array<NodeRef, 2> numbers(const Operand& a, const Operand& b) {
  DType dtype = meeting_dtype(std::array{&a, &b});
  if (is_bool(dtype)) dtype = DType::I32;
  return {lift(a, dtype), lift(b, dtype)};
}

// Axes that have size one where `axes` names none: result axis i is source axis axes[i], or new.
NodeRef arranged(NodeRef node, std::span<const int64_t> axes) {
  std::vector<int64_t> order;
  std::vector<NodeRef> dims;
  for (int64_t axis : axes) {
    if (axis >= 0) order.push_back(axis);
    dims.push_back(axis >= 0 ? node->dim(static_cast<size_t>(axis)) : index_const(1));
  }
  return reshape_node(permute_node(node, order), dims);
}

// Sum of a * b over the last `summed` axes, which disappear.
NodeRef multiply_and_sum(NodeRef a, NodeRef b, size_t summed) {
  std::array<NodeRef, 2> pair{a, b};
  std::vector<NodeRef> dims = broadcast_dims(pair);
  check_sizes(dims);
  std::vector<int64_t> axes;
  for (size_t axis = dims.size() - summed; axis < dims.size(); ++axis)
    axes.push_back(static_cast<int64_t>(axis));
  NodeRef sums = sum_of_products(a, b, dims, axes);
  dims.resize(dims.size() - summed);
  return reshape_node(sums, dims);
}

// ---- matmul

[[noreturn]] void fail_inner(NodeRef a, NodeRef b, const Dim& columns, const Dim& rows) {
  std::string hint = fmt::format("right needs {} rows", columns.text());
  if (b->rank() >= 2 && Dim(b->dim(b->rank() - 1)) == columns)
    hint += "; did you mean transpose(right)?";
  else if (a->rank() >= 2 && Dim(a->dim(a->rank() - 2)) == rows)
    hint = fmt::format("left needs {} columns; did you mean transpose(left)?", rows.text());
  fail(fmt::format("inner sizes differ: left is {}, right is {}", shape_text(a), shape_text(b)),
       hint);
}

// The axes before the last two are equal or one, compared from their end.
void check_batch(NodeRef a, NodeRef b) {
  auto is_one = [](const Dim& dim) { return dim.is_static() && dim.value() == 1; };
  for (size_t back = 3; back <= std::min(a->rank(), b->rank()); ++back) {
    Dim left(a->dim(a->rank() - back)), right(b->dim(b->rank() - back));
    if (is_one(left) || is_one(right) || left == right) continue;
    fail(fmt::format("batch sizes differ: left is {}, right is {} ({} and {})", shape_text(a),
                     shape_text(b), left.text(), right.text()),
         "sizes before the last two must be equal or 1, compared from the end");
  }
}

// [.., M, K] and [.., K, N] become [.., M, 1, K] and [.., 1, N, K]. A vector has no M, or no N.
NodeRef matmul_node(NodeRef a, NodeRef b) {
  size_t inner_axis = b->rank() - std::min<size_t>(b->rank(), 2);
  Dim columns(a->dim(a->rank() - 1)), rows(b->dim(inner_axis));
  if (!(columns == rows)) fail_inner(a, b, columns, rows);
  check_batch(a, b);
  std::vector<int64_t> left, right;
  for (size_t axis = 0; axis + 1 < a->rank(); ++axis) left.push_back(static_cast<int64_t>(axis));
  for (size_t axis = 0; axis < inner_axis; ++axis) right.push_back(static_cast<int64_t>(axis));
  if (b->rank() >= 2) {
    left.push_back(-1);
    if (a->rank() >= 2) right.push_back(-1);
    right.push_back(static_cast<int64_t>(b->rank()) - 1);
  }
  left.push_back(static_cast<int64_t>(a->rank()) - 1);
  right.push_back(static_cast<int64_t>(inner_axis));
  return multiply_and_sum(arranged(a, left), arranged(b, right), 1);
}

void check_vectors(NodeRef a, NodeRef b, const char* hint) {
  if (a->rank() != 1 || b->rank() != 1)
    fail(fmt::format("both must have one axis: left is {}, right is {}", shape_text(a),
                     shape_text(b)),
         hint);
}

// ---- einsum

// A letter of the equation, or 256 + n for the n-th axis of "..." counted from its end.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 256;

bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::string label_text(Label label) {
  return label < kEllipsis ? fmt::format("index {}", static_cast<char>(label))
                           : "an axis of \"...\"";
}

// One comma-separated part: letters, and "..." at most once (kEllipsis).
Labels parse_term(std::string_view equation, std::string_view term) {
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    char c = term[i];
    if (c == ' ') continue;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(c);
    } else if (term.substr(i, 3) == "...") {
      if (contains(labels, kEllipsis))
        fail(fmt::format("\"{}\" has \"...\" twice in one term", equation),
             "\"...\" stands for all axes that have no letter");
      labels.push_back(kEllipsis);
      i += 2;
    } else {
      fail(fmt::format("'{}' in \"{}\" is not an index", c, equation),
           "an equation is letters, commas, \"...\" and one \"->\", as in \"ij,jk->ik\"");
    }
  }
  return labels;
}

class Einsum {
 public:
  Einsum(std::string_view equation, std::vector<NodeRef> operands)
      : equation_(equation), operands_(std::move(operands)) {
    parse();
    check_indices();
  }

  NodeRef run() {
    Part total = summed(part(0), {}, 0);
    for (size_t i = 1; i < operands_.size(); ++i) total = multiply(total, part(i), i);
    return arrange(total.node, total.labels, output_);
  }

 private:
  // A tensor and what each of its axes is called; no name appears twice.
  struct Part {
    NodeRef node;
    Labels labels;
  };

  // ---- parsing

  void parse() {
    std::string_view inputs = equation_, output;
    size_t arrow = equation_.find("->");
    if (arrow != std::string_view::npos) {
      inputs = equation_.substr(0, arrow);
      output = equation_.substr(arrow + 2);
      if (output.find("->") != std::string_view::npos)
        fail(fmt::format("\"{}\" has more than one \"->\"", equation_),
             "one \"->\" stands before the indices of the result");
    }
    for (size_t begin = 0; begin <= inputs.size();) {
      size_t end = std::min(inputs.find(',', begin), inputs.size());
      terms_.push_back(parse_term(equation_, inputs.substr(begin, end - begin)));
      begin = end + 1;
    }
    if (terms_.size() != operands_.size())
      fail(fmt::format("\"{}\" is for {} tensors, but {} are given", equation_, terms_.size(),
                       operands_.size()),
           "write one term a tensor, with commas between them");
    size_t ellipsis_axes = 0;
    for (size_t i = 0; i < terms_.size(); ++i)
      ellipsis_axes = std::max(ellipsis_axes, expand_ellipsis(i));
    if (arrow == std::string_view::npos)
      infer_output(ellipsis_axes);
    else
      read_output(output, ellipsis_axes);
  }

  // Puts labels in the place of "..." and answers how many.
  size_t expand_ellipsis(size_t i) {
    Labels& term = terms_[i];
    size_t rank = operands_[i]->rank();
    auto place = std::find(term.begin(), term.end(), kEllipsis);
    bool open = place != term.end();
    size_t letters = term.size() - (open ? 1 : 0);
    if (open ? rank < letters : rank != letters)
      fail(fmt::format("operand {} is {}, but its term in \"{}\" has {} indices", i,
                       shape_text(operands_[i]), equation_, letters),
           open ? "give the tensor more axes, or the term fewer letters"
                : "write one letter an axis, or \"...\" for the rest");
    if (!open) return 0;
    size_t count = rank - letters;
    place = term.erase(place);
    for (size_t n = 0; n < count; ++n)
      place = term.insert(place, kEllipsis + static_cast<Label>(n));
    return count;
  }

  Labels ellipsis(size_t axes) const {
    Labels labels;
    for (size_t n = axes; n-- > 0;) labels.push_back(kEllipsis + static_cast<Label>(n));
    return labels;
  }

  // Without "->": the axes of "...", then every letter that appears once, in alphabetical order.
  void infer_output(size_t ellipsis_axes) {
    std::map<Label, int> times;
    for (const Labels& term : terms_)
      for (Label label : term) ++times[label];
    output_ = ellipsis(ellipsis_axes);
    for (const auto& [label, count] : times)
      if (label < kEllipsis && count == 1) output_.push_back(label);
  }

  void read_output(std::string_view text, size_t ellipsis_axes) {
    for (Label label : parse_term(equation_, text)) {
      if (label == kEllipsis) {
        Labels axes = ellipsis(ellipsis_axes);
        output_.insert(output_.end(), axes.begin(), axes.end());
        continue;
      }
      if (contains(output_, label))
        fail(fmt::format("{} is twice in the result of \"{}\"", label_text(label), equation_),
             "an index of the result names one axis");
      bool known = std::any_of(terms_.begin(), terms_.end(),
                               [&](const Labels& term) { return contains(term, label); });
      if (!known)
        fail(fmt::format("{} of the result is in no term of \"{}\"", label_text(label), equation_),
             "an index of the result must come from an operand");
      output_.push_back(label);
    }
  }

  // A letter means one size everywhere; an axis of "..." may be 1 in some operands.
  void check_indices() {
    std::map<Label, std::pair<size_t, Dim>> known;
    for (size_t i = 0; i < terms_.size(); ++i) {
      for (size_t axis = 0; axis < terms_[i].size(); ++axis) {
        Label label = terms_[i][axis];
        Dim size(operands_[i]->dim(axis));
        auto [entry, fresh] = known.try_emplace(label, i, size);
        auto& [first, common] = entry->second;
        if (fresh || size == common) continue;
        bool broadcasts = label >= kEllipsis;
        if (broadcasts && size.is_static() && size.value() == 1) continue;
        if (broadcasts && common.is_static() && common.value() == 1) {
          entry->second = {i, size};
          continue;
        }
        fail(fmt::format("{} of \"{}\" is {} in operand {} {} and {} in operand {} {}",
                         label_text(label), equation_, common.text(), first,
                         shape_text(operands_[first]), size.text(), i, shape_text(operands_[i])),
             "axes that share an index must have the same size");
      }
    }
  }

  // ---- contraction

  // Whether an index still matters once the operands up to `last` are multiplied.
  bool needed_after(Label label, size_t last) const {
    if (contains(output_, label)) return true;
    for (size_t i = last + 1; i < terms_.size(); ++i)
      if (contains(terms_[i], label)) return true;
    return false;
  }

  // Operand i with its diagonals taken.
  Part part(size_t i) const {
    Part result{operands_[i], terms_[i]};
    for (size_t a = 0; a < result.labels.size(); ++a) {
      for (size_t b = a + 1; b < result.labels.size();) {
        if (result.labels[a] == result.labels[b])
          result = diagonal_of(result, a, b);
        else
          ++b;
      }
    }
    return result;
  }

  // Axis a of the result walks a and b together.
  static Part diagonal_of(const Part& part, size_t a, size_t b) {
    std::vector<int64_t> order;
    for (size_t axis = 0; axis < part.labels.size(); ++axis)
      if (axis != a && axis != b) order.push_back(static_cast<int64_t>(axis));
    order.push_back(static_cast<int64_t>(a));
    order.push_back(static_cast<int64_t>(b));
    Tensor line = diagonal(wrap(permute_node(part.node, order)));
    // The diagonal stands last: back to place a.
    std::vector<int64_t> back;
    int64_t last = static_cast<int64_t>(part.labels.size()) - 2;
    for (int64_t axis = 0; axis < last; ++axis) back.push_back(axis);
    back.insert(back.begin() + static_cast<std::ptrdiff_t>(a), last);
    Labels labels = part.labels;
    labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(b));
    return {permute_node(node_of(line), back), labels};
  }

  // Without the indices that are in neither `kept` nor what follows operand i.
  Part summed(const Part& part, const Labels& kept, size_t i) const {
    std::vector<int64_t> axes;
    std::vector<NodeRef> dims;
    Labels labels;
    for (size_t axis = 0; axis < part.labels.size(); ++axis) {
      Label label = part.labels[axis];
      if (!contains(kept, label) && !needed_after(label, i)) {
        axes.push_back(static_cast<int64_t>(axis));
        continue;
      }
      labels.push_back(label);
      dims.push_back(part.node->dim(axis));
    }
    return {reshape_node(reduce_node(Op::ReduceSum, part.node, axes), dims), labels};
  }

  // Both over [shared.., left.., right.., summed..], where what is summed stands in both of them;
  // an index that only the right one has and nothing needs is summed before.
  Part multiply(const Part& a, Part b, size_t i) const {
    b = summed(b, a.labels, i);
    Labels shared, left, right, gone;
    for (Label label : a.labels) {
      bool both = contains(b.labels, label);
      (!needed_after(label, i) ? gone : both ? shared : left).push_back(label);
    }
    for (Label label : b.labels)
      if (!contains(a.labels, label)) right.push_back(label);
    Labels labels = shared;
    for (const Labels* more : {&left, &right, &gone})
      labels.insert(labels.end(), more->begin(), more->end());
    NodeRef node = multiply_and_sum(arrange(a.node, a.labels, labels),
                                    arrange(b.node, b.labels, labels), gone.size());
    labels.resize(labels.size() - gone.size());
    return {node, labels};
  }

  static NodeRef arrange(NodeRef node, const Labels& from, const Labels& to) {
    std::vector<int64_t> axes;
    for (Label label : to) {
      auto place = std::find(from.begin(), from.end(), label);
      axes.push_back(place == from.end() ? -1 : place - from.begin());
    }
    return arranged(node, axes);
  }

  std::string_view equation_;
  std::vector<NodeRef> operands_;
  std::vector<Labels> terms_;
  Labels output_;
};

}  // namespace

Tensor matmul(const Operand& a, const Operand& b) {
  CallScope call("matmul", a.where());
  auto [left, right] = numbers(a, b);
  if (left->rank() == 0 || right->rank() == 0)
    fail(fmt::format("both must have an axis: left is {}, right is {}", shape_text(left),
                     shape_text(right)),
         "use * to multiply by a scalar");
  return wrap(matmul_node(left, right));
}

Tensor dot(const Operand& a, const Operand& b) {
  CallScope call("dot", a.where());
  auto [left, right] = numbers(a, b);
  check_vectors(left, right, "use matmul for matrices and batches");
  if (!(Dim(left->dim(0)) == Dim(right->dim(0))))
    fail(fmt::format("sizes differ: left is {}, right is {}", shape_text(left), shape_text(right)),
         "both must have the same number of elements");
  return wrap(multiply_and_sum(left, right, 1));
}

Tensor outer(const Operand& a, const Operand& b) {
  CallScope call("outer", a.where());
  auto [left, right] = numbers(a, b);
  check_vectors(left, right, "flatten them first");
  return wrap(multiply_and_sum(arranged(left, std::array<int64_t, 2>{0, -1}),
                               arranged(right, std::array<int64_t, 2>{-1, 0}), 0));
}

Tensor einsum(std::string_view equation, const std::vector<Tensor>& tensors, Location where) {
  CallScope call("einsum", where);
  if (tensors.empty()) fail("there are no tensors", "give one tensor a term of the equation");
  std::vector<DType> dtypes;
  for (const Tensor& tensor : tensors) dtypes.push_back(node_of(tensor)->dtype);
  DType dtype = promote_all(dtypes);
  if (is_bool(dtype)) dtype = DType::I32;
  std::vector<NodeRef> operands;
  for (const Tensor& tensor : tensors) operands.push_back(make_cast(node_of(tensor), dtype));
  return wrap(Einsum(equation, std::move(operands)).run());
}

}  // namespace anneal
