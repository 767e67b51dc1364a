// Interval arithmetic over nodes, one line an op.
// Must not evaluate anything.
#include "value_info.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>

#include <fmt/format.h>

#include "ir/float_formats.h"
#include "ir/index.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Divisors and what logarithms are taken of keep this far from zero.
constexpr double kLeast = 0.1;
// Arguments of exponentials and powers stay below this.
constexpr double kLargestExponent = 10;

// Beyond this a tensor is no longer tame: far below what the dtype holds, for sums of it.
double limit(DType dtype) {
  switch (dtype) {
    case DType::F8E4M3: return 200;
    case DType::F8E5M2:
    case DType::F16: return 16384;
    default: return 1e9;
  }
}

int64_t largest(NodeRef size) { return bounds(size).max; }
int64_t smallest(NodeRef size) { return std::max<int64_t>(0, bounds(size).min); }

struct Transfer {
  NodeRef node;
  std::vector<ValueInfo> sources;

  const ValueInfo& a() const { return sources[0]; }
  const ValueInfo& b() const { return sources[1]; }
  const ValueInfo& c() const { return sources[2]; }
  DType dtype() const { return node->dtype; }

  // ---- ways to make a result; `tame` is what the op asks beyond its sources being tame

  ValueInfo settle(ValueInfo info, bool tame) const {
    info.tame = tame;
    for (const ValueInfo& source : sources) info.tame &= source.tame;
    if (is_float(dtype())) {
      info.exact &= holds(dtype(), info.step, info.magnitude());
      // Extremes of nothing are infinite; whoever takes them must bound them first.
      const bool unbounded = node->op == Op::ReduceMax || node->op == Op::ReduceMin;
      info.tame &= unbounded || info.magnitude() <= limit(dtype());
      return info;
    }
    info.exact = true;
    info.step = 0;
    info.no_negative_zero = true;
    const double least = static_cast<double>(min_value(dtype()));
    const double greatest = static_cast<double>(max_value(dtype()));
    if (!(info.low >= least) || !(info.high <= greatest)) {
      info.low = least;
      info.high = greatest;
    }
    return info;
  }
  ValueInfo exact(double low, double high, int step, bool tame = true) const {
    ValueInfo info{.low = low, .high = high, .exact = true, .step = step};
    for (const ValueInfo& source : sources) info.exact &= source.exact;
    return settle(info, tame);
  }
  ValueInfo rounded(double low, double high, bool tame = true) const {
    return settle({.low = low, .high = high}, tame);
  }
  ValueInfo same(bool may_be_zero = false) const {
    ValueInfo info = a();
    if (may_be_zero) {
      info.low = std::min(info.low, 0.0);
      info.high = std::max(info.high, 0.0);
    }
    return settle(info, true);
  }
  ValueInfo either(const ValueInfo& x, const ValueInfo& y) const {
    ValueInfo info{.low = std::min(x.low, y.low),
                   .high = std::max(x.high, y.high),
                   .exact = x.exact && y.exact,
                   .step = std::min(x.step, y.step),
                   .no_negative_zero = x.no_negative_zero && y.no_negative_zero};
    return settle(info, true);
  }
  ValueInfo everything() const { return exact(-kInfinity, kInfinity, 0); }  // of an integer

  // ---- elementwise

  ValueInfo product(const ValueInfo& x, const ValueInfo& y) const {
    const double corners[] = {x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high};
    return exact(*std::ranges::min_element(corners), *std::ranges::max_element(corners),
                 x.step + y.step);
  }

  ValueInfo whole(double (*round)(double)) const {
    return exact(round(a().low), round(a().high), std::max(a().step, 0), a().exact);
  }

  ValueInfo quotient() const {
    const double least = b().low > 0 ? b().low : -b().high;
    const double most = a().magnitude() / std::max(least, kLeast);
    return rounded(a().low < 0 || b().low < 0 ? -most : 0, most, least >= kLeast);
  }

  ValueInfo power() const {
    const double corners[] = {std::pow(a().low, b().low), std::pow(a().low, b().high),
                              std::pow(a().high, b().low), std::pow(a().high, b().high)};
    return rounded(*std::ranges::min_element(corners), *std::ranges::max_element(corners),
                   a().low >= kLeast && b().magnitude() <= kLargestExponent);
  }

