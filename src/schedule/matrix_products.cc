#include "schedule/matrix_products.h"

#include <algorithm>
#include <map>

#include "ir/build.h"
#include "ir/index.h"
#include "schedule/cost.h"
#include "schedule/substitute.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

// Below these the largest numbers take longer to find than is won.
constexpr double kFewestOfSide = 128, kFewestTerms = 64, kLeastWork = 1 << 28;

constexpr int kMantissaBits = 23, kExponentMask = 0xFF, kBias = 127;
// The largest number becomes at least 2^14: below f16's largest, 2^16, and as far as can be above
// its smallest, 2^-24, which halves are rounded to.
constexpr int kLargestExponent = 14;

NodeRef integer(int64_t value) { return make_const(Scalar::of_int(DType::I32, value)); }
NodeRef minus(NodeRef a, NodeRef b) { return make(Op::Add, {a, make(Op::Neg, {b})}); }

// 2^(exponent - kBias), for exponents of normal numbers.
NodeRef power_of_two(NodeRef exponent) {
  return make_bitcast(make(Op::Shl, {exponent, integer(kMantissaBits)}), DType::F32);
}

// The exponent of a power of two that brings all numbers up to `largest` into f16's range. Its
// inverse is normal, too.
NodeRef exponent_of_factor(NodeRef largest) {
  NodeRef bits = make_bitcast(largest, DType::I32);
  NodeRef exponent =
      make(Op::And, {make(Op::Shr, {bits, integer(kMantissaBits)}), integer(kExponentMask)});
  NodeRef wanted = minus(integer(2 * kBias + kLargestExponent), exponent);
  return make(Op::Min,
              {make(Op::Max, {wanted, integer(1)}), integer(2 * kBias - 1)});
}

// As f32, but each is an f16.
struct Halves {
  NodeRef high, low;
};
Halves halves_of(NodeRef value) {
  auto rounded = [](NodeRef exact) {
    return make_cast(make_cast(exact, DType::F16), DType::F32);
  };
  NodeRef high = rounded(value);
  return {high, rounded(minus(value, high))};
}

class Splitter {
 public:
  Splitter(Rangified& program, Dataflow& flow, const ScheduleOptions& options)
      : program_(program),
        flow_(flow),
        eagerness_(options.eagerness),
        most_buffers_(static_cast<size_t>(options.capabilities.max_buffers)) {}

  void run() {
    const size_t fragments = program_.fragments.size();
    for (size_t i = 0; i < fragments; ++i) split_sums_of(i);
  }

 private:
  const Fragment& fragment() const { return program_.fragments[number_]; }

  void split_sums_of(size_t number) {
    number_ = number;
    const bool plain =
        fragment().is_product && fragment().tiles.empty() && fragment().phases.size() == 1;
    if (!plain || fragment().reads.size() + fragment().writes.size() + 2 > most_buffers_) return;
    const std::vector<NodeRef> stores = fragment().phases[0];
    NodeRef found = nullptr;
    for (NodeRef node : topological_order(stores)) {
      if (!is_reduce_over(node->op)) continue;
      if (found) return;
      found = node;
    }
    if (!found || !is_large_product(found)) return;
    NodeMap<NodeRef> by;
    by[found] = split(found);
    program_.fragments[number].phases[0] = substitute(stores, by);
    program_.fragments[number].refresh();
  }

  NodeRef size_of(NodeRef axis) const {
    return std::ranges::find(fragment().axes, axis, &Axis::variable)->size;
  }

  // Axes of the fragment that a value differs along.
  std::vector<Axis> axes_of(NodeRef value) const {
    std::vector<Axis> axes;
    for (NodeRef node : topological_order({&value, 1})) {
      const auto axis = std::ranges::find(fragment().axes, node, &Axis::variable);
      if (axis != fragment().axes.end()) axes.push_back(*axis);
    }
    return axes;
  }

