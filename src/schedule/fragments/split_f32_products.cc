#include "schedule/fragments/split_f32_products.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include <fmt/format.h>

#include "body/product.h"
#include "body/substitute.h"
#include "ir/build.h"
#include "ir/index.h"
#include "rewrite/local_rules.h"
#include "schedule/cost.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

constexpr int kMantissaBits = 23, kBias = 127, kInfinity = 0x7F800000;  // of f32
// The largest number becomes at least 2^14: below f16's largest, 2^16, and as far as can be above
// its smallest, 2^-24, which halves are rounded to.
constexpr int kLargestExponent = 14;

NodeRef integer(int64_t value) { return make_const(Scalar::of_int(DType::I32, value)); }
NodeRef minus(NodeRef a, NodeRef b) { return make(Op::Add, {a, make(Op::Neg, {b})}); }

// 2^(exponent - kBias), for exponents of normal numbers.
NodeRef power_of_two(NodeRef exponent) {
  return make_bitcast(make(Op::Shl, {exponent, integer(kMantissaBits)}), DType::F32);
}

// The exponent of a power of two that brings all numbers up to the one with these bits into f16's
// range. Its inverse is normal, too.
NodeRef exponent_of_factor(NodeRef largest) {
  NodeRef exponent = make(Op::Shr, {largest, integer(kMantissaBits)});
  NodeRef wanted = minus(integer(2 * kBias + kLargestExponent), exponent);
  return make(Op::Min, {make(Op::Max, {wanted, integer(1)}), integer(2 * kBias - 1)});
}

// As f32, but each is an f16.
struct Halves {
  NodeRef high, low;
};
Halves halves_of(NodeRef value) {
  auto rounded = [](NodeRef exact) { return make_cast(make_cast(exact, DType::F16), DType::F32); };
  NodeRef high = rounded(value);
  return {high, rounded(minus(value, high))};
}

// The bits of a number without its sign, which are the more the larger it is. What is infinite or
// no number would leave nothing of all others: it does not count.
NodeRef size_of_finite(NodeRef value) {
  NodeRef bits = make(Op::And, {make_bitcast(value, DType::I32), integer(INT32_MAX)});
  NodeRef finite = make(Op::Lt, {bits, integer(kInfinity)});
  return make(Op::Where, {finite, bits, integer(0)});
}

// A sum of products, and what it is to be.
struct Splitting {
  NodeRef sum, result;
};

const LocalRules<const Splitting> kRules{"split-f32-products",
                                         {{"two-halves", any_of({Op::SumOver}),
                                           [](NodeRef node, NodeRef, const Splitting& splitting) {
                                             return node == splitting.sum ? splitting.result
                                                                          : unchanged;
                                           }}},
                                         true,
                                         rebuilt};

class Splitter {
 public:
  Splitter(Rangified& program, Dataflow& flow, const ScheduleOptions& options)
      : program_(program),
        flow_(flow),
        eagerness_(options.threshold_scale),
        least_work_(options.capabilities.least_matrix_work),
        tuning_(options.capabilities.schedule),
        most_buffers_(static_cast<size_t>(options.capabilities.max_buffers)) {}

  void run() {
    const size_t fragments = program_.fragments.size();
    find_largest_of_inputs();
    for (size_t i = 0; i < fragments; ++i) split(i);
  }

 private:
  const Fragment& fragment() const { return program_.fragments[number_]; }

  void split(size_t number) {
    NodeRef sum = product_of(number);
    if (!sum) return;
    NodeRef result = split(sum);
    const Splitting splitting{sum, result};
    const std::vector<NodeRef> stores = program_.fragments[number].phases[0];
    program_.fragments[number].phases[0] = rewrite_once(stores, kRules, splitting);
    program_.fragments[number].refresh();
  }

  // The sum of a fragment, which is looked at from then on; null where it is not to be split.
  NodeRef product_of(size_t number) {
    number_ = number;
    const bool plain =
        fragment().is_product && fragment().tiles.empty() && fragment().phases.size() == 1;
    if (!plain || fragment().reads.size() + fragment().writes.size() + 2 > most_buffers_)
      return nullptr;
    NodeRef found = nullptr;
    for (NodeRef node : topological_order(fragment().phases[0])) {
      if (!is_reduce_over(node->op)) continue;
      if (found) return nullptr;
      found = node;
    }
    return found && is_large_product(found) ? found : nullptr;
  }

  // Of inputs and parameters, which are there from the beginning, many at once: each kernel takes
  // its time however little it does.
  void find_largest_of_inputs() {
    std::vector<NodeRef> inputs;
    const size_t fragments = program_.fragments.size();
    for (size_t i = 0; i < fragments; ++i) {
      NodeRef sum = product_of(i);
      if (!sum) continue;
      for (NodeRef operand : sum->source(0)->sources()) {
        if (!is_plain(operand)) continue;
        NodeRef buffer = operand->source(0);
        const ScheduleBuffer& memory = buffer_of(operand);
        if (memory.external && std::ranges::count(inputs, buffer) == 0) inputs.push_back(buffer);
      }
    }
    const size_t at_once = std::max<size_t>(1, most_buffers_ / 2);
    for (size_t first = 0; first < inputs.size(); first += at_once) {
      const size_t end = std::min(first + at_once, inputs.size());
      find_largest({inputs.begin() + static_cast<std::ptrdiff_t>(first),
                    inputs.begin() + static_cast<std::ptrdiff_t>(end)});
    }
  }