  ValueInfo float_op() const {
    const bool positive = a().low >= kLeast;
    const bool moderate = a().magnitude() <= kLargestExponent;
    switch (node->op) {
      case Op::Neg: return exact(-a().high, -a().low, a().step);
      case Op::Abs:
        return exact(
            a().low <= 0 && a().high >= 0 ? 0 : std::min(std::fabs(a().low), std::fabs(a().high)),
            a().magnitude(), a().step);
      case Op::Sqrt: return rounded(std::sqrt(a().low), std::sqrt(a().high), positive);
      case Op::Exp: return rounded(std::exp(a().low), std::exp(a().high), moderate);
      case Op::Exp2: return rounded(std::exp2(a().low), std::exp2(a().high), moderate);
      case Op::Log: return rounded(std::log(a().low), std::log(a().high), positive);
      case Op::Log2: return rounded(std::log2(a().low), std::log2(a().high), positive);
      case Op::Log10: return rounded(std::log10(a().low), std::log10(a().high), positive);
      case Op::Log1p: return rounded(std::log1p(a().low), std::log1p(a().high), positive);
      case Op::Expm1: return rounded(std::expm1(a().low), std::expm1(a().high), moderate);
      case Op::Sinh: return rounded(std::sinh(a().low), std::sinh(a().high), moderate);
      case Op::Cosh: return rounded(1, std::cosh(a().magnitude()), moderate);
      case Op::Asinh: return rounded(std::asinh(a().low), std::asinh(a().high));
      case Op::Erfc: return rounded(std::erfc(a().high), std::erfc(a().low));
      case Op::Atan2: {
        const double half = std::numbers::pi / 2;
        return rounded(a().low < 0 ? -half : 0, a().high > 0 ? half : 0, b().low >= kLeast);
      }
      case Op::Sin:
      case Op::Cos: return rounded(-1, 1, a().magnitude() <= 100);
      case Op::Tanh: return rounded(std::tanh(a().low), std::tanh(a().high));
      case Op::Erf: return rounded(std::erf(a().low), std::erf(a().high));
      case Op::Floor: return whole(std::floor);
      case Op::Ceil: return whole(std::ceil);
      case Op::Trunc: return whole(std::trunc);
      case Op::Round: return whole(std::nearbyint);
      case Op::Add:
        return exact(a().low + b().low, a().high + b().high, std::min(a().step, b().step));
      case Op::Mul: return product(a(), b());
      case Op::Div: return quotient();
      case Op::Pow: return power();
      case Op::Max:
        return exact(std::max(a().low, b().low), std::max(a().high, b().high),
                     std::min(a().step, b().step));
      case Op::Min:
        return exact(std::min(a().low, b().low), std::min(a().high, b().high),
                     std::min(a().step, b().step));
      default: return rounded(-kInfinity, kInfinity, false);
    }
  }

  ValueInfo int_op() const {
    const double most = std::max(a().magnitude(), sources.back().magnitude());
    const bool positive = a().low >= 0 && sources.back().low >= 0;
    const double bits = std::exp2(std::floor(std::log2(std::max(most, 1.0))) + 1) - 1;
    switch (node->op) {
      case Op::Neg: return exact(-a().high, -a().low, 0);
      case Op::Abs: return exact(0, a().magnitude(), 0);
      case Op::Add: return exact(a().low + b().low, a().high + b().high, 0);
      case Op::Mul: return product(a(), b());
      case Op::FloorDiv: return positive ? exact(0, a().high, 0) : everything();
      case Op::Mod:
        if (b().low > 0) return exact(0, b().high - 1, 0);
        return exact(-b().magnitude(), b().magnitude(), 0);
      case Op::Max: return exact(std::max(a().low, b().low), std::max(a().high, b().high), 0);
      case Op::Min: return exact(std::min(a().low, b().low), std::min(a().high, b().high), 0);
      case Op::And: return positive ? exact(0, most, 0) : everything();
      case Op::Or:
      case Op::Xor: return positive ? exact(0, bits, 0) : everything();
      case Op::Shr: return positive ? exact(0, a().high, 0) : everything();
      default: return everything();
    }
  }

  ValueInfo cast() const {
    if (is_float(dtype())) {
      ValueInfo info = a();
      return settle(info, true);
    }
    if (is_bool(dtype())) return exact(0, 1, 0, a().exact);
    if (is_float(node->source(0)->dtype))
      return exact(std::max(std::trunc(a().low), static_cast<double>(min_value(dtype()))),
                   std::min(std::trunc(a().high), static_cast<double>(max_value(dtype()))), 0,
                   a().exact);
    return exact(a().low, a().high, 0);
  }

  ValueInfo elementwise() const {
    switch (node->op) {
      case Op::Lt:
      case Op::Le:
      case Op::Eq: return exact(0, 1, 0, a().exact && b().exact);
      case Op::Where: return either(b(), c());
      case Op::Threefry: return everything();
      case Op::Cast: return cast();
      // Floats made of any bits may be NaN; of a float's bits both zeros differ.
      case Op::Bitcast:
        if (is_float(dtype())) return rounded(-kInfinity, kInfinity, false);
        return exact(-kInfinity, kInfinity, 0, a().exact && a().no_negative_zero);
      default: break;
    }
    if (is_bool(dtype())) return exact(0, 1, 0);
    return is_float(dtype()) ? float_op() : int_op();
  }

  // ---- reductions and the rest