  bool is_large_product(NodeRef sum) const {
    NodeRef term = sum->source(0);
    const bool f32 = sum->op == Op::SumOver && sum->dtype == DType::F32 && term->op == Op::Mul;
    if (!f32) return false;
    const std::span<const NodeRef> summed = sum->sources().subspan(1);
    double work = eagerness_, terms = eagerness_;
    for (NodeRef axis : summed) terms *= size_estimate(size_of(axis));
    for (size_t side : {0, 1}) {
      double elements = eagerness_;
      const std::vector<Axis> others = axes_of(term->source(1 - side));
      for (const Axis& axis : axes_of(term->source(side))) {
        if (std::ranges::count(summed, axis.variable) > 0) continue;
        if (std::ranges::count(others, axis.variable, &Axis::variable) > 0) return false;
        elements *= size_estimate(axis.size);
      }
      if (elements < kFewestOfSide) return false;
      work *= elements;
    }
    return terms >= kFewestTerms && work * terms >= kLeastWork;
  }

  NodeRef split(NodeRef sum) {
    NodeRef term = sum->source(0);
    NodeRef exponent = integer(2 * kBias);
    Halves halves[2];
    for (size_t side : {0, 1}) {
      NodeRef operand = term->source(side);
      NodeRef factor = exponent_of_factor(largest_of(operand));
      halves[side] = halves_of(make(Op::Mul, {operand, power_of_two(factor)}));
      exponent = minus(exponent, factor);
    }
    auto product = [&](NodeRef a, NodeRef b) { return make(Op::Mul, {a, b}); };
    NodeRef small = make(Op::Add, {product(halves[0].high, halves[1].low),
                                   product(halves[0].low, halves[1].high)});
    std::vector<NodeRef> sources(sum->sources().begin(), sum->sources().end());
    sources[0] = make(Op::Add, {product(halves[0].high, halves[1].high), small});
    // Back in two steps of the same direction: one alone may have no number.
    NodeRef half = make(Op::Shr, {exponent, integer(1)});
    NodeRef result = make(Op::SumOver, sources);
    for (NodeRef part : {half, minus(exponent, half)})
      result = product(result, power_of_two(make(Op::Add, {part, integer(kBias)})));
    return result;
  }

  // A load of what another fragment finds. What is read as it lies is looked through as a whole,
  // once for all who read it.
  NodeRef largest_of(NodeRef operand) {
    const bool plain = operand->op == Op::Load && operand->source(2)->is_const();
    NodeRef key = plain ? operand->source(0) : operand;
    auto known = found_.find(key);
    if (known == found_.end()) {
      std::vector<Axis> axes = axes_of(operand);
      if (plain) {
        const int buffer = schedule_buffer_of(operand->source(0));
        NodeRef elements = program_.buffers[static_cast<size_t>(buffer)].elements;
        NodeRef axis = make_variable("element", 0, std::max<int64_t>(1, bounds(elements).max) - 1);
        axes = {{axis, elements}};
        operand = make(Op::Load, {operand->source(0), axis, operand->source(2)});
      }
      known = found_.emplace(key, find_largest(operand, std::move(axes))).first;
    }
    flow_.add(known->second.fragment, static_cast<int>(number_));
    return make(Op::Load, {known->second.buffer, index_const(0), always()});
  }

  static NodeRef always() { return make_const(Scalar::of_int(DType::Bool, 1)); }

  struct Found {
    int fragment;
    NodeRef buffer;
  };
  Found find_largest(NodeRef value, std::vector<Axis> axes) {
    program_.buffers.push_back({.dtype = DType::F32, .elements = index_const(1)});
    const int number = static_cast<int>(program_.buffers.size()) - 1;
    NodeRef buffer = schedule_buffer_node(number, program_.buffers.back());
    std::vector<NodeRef> sources{make(Op::Abs, {value})};
    for (const Axis& axis : axes) sources.push_back(axis.variable);
    Fragment fragment;
    fragment.phases = {{make(
        Op::Store, {buffer, index_const(0), always(), make(Op::MaxOver, sources)}, Arg(int64_t{0}))}};
    fragment.axes = std::move(axes);
    fragment.refresh();
    program_.fragments.push_back(std::move(fragment));
    flow_.extend(program_);
    return {static_cast<int>(program_.fragments.size()) - 1, buffer};
  }

  Rangified& program_;
  Dataflow& flow_;
  double eagerness_;
  size_t most_buffers_;
  size_t number_ = 0;  // of the fragment that is looked at
  std::map<NodeRef, Found> found_;
};

}  // namespace

void split_products(Rangified& program, Dataflow& flow, const ScheduleOptions& options) {
  Splitter(program, flow, options).run();
}

}  // namespace anneal
