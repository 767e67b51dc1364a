// Evaluates graphs one node after another, sources first. Movement ops only change how memory is
// read; everything else walks its operands in row-major order. Must not give an elementwise op a
// meaning of its own: semantics.h has it, and the few lines repeated here for speed equal it.
#include "ir/interpreter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/call_site.h"
#include "base/checked.h"
#include "ir/float_formats.h"
#include "ir/node_map.h"
#include "ir/semantics.h"
#include "ir/strided.h"

namespace anneal {
namespace {

using namespace strided;

// ---- payloads of floats

double as_double(uint64_t payload) { return std::bit_cast<double>(payload); }
uint64_t float_bits(double value) {
  return std::bit_cast<uint64_t>(std::isnan(value) ? std::numeric_limits<double>::quiet_NaN()
                                                   : value);
}
// NaN if either is, the first if they are equal.
constexpr auto kFloatMax = [](double a, double b) { return std::isnan(b) || b > a ? b : a; };
constexpr auto kFloatMin = [](double a, double b) { return std::isnan(b) || b < a ? b : a; };

// ---- one node

[[noreturn]] void fail_at(NodeRef node, const std::string& message) {
  fail(fmt::format("{}: {}", name(node->op), message),
       node->origin ? "it comes from " + to_text(*node->origin) : "");
}

// The value of one node from the values of its sources.
struct Step {
  NodeRef node;
  std::span<const View* const> sources;

  const View& source(size_t i) const { return *sources[i]; }
  size_t axis() const { return static_cast<size_t>(node->arg.axis); }
  std::span<const View* const> tail() const { return sources.subspan(node->tensors().size()); }

  Sizes tail_sizes() const {
    Sizes sizes;
    for (const View* size : tail()) sizes.push_back(integer(*size));
    return sizes;
  }

  void check_same(const Sizes& a, const Sizes& b) const {
    if (a != b)
      fail_at(node,
              fmt::format("shapes differ: [{}] and [{}]", fmt::join(a, ", "), fmt::join(b, ", ")));
  }

  // ---- elementwise

  // element(payloads...) for each element of the N sources.
  template <size_t N, typename Element>
  View map(Element element) const {
    Fresh result = allocate(node->dtype, source(0).shape);
    for (size_t k = 1; k < N; ++k) check_same(source(0).shape, source(k).shape);
    [&]<size_t... K>(std::index_sequence<K...>) {
      const std::array<const uint64_t*, N> data{source(K).data.get()...};
      uint64_t* out = result.data.get();
      walk<N + 1>(result.view.shape, {layout(source(K))..., layout(result.view)},
                  [&](int64_t count, const auto& at, const auto& step) {
                    for (int64_t i = 0; i < count; ++i)
                      out[at[N] + i] = element(data[K][at[K] + i * step[K]]...);
                  });
    }(std::make_index_sequence<N>());
    return std::move(result).done();
  }

  template <size_t N>
  View map_by_semantics() const {
    return map<N>([this](auto... payloads) {
      size_t k = 0;
      const std::array<Scalar, N> operands{Scalar::from_bits(source(k++).dtype, payloads)...};
      return evaluate(node->op, node->dtype, operands).bits();
    });
  }

  // function(doubles...) rounded to f32 or f64: what evaluate() does, without asking it what to do
  // for every element.
  template <size_t N, typename Function>
  View map_floats(Function function) const {
    if (node->dtype == DType::F64)
      return map<N>([=](auto... payloads) { return float_bits(function(as_double(payloads)...)); });
    return map<N>([=](auto... payloads) {
      return float_bits(static_cast<float>(function(as_double(payloads)...)));
    });
  }

  template <typename Comparison>
  View compare_floats(Comparison comparison) const {
    return map<2>([=](uint64_t a, uint64_t b) -> uint64_t {
      return comparison(as_double(a), as_double(b)) ? 1 : 0;
    });
  }

  // The ops that most of the time goes to; the tests hold these lines to those of semantics.cc.
  std::optional<View> quick_elementwise() const {
    if (node->op == Op::Where)
      return map<3>([](uint64_t a, uint64_t b, uint64_t c) { return a != 0 ? b : c; });
    if (is_float(source(0).dtype)) switch (node->op) {
        case Op::Lt: return compare_floats(std::less());
        case Op::Le: return compare_floats(std::less_equal());
        case Op::Eq: return compare_floats(std::equal_to());
        default: break;
      }
    if (node->dtype != DType::F32 && node->dtype != DType::F64) return std::nullopt;
    switch (node->op) {
      case Op::Neg: return map_floats<1>([](double a) { return -a; });
      case Op::Add: return map_floats<2>([](double a, double b) { return a + b; });
      case Op::Mul: return map_floats<2>([](double a, double b) { return a * b; });
      case Op::Div: return map_floats<2>([](double a, double b) { return a / b; });
      case Op::Max: return map_floats<2>(kFloatMax);
      case Op::Min: return map_floats<2>(kFloatMin);
      default: return std::nullopt;
    }
  }