  // Between how many elements are combined to one.
  std::pair<double, double> reduced() const {
    double least = 1, most = 1;
    for (int64_t axis : node->axes()) {
      NodeRef size = node->source(0)->dim(static_cast<size_t>(axis));
      least *= static_cast<double>(smallest(size));
      most *= static_cast<double>(largest(size));
    }
    return {least, most};
  }

  ValueInfo reduce() const {
    const auto [least, most] = reduced();
    switch (node->op) {
      case Op::ReduceSum:
        return exact(std::min(a().low * least, a().low * most),
                     std::max(a().high * least, a().high * most), a().step);
      case Op::ReduceProd: {
        const double magnitude = std::pow(std::max(1.0, a().magnitude()), most);
        const double low = a().low >= 0 ? std::pow(std::min(1.0, a().low), most) : -magnitude;
        return is_float(dtype()) ? rounded(low, magnitude) : exact(low, magnitude, 0);
      }
      default: break;
    }
    if (least >= 1) return same();
    ValueInfo info = a();
    if (node->op == Op::ReduceMax)
      info.low = is_float(dtype()) ? -kInfinity : lowest(dtype()).as_double();
    if (node->op == Op::ReduceMin)
      info.high = is_float(dtype()) ? kInfinity : highest(dtype()).as_double();
    return settle(info, true);
  }

  ValueInfo leaf() const {
    if (node->op == Op::Const) {
      const double value = node->scalar().as_double();
      int step = 0;
      for (; step > -60 && std::ldexp(value, -step) != std::trunc(std::ldexp(value, -step));)
        --step;
      ValueInfo info{.low = value, .high = value, .exact = step > -60, .step = step};
      info.no_negative_zero = !(value == 0 && std::signbit(value));
      return settle(info, std::isfinite(value));
    }
    if (node->op == Op::Iota) {
      const double last =
          static_cast<double>(largest(node->dim(static_cast<size_t>(node->arg.axis))));
      ValueInfo info{.low = 0, .high = std::max(0.0, last - 1), .exact = true};
      info.no_negative_zero = true;
      return settle(info, true);
    }
    const Grid grid = grid_of(node);
    ValueInfo info{.low = grid.first(), .high = grid.last(), .exact = true};
    info.step = -static_cast<int>(std::lround(std::log2(static_cast<double>(grid.denominator))));
    info.no_negative_zero = true;
    return settle(info, true);
  }

  ValueInfo run() const {
    if (node->tensors().empty()) return leaf();
    if (is_elementwise(node->op)) return elementwise();
    if (is_reduce(node->op)) return reduce();
    switch (node->op) {
      case Op::Pad:
      case Op::Gather: return same(true);  // zeros where there is nothing
      case Op::Scatter: return either(a(), c());
      case Op::ScatterAdd: {
        const double times =
            static_cast<double>(largest(node->source(2)->dim(static_cast<size_t>(node->arg.axis))));
        return exact(a().low + std::min(0.0, c().low * times),
                     a().high + std::max(0.0, c().high * times), std::min(a().step, c().step));
      }
      case Op::Assign: return settle(b(), true);
      default: return same();
    }
  }
};

}  // namespace

double ValueInfo::magnitude() const { return std::max(std::fabs(low), std::fabs(high)); }

bool holds(DType dtype, int step, double magnitude) {
  const FloatFormat& format = format_of(dtype);
  return step >= format.min_exponent() - format.mantissa_bits &&
         std::ldexp(magnitude, -step) <= std::ldexp(1, format.mantissa_bits + 1) &&
         magnitude <= largest_finite(dtype);
}

std::string buffer_name(std::string_view prefix, const Grid& grid) {
  if (grid.denominator == 1) return fmt::format("{}:{}..{}", prefix, grid.low, grid.high);
  return fmt::format("{}:{}..{}/{}", prefix, grid.low, grid.high, grid.denominator);
}

Grid grid_of(NodeRef buffer) {
  const std::string text(buffer->arg.symbol->text());
  const size_t colon = text.find(':'), dots = text.find(".."), slash = text.find('/');
  if (colon == std::string::npos || dots == std::string::npos) return {.low = 0, .high = 1};
  Grid grid;
  grid.low = std::atoll(text.c_str() + colon + 1);
  grid.high = std::max(grid.low, static_cast<int64_t>(std::atoll(text.c_str() + dots + 2)));
  if (slash != std::string::npos)
    grid.denominator = std::max<int64_t>(1, std::atoll(text.c_str() + slash + 1));
  return grid;
}

ValueInfo ValueInfos::operator[](NodeRef node) {
  if (const ValueInfo* info = known_.find(node)) return *info;
  for (NodeRef each : topological_order(std::span(&node, 1))) {
    if (each->dtype == DType::Index || known_.contains(each)) continue;
    Transfer transfer{each, {}};
    for (NodeRef source : each->tensors()) transfer.sources.push_back(*known_.find(source));
    known_[each] = transfer.run();
  }
  return *known_.find(node);
}

}  // namespace anneal