  static bool is_plain(NodeRef operand) {
    return operand->op == Op::Load && operand->source(2)->is_const();
  }
  const ScheduleBuffer& buffer_of(NodeRef load) const {
    return program_.buffers[static_cast<size_t>(schedule_buffer_of(load->source(0)))];
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
    const auto is_exact = [](NodeRef factor) {  // narrow already, so that one product is enough
      return factor->op == Op::Cast && is_narrow_float(factor->source(0)->dtype);
    };
    if (!f32 || (is_exact(term->source(0)) && is_exact(term->source(1)))) return false;
    const std::span<const NodeRef> summed = sum->sources().subspan(1);
    if (fragment().axes.size() > AxisSet::kMost) return false;
    FreeAxes free(fragment().axes);
    const FactorAxes axes = factor_axes(free.of(term->source(0)), free.of(term->source(1)));
    if (!axes.is_product()) return false;
    double work = eagerness_, terms = 1;
    for (NodeRef axis : summed) terms *= size_estimate(size_of(axis));
    const bool costs = eagerness_ == 1 && least_work_ > 0;
    if (costs && std::fmod(terms, kTermsOfAccess) != 0) return false;  // they are read one by one
    terms *= eagerness_;
    auto results = [&](const AxisSet& along) {  // axes of the result among them
      std::vector<size_t> list = along.list();
      std::erase_if(list, [&](size_t axis) {
        return std::ranges::count(summed, fragment().axes[axis].variable) > 0;
      });
      return list;
    };
    if (!results(axes.shared).empty()) return false;  // one matrix, no batches
    for (const AxisSet& side : {axes.rows, axes.columns}) {
      double elements = eagerness_;
      for (size_t axis : results(side)) elements *= size_estimate(fragment().axes[axis].size);
      if (elements < tuning_.least_matrix_side) return false;
      work *= elements;
    }
    return terms >= tuning_.least_matrix_terms && work * terms >= least_work_;
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
    NodeRef small = make(
        Op::Add, {product(halves[0].high, halves[1].low), product(halves[0].low, halves[1].high)});
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
    NodeRef key = is_plain(operand) ? operand->source(0) : operand;
    if (!found_.contains(key)) find_largest({key});
    const Found& found = found_.at(key);
    flow_.add(found.fragment, static_cast<int>(number_));
    return make(Op::Load, {found.buffer, index_const(0), always()});
  }

  static NodeRef always() { return make_const(Scalar::of_int(DType::Bool, 1)); }

  // One fragment for the largest of each: of a buffer, or of a value of this fragment.
  void find_largest(const std::vector<NodeRef>& keys) {
    Fragment fragment;
    fragment.phases.emplace_back();
    std::vector<NodeRef> buffers;
    for (NodeRef key : keys) {
      const auto [value, axes] = values_of(key);
      std::vector<NodeRef> sources{size_of_finite(value)};
      for (const Axis& axis : axes) sources.push_back(axis.variable);
      fragment.axes.insert(fragment.axes.end(), axes.begin(), axes.end());
      program_.buffers.push_back({.dtype = DType::I32, .elements = index_const(1)});
      buffers.push_back(schedule_buffer_node(static_cast<int>(program_.buffers.size()) - 1,
                                             program_.buffers.back()));
      fragment.phases[0].push_back(
          make(Op::Store, {buffers.back(), index_const(0), always(), make(Op::MaxOver, sources)},
               Arg(int64_t{0})));
    }
    fragment.refresh();
    program_.fragments.push_back(std::move(fragment));
    flow_.extend(program_);
    for (size_t i = 0; i < keys.size(); ++i)
      found_[keys[i]] = {static_cast<int>(program_.fragments.size()) - 1, buffers[i]};
  }

  struct Values {
    NodeRef value;
    std::vector<Axis> axes;
  };
  Values values_of(NodeRef key) {
    if (key->op != Op::Buffer) return {key, axes_of(key)};
    NodeRef elements = program_.buffers[static_cast<size_t>(schedule_buffer_of(key))].elements;
    NodeRef axis = make_variable(fmt::format("element{}", program_.buffers.size()), 0,
                                 std::max<int64_t>(1, bounds(elements).max) - 1);
    return {make(Op::Load, {key, axis, always()}), {{axis, elements}}};
  }

  struct Found {
    int fragment = -1;
    NodeRef buffer = nullptr;
  };

  Rangified& program_;
  Dataflow& flow_;
  double eagerness_, least_work_;
  const ScheduleTuning& tuning_;
  size_t most_buffers_;
  size_t number_ = 0;  // of the fragment that is looked at
  std::map<NodeRef, Found> found_;
};

}  // namespace

void split_products(Rangified& program, Dataflow& flow, const ScheduleOptions& options) {
  Splitter(program, flow, options).run();
}

}  // namespace anneal