  View elementwise() const {
    if (std::optional<View> result = quick_elementwise()) return *std::move(result);
    switch (node->source_count) {
      case 1: return map_by_semantics<1>();
      case 2: return map_by_semantics<2>();
      case 3: return map_by_semantics<3>();
      default: return map_by_semantics<4>();
    }
  }

  // The element's own coordinate, which repeats along every other axis.
  View iota() const {
    const Sizes shape = tail_sizes();
    count_elements(shape);
    Fresh line = allocate(node->dtype, {shape[axis()]});
    for (int64_t i = 0; i < line.count; ++i)
      line.elements()[static_cast<size_t>(i)] = Scalar::of_int(node->dtype, i).bits();
    View view = std::move(line).done();
    view.shape = shape;
    view.strides.assign(shape.size(), 0);
    view.strides[axis()] = 1;
    return view;
  }

  // ---- reductions

  // Sums and products run in f64 or in 64 bits and come back to the dtype once, at the end; an
  // integer that wraps then is the same as one that wraps at every step.
  DType running_dtype() const {
    if (is_float(node->dtype)) return DType::F64;
    return is_unsigned(node->dtype) ? DType::U64 : DType::I64;
  }

  static Scalar unit(Op op, DType dtype) {
    switch (op) {
      case Op::ReduceSum: return Scalar::of(dtype, -0.0);  // for -0.0 + x is x, at x = -0.0 too
      case Op::ReduceProd: return Scalar::of_int(dtype, 1);
      case Op::ReduceMax: return lowest(dtype);
      default: return highest(dtype);
    }
  }

  // Brings elements that hold running values back to the dtype.
  View settle(Fresh result) const {
    for (uint64_t& bits : result.elements())
      bits = is_float(node->dtype) ? Scalar::of(node->dtype, as_double(bits)).bits()
                                   : Scalar::of_int(node->dtype, static_cast<int64_t>(bits)).bits();
    return std::move(result).done();
  }

  // Visits the source in row-major order, so each result meets its elements in that order.
  template <typename Combine>
  View fold(Combine combine) const {
    Sizes shape = source(0).shape;
    for (int64_t reduced : node->axes()) shape[static_cast<size_t>(reduced)] = 1;
    Fresh result = allocate(node->dtype, shape);
    Sizes strides = result.view.strides;
    for (int64_t reduced : node->axes()) strides[static_cast<size_t>(reduced)] = 0;

    const Scalar start = cast(unit(node->op, node->dtype), running_dtype());
    std::ranges::fill(result.elements(), start.bits());
    const uint64_t* in = source(0).data.get();
    uint64_t* out = result.data.get();
    walk<2>(source(0).shape, {layout(source(0)), {strides, 0}},
            [=](int64_t count, const auto& at, const auto& step) {
              if (step[1] != 0) {
                for (int64_t i = 0; i < count; ++i)
                  out[at[1] + i * step[1]] =
                      combine(out[at[1] + i * step[1]], in[at[0] + i * step[0]]);
                return;
              }
              uint64_t total = out[at[1]];
              for (int64_t i = 0; i < count; ++i) total = combine(total, in[at[0] + i * step[0]]);
              out[at[1]] = total;
            });
    if (is_empty(source(0).shape) && node->op == Op::ReduceSum)
      std::ranges::fill(result.elements(), 0);  // the sum of nothing is +0.0
    return settle(std::move(result));
  }

  template <typename Function>
  View fold_floats(Function function) const {
    return fold([=](uint64_t total, uint64_t element) {
      return std::bit_cast<uint64_t>(function(as_double(total), as_double(element)));
    });
  }

  View fold_by_semantics(Op op) const {
    return fold([op, running = running_dtype()](uint64_t total, uint64_t element) {
      const std::array operands{Scalar::from_bits(running, total),
                                Scalar::from_bits(running, element)};
      return evaluate(op, running, operands).bits();
    });
  }

