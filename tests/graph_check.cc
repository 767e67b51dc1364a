// Contents, error analysis and comparison of random programs.
// Must not know how a device works.
#include "graph_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/build.h"
#include "ir/float_formats.h"
#include "ir/node_map.h"
#include "value_info.h"

namespace anneal {
namespace {

// ---- contents

uint64_t mixed(uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Value drawn(NodeRef buffer, const std::vector<int64_t>& shape) {
  const Grid grid = grid_of(buffer);
  Value value{buffer->dtype, shape, {}};
  size_t count = 1;
  for (int64_t size : shape) count *= static_cast<size_t>(size);
  uint64_t seed = mixed(static_cast<uint64_t>(buffer->arg.symbol->first));
  for (char c : buffer->arg.symbol->text()) seed = mixed(seed ^ static_cast<uint64_t>(c));
  const uint64_t choices = static_cast<uint64_t>(grid.high - grid.low) + 1;
  for (size_t i = 0; i < count; ++i) {
    const int64_t point = grid.low + static_cast<int64_t>(mixed(seed + i) % choices);
    value.payload.push_back(is_float(value.dtype)
                                ? Scalar::of(value.dtype, static_cast<double>(point) /
                                                              static_cast<double>(grid.denominator))
                                      .bits()
                                : Scalar::of_int(value.dtype, point).bits());
  }
  return value;
}

// ---- error bounds

// Roundings of one op, in units of the last place, that a faithful backend may be off by. Its sums
// and products run in f32 for f32 and narrower; functions have their own approximations.
constexpr double kArithmeticRoundings = 2;
constexpr double kFunctionRoundings = 8;
// What is expected is rounded, too: two values next to each other may part by a whole last place.
constexpr double kCastRoundings = 2;

double unit(DType dtype) { return std::ldexp(1, -1 - format_of(dtype).mantissa_bits); }
double smallest_step(DType dtype) {
  const FloatFormat& format = format_of(dtype);
  // Numbers below the least normal one may be flushed to zero.
  return std::ldexp(1, dtype == DType::F32 || dtype == DType::F64
                           ? format.min_exponent()
                           : format.min_exponent() - format.mantissa_bits);
}

class ErrorBounds {
 public:
  NodeRef of(NodeRef root) {
    for (NodeRef node : topological_order(std::span(&root, 1)))
      if (node->dtype != DType::Index && !known_.contains(node))
        known_[node] = limited(bound(node));
    return *known_.find(root);
  }

 private:
  // ---- arithmetic on bounds; null is zero

  static NodeRef plain(NodeRef node) { return make_cast(node, DType::F64); }
  static NodeRef number(NodeRef like, double value) {
    return make_const(DType::F64, value, like->shape->dims());
  }
  static NodeRef size_of(NodeRef node) { return make(Op::Abs, {plain(node)}); }
  static NodeRef plus(NodeRef a, NodeRef b) { return !a ? b : !b ? a : make(Op::Add, {a, b}); }
  static NodeRef times(NodeRef a, NodeRef b) { return !a || !b ? nullptr : make(Op::Mul, {a, b}); }
  static NodeRef times(NodeRef a, double b) { return !a ? nullptr : times(a, number(a, b)); }
  static NodeRef greater(NodeRef a, NodeRef b) { return !a ? b : !b ? a : make(Op::Max, {a, b}); }
  // Where something is in doubt, anything may come of it.
  static constexpr double kAnything = 1e30;
  static NodeRef anything_where(NodeRef doubt) {
    if (!doubt) return nullptr;
    NodeRef none = number(doubt, 0);
    return make(Op::Where, {make(Op::Lt, {none, doubt}), number(doubt, kAnything), none});
  }
  // Infinite bounds would meet zeros.
  static NodeRef limited(NodeRef error) {
    const bool grows = error && (error->op == Op::Add || error->op == Op::Mul);
    return grows ? make(Op::Min, {error, number(error, kAnything)}) : error;
  }
  NodeRef of_source(NodeRef node, size_t i) { return *known_.find(node->source(i)); }

  // What rounding the result adds.
  static NodeRef rounding(NodeRef node, double roundings) {
    if (!is_float(node->dtype)) return nullptr;
    NodeRef size = size_of(node);
    return plus(times(size, roundings * unit(node->dtype)),
                number(node, roundings * smallest_step(node->dtype)));
  }
  static DType wide(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }

  bool any_doubt(NodeRef node) {
    for (size_t i = 0; i < node->tensors().size(); ++i)
      if (of_source(node, i)) return true;
    return false;
  }

  // ---- ops

  // |f(x + e) - f(x)| for a function whose slope within e is at most `slope`.
  NodeRef by_slope(NodeRef node, NodeRef slope) {
    return plus(times(of_source(node, 0), slope), rounding(node, kFunctionRoundings));
  }

  NodeRef float_op(NodeRef node) {
    NodeRef ea = of_source(node, 0);
    NodeRef a = plain(node->source(0));
    NodeRef eb = node->tensors().size() > 1 ? of_source(node, 1) : nullptr;
    NodeRef b = node->tensors().size() > 1 ? plain(node->source(1)) : nullptr;
    auto abs = [](NodeRef x) { return make(Op::Abs, {x}); };
    // a - e, where it stays well above zero.
    auto least = [&](NodeRef x, NodeRef e) {
      return e ? make(Op::Max, {make(Op::Add, {x, make(Op::Neg, {e})}), number(x, 1e-3)}) : x;
    };
    switch (node->op) {
      case Op::Neg:
      case Op::Abs: return ea;
      case Op::Floor:
      case Op::Ceil:
      case Op::Trunc:
      case Op::Round: return anything_where(ea);
      case Op::Max:
      case Op::Min: return greater(ea, eb);
      case Op::Add: return plus(plus(ea, eb), rounding(node, kArithmeticRoundings));
      case Op::Mul:
        return plus(plus(plus(times(abs(a), eb), times(abs(b), ea)), times(ea, eb)),
                    rounding(node, kArithmeticRoundings));
      case Op::Div: {
        NodeRef below = least(abs(b), eb);
        NodeRef spread = plus(ea, times(make(Op::Div, {abs(a), abs(b)}), eb));
        return plus(spread ? make(Op::Div, {spread, below}) : nullptr,
                    rounding(node, kArithmeticRoundings));
      }
      case Op::Pow: {
        // d a^b = a^b (b da / a + ln a db), and as much again for what is not linear.
        NodeRef by_base = ea ? make(Op::Div, {times(abs(b), ea), least(abs(a), ea)}) : nullptr;
        NodeRef by_exponent = times(abs(make(Op::Log, {a})), eb);
        return plus(times(times(size_of(node), plus(by_base, by_exponent)), 2.0),
                    rounding(node, kFunctionRoundings));
      }
      case Op::Sqrt:
        return plus(ea ? make(Op::Div, {ea, make(Op::Sqrt, {least(a, ea)})}) : nullptr,
                    rounding(node, kArithmeticRoundings));
      case Op::Sinh:
      case Op::Cosh: {  // whose slopes are below e^|x|
        NodeRef most = ea ? make(Op::Min, {plus(abs(a), ea), number(a, 60)}) : nullptr;
        return by_slope(node, most ? make(Op::Exp, {most}) : nullptr);
      }
      case Op::Atan2: {  // whose slopes are at most 1 / b, for b above zero
        NodeRef spread = plus(ea, eb);
        return plus(spread ? make(Op::Div, {spread, least(b, eb)}) : nullptr,
                    rounding(node, kFunctionRoundings));
      }
      case Op::Exp:
      case Op::Expm1:
      case Op::Exp2: {
        NodeRef slope = ea ? make(Op::Exp, {make(Op::Min, {plus(a, ea), number(a, 60)})}) : nullptr;
        return by_slope(node, slope);
      }
      case Op::Log:
      case Op::Log10:
      case Op::Log1p:
      case Op::Log2: {
        NodeRef slope = ea ? make(Op::Div, {number(a, 1.5), least(a, ea)}) : nullptr;
        // Near one the result is small, but its argument is rounded as ever.
        return plus(by_slope(node, slope), number(node, unit(node->dtype)));
      }
      case Op::Sin:
      case Op::Cos:
        return plus(by_slope(node, number(node, 1)), number(node, 4 * unit(node->dtype)));
      case Op::Tanh:
      case Op::Asinh:
      case Op::Erfc:
      case Op::Erf: return by_slope(node, number(node, 1.2));
      default: return anything_where(number(node, 1));
    }
  }

  NodeRef elementwise(NodeRef node) {
    if (node->op == Op::Where) {
      NodeRef x = of_source(node, 1), y = of_source(node, 2);
      NodeRef chosen = nullptr;
      if (x || y)
        chosen =
            make(Op::Where, {node->source(0), x ? x : number(node, 0), y ? y : number(node, 0)});
      return plus(chosen, anything_where(of_source(node, 0)));
    }
    if (!any_doubt(node) && (!is_float(node->dtype) || infos_[node].exact)) return nullptr;
    const bool compares = node->op == Op::Lt || node->op == Op::Le || node->op == Op::Eq;
    if (compares && is_float(node->source(0)->dtype)) {
      NodeRef apart =
          make(Op::Abs,
               {make(Op::Add, {plain(node->source(0)), make(Op::Neg, {plain(node->source(1))})})});
      NodeRef doubt = plus(of_source(node, 0), of_source(node, 1));
      return anything_where(
          make(Op::Where, {make(Op::Lt, {doubt, apart}), number(node, 0), number(node, 1)}));
    }
    if (node->op == Op::Cast && is_float(node->dtype))
      return plus(is_float(node->source(0)->dtype) ? of_source(node, 0)
                                                   : anything_where(of_source(node, 0)),
                  rounding(node, kCastRoundings));
    if (node->op == Op::Cast || node->op == Op::Bitcast || !is_float(node->dtype)) {
      NodeRef doubt = nullptr;
      for (size_t i = 0; i < node->tensors().size(); ++i)
        doubt = plus(doubt, anything_where(of_source(node, i)));
      return doubt;
    }
    return float_op(node);
  }

  // Errors of many roundings grow like their number where the terms are equal, for then every one
  // has the same sign; of f64 the expected sum has them, too.
  static double roundings_of_sum(double count, DType dtype) {
    return 4 + (dtype == DType::F64 ? 2 : 1) * count;
  }

  double reduced_count(NodeRef node) {
    double count = 1;
    for (int64_t axis : node->axes()) {
      NodeRef size = node->source(0)->dim(static_cast<size_t>(axis));
      count *= is_static(size) ? static_cast<double>(static_value(size)) : 64;
    }
    return count;
  }

  NodeRef reduce(NodeRef node) {
    NodeRef error = of_source(node, 0);
    if (!error && (!is_float(node->dtype) || infos_[node].exact)) return nullptr;
    if (!is_float(node->dtype)) return make_axes(Op::ReduceMax, error, node->axes());
    const bool extreme = node->op == Op::ReduceMax || node->op == Op::ReduceMin;
    if (extreme)
      return error ? greater(make_axes(Op::ReduceMax, error, node->axes()), number(node, 0))
                   : nullptr;
    NodeRef sizes = size_of(node->source(0));
    const double noise =
        roundings_of_sum(reduced_count(node), node->dtype) * unit(wide(node->dtype));
    if (node->op == Op::ReduceSum)
      return plus(plus(error ? make_axes(Op::ReduceSum, error, node->axes()) : nullptr,
                       times(make_axes(Op::ReduceSum, sizes, node->axes()), noise)),
                  rounding(node, kArithmeticRoundings));
    // prod(|x| + e) - prod |x|
    NodeRef most = make_axes(Op::ReduceProd, plus(sizes, error), node->axes());
    NodeRef least = make_axes(Op::ReduceProd, sizes, node->axes());
    return plus(plus(make(Op::Add, {most, make(Op::Neg, {least})}), times(most, noise)),
                rounding(node, kArithmeticRoundings));
  }

  static NodeRef or_zero(NodeRef error, NodeRef like) { return error ? error : number(like, 0); }

  NodeRef bound(NodeRef node) {
    if (node->tensors().empty()) return nullptr;
    if (is_elementwise(node->op)) return elementwise(node);
    if (is_reduce(node->op)) return reduce(node);
    NodeRef error = of_source(node, 0);
    switch (node->op) {
      case Op::Gather: {
        NodeRef doubt = anything_where(of_source(node, 1));
        return plus(error ? make(Op::Gather, {error, node->source(1)}, node->arg) : nullptr, doubt);
      }
      case Op::Scatter:
      case Op::ScatterAdd: {
        NodeRef update = of_source(node, 2);
        if (of_source(node, 1)) return anything_where(number(node, 1));
        NodeRef spread = nullptr;
        if (error || update)
          spread = make(node->op,
                        {or_zero(error, node), node->source(1), or_zero(update, node->source(2))},
                        node->arg);
        if (node->op == Op::Scatter || !is_float(node->dtype) || infos_[node].exact) return spread;
        NodeRef sizes =
            make(Op::ScatterAdd,
                 {size_of(node->source(0)), node->source(1), size_of(node->source(2))}, node->arg);
        // Added one after the other to memory of that dtype.
        NodeRef length = node->source(2)->dim(static_cast<size_t>(node->arg.axis));
        const double count = is_static(length) ? static_cast<double>(static_value(length)) : 64;
        return plus(plus(spread, times(sizes, (2 + count) * unit(node->dtype))),
                    rounding(node, kArithmeticRoundings));
      }
      case Op::Assign: return of_source(node, 1);
      case Op::Contiguous:
      case Op::StopGradient:
      case Op::CustomGrad:
      case Op::Named: return error;
      default: break;
    }
    if (!error) return nullptr;  // movement
    std::vector<NodeRef> sources(node->sources().begin(), node->sources().end());
    sources[0] = error;
    return make(node->op, sources, node->arg);
  }

  NodeMap<NodeRef> known_;
  ValueInfos infos_;
};

std::string position_text(size_t position, const std::vector<int64_t>& shape) {
  std::vector<int64_t> coordinates(shape.size());
  auto rest = static_cast<int64_t>(position);
  for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
    coordinates[axis] = rest % shape[axis];
  return fmt::format("[{}]", fmt::join(coordinates, ", "));
}

}  // namespace

std::vector<SizeBinding> size_bindings(std::span<const NodeRef> roots) {
  std::vector<NodeRef> variables;
  for (NodeRef node : topological_order(roots))
    if (node->op == Op::Variable) variables.push_back(node);
  std::vector<SizeBinding> bindings(variables.empty() ? 1 : 3);
  for (size_t i = 0; i < variables.size(); ++i) {
    const int64_t low = variables[i]->arg.symbol->first, high = variables[i]->arg.symbol->second;
    const int64_t middle = low + (high - low) / 2;
    bindings[0][variables[i]] = low;
    bindings[1][variables[i]] = i % 2 ? middle : high;
    bindings[2][variables[i]] = i % 2 ? high : middle;
  }
  return bindings;
}

int64_t GraphContents::size(NodeRef expression) const {
  return interpret_index(expression, [this](NodeRef variable) { return sizes_.at(variable); });
}

const Value& GraphContents::value(NodeRef buffer) {
  auto [entry, fresh] = values_.try_emplace(buffer);
  if (!fresh) return entry->second;
  std::vector<int64_t> shape;
  for (NodeRef dim : buffer->shape->dims()) shape.push_back(size(dim));
  return entry->second = drawn(buffer, shape);
}

Environment GraphContents::environment() {
  return {.variable = [this](NodeRef variable) { return sizes_.at(variable); },
          .buffer = [this](NodeRef buffer) { return &value(buffer); },
          .known = nullptr};
}

std::vector<NodeRef> error_bounds(std::span<const NodeRef> roots) {
  ErrorBounds bounds;
  std::vector<NodeRef> errors;
  for (NodeRef root : roots) errors.push_back(bounds.of(root));
  return errors;
}

Expectation expect(std::span<const NodeRef> roots, GraphContents& contents) {
  std::vector<NodeRef> all(roots.begin(), roots.end());
  const std::vector<NodeRef> errors = error_bounds(roots);
  for (NodeRef error : errors)
    if (error) all.push_back(error);
  std::vector<Value> values = interpret(all, contents.environment());
  Expectation result;
  result.errors.resize(roots.size());
  size_t next = roots.size();
  for (size_t i = 0; i < roots.size(); ++i)
    if (errors[i]) result.errors[i] = std::move(values[next++]);
  values.resize(roots.size());
  result.values = std::move(values);
  return result;
}

std::string difference(const Value& got, const Value& expected, const Value& error) {
  if (got.dtype != expected.dtype || got.shape != expected.shape)
    return fmt::format("is {}[{}], expected {}[{}]", name(got.dtype), fmt::join(got.shape, ", "),
                       name(expected.dtype), fmt::join(expected.shape, ", "));
  for (size_t i = 0; i < expected.payload.size(); ++i) {
    if (got.payload[i] == expected.payload[i]) continue;
    const auto at = static_cast<int64_t>(i);
    const double allowed = error.payload.empty() ? 0 : error.as_double(at);
    if (!is_float(expected.dtype)) {
      if (allowed > 0) continue;
      return fmt::format("is {} at {}, expected {}", to_text(got.at(at)),
                         position_text(i, got.shape), to_text(expected.at(at)));
    }
    const double a = got.as_double(at), b = expected.as_double(at);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (std::isfinite(a) && std::isfinite(b) && std::fabs(a - b) <= allowed) continue;
    return fmt::format("is {} at {}, expected {}: off by {}, allowed {}", a,
                       position_text(i, got.shape), b, a - b, allowed);
  }
  return "";
}

}  // namespace anneal