  View reduce() const {
    if (is_float(node->dtype)) switch (node->op) {
        case Op::ReduceSum: return fold_floats([](double a, double b) { return a + b; });
        case Op::ReduceProd: return fold_floats([](double a, double b) { return a * b; });
        case Op::ReduceMax: return fold_floats(kFloatMax);
        default: return fold_floats(kFloatMin);
      }
    switch (node->op) {
      case Op::ReduceSum: return fold_by_semantics(Op::Add);
      case Op::ReduceProd: return fold_by_semantics(Op::Mul);
      case Op::ReduceMax: return fold_by_semantics(Op::Max);
      default: return fold_by_semantics(Op::Min);
    }
  }

  // ---- movement

  View reshape() const {
    const Sizes shape = tail_sizes();
    if (count_elements(shape) != count_elements(source(0).shape))
      fail_at(node, fmt::format("sizes differ: [{}] has {} elements, [{}] has {}",
                                fmt::join(source(0).shape, ", "), count_elements(source(0).shape),
                                fmt::join(shape, ", "), count_elements(shape)));
    const bool in_order = source(0).strides == row_major(source(0).shape);
    View view = in_order ? source(0) : copy_of(source(0)).done();
    view.shape = shape;
    view.strides = row_major(shape);
    return view;
  }

  View permute() const {
    View view = source(0);
    for (size_t i = 0; i < view.shape.size(); ++i) {
      view.shape[i] = source(0).shape[static_cast<size_t>(node->axes()[i])];
      view.strides[i] = source(0).strides[static_cast<size_t>(node->axes()[i])];
    }
    return view;
  }

  View expand() const {
    View view = source(0);
    const Sizes shape = tail_sizes();
    for (size_t i = 0; i < shape.size(); ++i) {
      if (view.shape[i] == shape[i]) continue;
      if (view.shape[i] != 1)
        fail_at(node,
                fmt::format("axis {} is {}, it cannot become {}", i, view.shape[i], shape[i]));
      view.strides[i] = 0;
    }
    view.shape = shape;
    count_elements(shape);
    return view;
  }

  View pad() const {
    const Sizes pairs = tail_sizes();
    Sizes shape = source(0).shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      const int64_t before = pairs[2 * i], after = pairs[2 * i + 1];
      if (before < 0 || after < 0)
        fail_at(node, fmt::format("axis {} is padded by {} and {}", i, before, after));
      std::optional<int64_t> size = checked_add(shape[i], before);
      if (size) size = checked_add(*size, after);
      if (!size)
        fail_at(node,
                fmt::format("axis {} of {} is padded by {} and {}", i, shape[i], before, after));
      shape[i] = *size;
    }
    Fresh result = allocate(node->dtype, shape);
    std::ranges::fill(result.elements(), 0);  // the zero of every dtype
    int64_t start = 0;
    for (size_t i = 0; i < shape.size(); ++i) start += pairs[2 * i] * result.view.strides[i];
    copy_elements(source(0), result.data.get(), {result.view.strides, start});
    return std::move(result).done();
  }

  View shrink() const {
    View view = source(0);
    const Sizes pairs = tail_sizes();
    for (size_t i = 0; i < view.shape.size(); ++i) {
      const int64_t begin = pairs[2 * i], end = pairs[2 * i + 1];
      if (begin < 0 || end < begin || end > view.shape[i])
        fail_at(node,
                fmt::format("axis {} of {} is cut from {} to {}", i, view.shape[i], begin, end));
      view.offset += begin * view.strides[i];
      view.shape[i] = end - begin;
    }
    return view;
  }

  View flip() const {
    View view = source(0);
    for (int64_t flipped : node->axes()) {
      const size_t i = static_cast<size_t>(flipped);
      view.offset += (view.shape[i] - 1) * view.strides[i];  // of an empty axis nothing is read
      view.strides[i] = -view.strides[i];
    }
    return view;
  }

  // ---- indexed access

  // Checks that `part` is as large as `whole` on every axis but the indexed one.
  void check_beside_axis(const View& part, const View& whole) const {
    Sizes expected = whole.shape;
    expected[axis()] = part.shape[axis()];
    check_same(part.shape, expected);
  }

  // Strides that stay at coordinate 0 of the indexed axis.
  Sizes beside_axis(const View& view) const {
    Sizes strides = view.strides;
    strides[axis()] = 0;
    return strides;
  }

  View gather() const {
    const View &table = source(0), &places = source(1);
    check_beside_axis(places, table);
    Fresh result = allocate(node->dtype, places.shape);
    const Sizes beside = beside_axis(table);
    const int64_t along = table.strides[axis()];
    const uint64_t size = static_cast<uint64_t>(table.shape[axis()]);
    auto read = [&](int64_t count, const auto& at, const auto& step) {
      for (int64_t i = 0; i < count; ++i) {
        // Read as unsigned, a negative place is beyond the end too.
        const uint64_t place = places.data[at[1] + i * step[1]];
        uint64_t& element = result.data[at[2] + i * step[2]];
        element = 0;
        if (place >= size) continue;
        element = table.data[at[0] + i * step[0] + static_cast<int64_t>(place) * along];
      }
    };
    walk<3>(places.shape, {Layout{beside, table.offset}, layout(places), layout(result.view)},
            read);
    return std::move(result).done();
  }

  // Calls write(element, update) in row-major order of the updates whose place is in range.
  template <typename Write>
  Fresh scatter(Write write) const {
    const View &places = source(1), &updates = source(2);
    check_beside_axis(places, source(0));
    check_same(places.shape, updates.shape);
    Fresh result = copy_of(source(0));
    const Sizes beside = beside_axis(result.view);
    const int64_t along = result.view.strides[axis()];
    const uint64_t size = static_cast<uint64_t>(result.view.shape[axis()]);
    auto update = [&](int64_t count, const auto& at, const auto& step) {
      for (int64_t i = 0; i < count; ++i) {
        const uint64_t place = places.data[at[1] + i * step[1]];
        if (place >= size) continue;
        uint64_t& element = result.data[at[0] + i * step[0] + static_cast<int64_t>(place) * along];
        write(element, updates.data[at[2] + i * step[2]]);
      }
    };
    walk<3>(places.shape, {Layout{beside, 0}, layout(places), layout(updates)}, update);
    return result;
  }

  View scatter_add() const {
    if (is_float(node->dtype))
      return settle(scatter([](uint64_t& total, uint64_t update) {
        total = std::bit_cast<uint64_t>(as_double(total) + as_double(update));
      }));
    return settle(scatter([](uint64_t& total, uint64_t update) { total += update; }));
  }

  View run() const {
    switch (node->op) {
      case Op::Const: return repeated(node->scalar(), tail_sizes());
      case Op::Iota: return iota();
      case Op::ReduceSum:
      case Op::ReduceProd:
      case Op::ReduceMax:
      case Op::ReduceMin: return reduce();
      case Op::Reshape: return reshape();
      case Op::Permute: return permute();
      case Op::Expand: return expand();
      case Op::Pad: return pad();
      case Op::Shrink: return shrink();
      case Op::Flip: return flip();
      case Op::Gather: return gather();
      case Op::ScatterAdd: return scatter_add();
      case Op::Scatter: return scatter([](uint64_t& a, uint64_t b) { a = b; }).done();
      case Op::Contiguous:
      case Op::StopGradient:
      case Op::CustomGrad:
      case Op::Named: return source(0);
      case Op::Assign: return source(1);
      default: break;
    }
    if (!is_elementwise(node->op))
      throw InternalError(fmt::format("the interpreter does not know {}", name(node->op)));
    return elementwise();
  }
};

// ---- the whole graph

// Whether a node's value needs that of its i-th source. The inputs of a CustomGrad matter to its
// gradient only, and an Assign forgets what its buffer held.
bool reads_source(NodeRef node, size_t i) {
  if (node->op == Op::CustomGrad) return i == 0;
  return node->op != Op::Assign || i == 1;
}

View given(NodeRef node, const Value& value, const Sizes& shape) {
  if (value.dtype != node->dtype || value.shape != shape)
    fail_at(node, fmt::format("{} is {}[{}], its value {}[{}]",
                              node->op == Op::Buffer ? node->arg.symbol->text() : "the node",
                              name(node->dtype), fmt::join(shape, ", "), name(value.dtype),
                              fmt::join(value.shape, ", ")));
  return view_of(value);
}

View known_view(NodeRef node, const Value& value) {
  // Symbolic sizes of a known node are not evaluated: they may rest on what is not known.
  Sizes shape = value.shape;
  if (shape.size() == node->rank())
    for (size_t i = 0; i < shape.size(); ++i)
      if (is_static(node->dim(i))) shape[i] = static_value(node->dim(i));
  return given(node, value, shape);
}

View buffer_view(const Step& step, const Environment& environment) {
  const Value* value = environment.buffer ? environment.buffer(step.node) : nullptr;
  if (!value) fail_at(step.node, fmt::format("\"{}\" has no value", step.node->arg.symbol->text()));
  return given(step.node, *value, step.tail_sizes());
}

View variable_view(NodeRef node, const Environment& environment) {
  const Symbol& symbol = *node->arg.symbol;
  if (!environment.variable) fail_at(node, fmt::format("{} has no value", symbol.text()));
  const int64_t value = environment.variable(node);
  if (value < symbol.first || value > symbol.second)
    fail_at(node, fmt::format("{} is {}, its bounds are {} and {}", symbol.text(), value,
                              symbol.first, symbol.second));
  return repeated(Scalar::of_int(DType::Index, value), {});
}

View evaluate_node(const Step& step, const Environment& environment) {
  if (step.node->op == Op::Buffer) return buffer_view(step, environment);
  if (step.node->op == Op::Variable) return variable_view(step.node, environment);
  return step.run();
}

}  // namespace

std::vector<Value> interpret(std::span<const NodeRef> roots, const Environment& environment) {
  const std::vector<NodeRef> order = topological_order(roots);
  NodeMap<size_t> number(order.size());
  for (size_t i = 0; i < order.size(); ++i) number[order[i]] = i;

  // Users before sources: what nobody reads, or only what is known already reads, is not evaluated.
  std::vector<size_t> reads(order.size(), 0);
  std::vector<const Value*> known(order.size(), nullptr);
  for (NodeRef root : roots) ++reads[*number.find(root)];
  for (size_t i = order.size(); i-- > 0;) {
    NodeRef node = order[i];
    if (reads[i] == 0) continue;
    if (environment.known) known[i] = environment.known(node);
    for (size_t k = 0; k < node->source_count && !known[i]; ++k)
      if (reads_source(node, k)) ++reads[*number.find(node->source(k))];
  }

  std::vector<View> views(order.size());
  std::vector<const View*> sources;
  for (size_t i = 0; i < order.size(); ++i) {
    NodeRef node = order[i];
    if (reads[i] == 0) continue;
    if (known[i]) {
      views[i] = known_view(node, *known[i]);
      continue;
    }
    sources.clear();
    for (NodeRef source : node->sources()) sources.push_back(&views[*number.find(source)]);
    views[i] = evaluate_node({node, sources}, environment);
    for (size_t k = 0; k < node->source_count; ++k) {
      const size_t source = *number.find(node->source(k));
      if (reads_source(node, k) && --reads[source] == 0) views[source] = {};
    }
  }
  std::vector<Value> values;
  values.reserve(roots.size());
  for (NodeRef root : roots) values.push_back(value_of(views[*number.find(root)]));
  return values;
}

int64_t interpret_index(NodeRef expression, const std::function<int64_t(NodeRef)>& variable) {
  if (is_static(expression)) return static_value(expression);
  return interpret({&expression, 1}, {variable, nullptr, nullptr})[0].at(0).as_int();
}

// Codes stand in memory with their low byte first.
Value to_value(const Storage& storage) {
  const size_t width = byte_size(storage.dtype);
  const size_t count = static_cast<size_t>(count_elements(storage.shape));
  if (storage.size() != count * width)
    throw InternalError(fmt::format("storage of {}[{}] has {} bytes", name(storage.dtype),
                                    fmt::join(storage.shape, ", "), storage.size()));
  Value value{storage.dtype, storage.shape, std::vector<uint64_t>(count)};
  const std::span<const std::byte> bytes = storage.read();
  for (size_t i = 0; i < count; ++i) {
    uint64_t code = 0;
    for (size_t k = 0; k < width; ++k)
      code |= std::to_integer<uint64_t>(bytes[i * width + k]) << (8 * k);
    value.payload[i] = is_float(storage.dtype)
                           ? Scalar::of(storage.dtype, decode(storage.dtype, code)).bits()
                           : Scalar::of_int(storage.dtype, static_cast<int64_t>(code)).bits();
  }
  return value;
}

void write_elements(const Value& value, std::byte* to) {
  const size_t width = byte_size(value.dtype);
  for (size_t i = 0; i < value.payload.size(); ++i) {
    const uint64_t bits = value.payload[i];
    const uint64_t code =
        is_float(value.dtype) ? encode(value.dtype, std::bit_cast<double>(bits)) : bits;
    for (size_t k = 0; k < width; ++k) to[i * width + k] = static_cast<std::byte>(code >> (8 * k));
  }
}

Storage to_storage(const Value& value) {
  const size_t bytes = value.payload.size() * byte_size(value.dtype);
  Storage storage{value.dtype, value.shape, Bytes(bytes)};
  write_elements(value, storage.overwrite().data());
  return storage;
}

}  // namespace anneal
