// Tensors as text. What is written of a number follows from all numbers that are shown, so that
// columns are aligned. Must not change what a program computes: values are not kept.
#include "ir/print.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <ostream>

#include <fmt/format.h>

#include <anneal/print.h>

#include "ir/float_formats.h"
#include "tensor/lift.h"

namespace anneal {
namespace {

// ---- numbers

// "1.2500" to "1.25" and "2.0000" to "2.": the point stays.
void trim_zeros(std::string& text) { text.erase(text.find_last_not_of('0') + 1); }

// Digits behind the point of the mantissa that the value needs, at most `precision`.
int mantissa_digits(double value, int precision) {
  std::string text = fmt::format("{:#.{}e}", value, precision);
  text.erase(text.find('e'));
  trim_zeros(text);
  return static_cast<int>(text.size() - text.find('.') - 1);
}

// As short as the dtype tells it from its neighbours, with at most `precision` digits.
std::string fixed_text(double value, DType dtype, int precision) {
  std::array<char, 400> digits;  // of f64's largest number and more
  auto write = [&](auto number) {
    return std::to_chars(digits.data(), digits.data() + digits.size(), number,
                         std::chars_format::fixed)
        .ptr;
  };
  char* const end = dtype == DType::F64 ? write(value) : write(static_cast<float>(value));
  std::string text(digits.data(), end);
  const size_t point = text.find('.');
  if (point == std::string::npos) return text + '.';
  if (text.size() - point - 1 > static_cast<size_t>(precision))
    text = fmt::format("{:#.{}f}", value, precision);
  trim_zeros(text);
  return text;
}

// Whether numbers differ so much, or are so small or large, that exponents read better.
bool wants_exponents(const std::vector<double>& values) {
  double least = INFINITY, most = 0;
  for (double value : values) {
    if (value == 0 || !std::isfinite(value)) continue;
    least = std::min(least, std::abs(value));
    most = std::max(most, std::abs(value));
  }
  return most > 0 && (most >= 1e8 || least < 1e-4 || most / least > 1000);
}

void align_right(std::vector<std::string>& texts) {
  size_t width = 0;
  for (const std::string& text : texts) width = std::max(width, text.size());
  for (std::string& text : texts) text.insert(0, width - text.size(), ' ');
}

// Points under points; what has none, and what is not finite, ends with the column.
void align_points(std::vector<std::string>& texts) {
  size_t behind = 0;
  auto digits_behind = [](const std::string& text) {
    const size_t point = text.find('.');
    return point == std::string::npos ? std::nullopt : std::optional(text.size() - point - 1);
  };
  for (const std::string& text : texts) behind = std::max(behind, digits_behind(text).value_or(0));
  for (std::string& text : texts)
    if (const auto digits = digits_behind(text)) text.append(behind - *digits, ' ');
  align_right(texts);
}

std::vector<std::string> float_texts(const std::vector<double>& values, DType dtype,
                                     int precision) {
  const bool exponents = wants_exponents(values);
  int digits = 0;
  if (exponents)
    for (double value : values)
      if (std::isfinite(value)) digits = std::max(digits, mantissa_digits(value, precision));
  std::vector<std::string> texts;
  for (double value : values) {
    if (!std::isfinite(value))
      texts.push_back(fmt::format("{}", std::isnan(value) ? NAN : value));
    else
      texts.push_back(exponents ? fmt::format("{:#.{}e}", value, digits)
                                : fixed_text(value, dtype, precision));
  }
  align_points(texts);
  return texts;
}

// ---- elements

// The value in memory.
struct Elements {
  DType dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;

  uint64_t bits(size_t i) const {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * byte_size(dtype), byte_size(dtype));
    return bits;
  }
  int64_t integer(size_t i) const {
    const int unused = 64 - 8 * static_cast<int>(byte_size(dtype));
    return static_cast<int64_t>(bits(i) << unused) >> unused;
  }
};

std::vector<std::string> texts_of(const Elements& elements, const std::vector<size_t>& places,
                                  int precision) {
  if (is_float(elements.dtype)) {
    std::vector<double> values;
    for (size_t i : places) values.push_back(decode(elements.dtype, elements.bits(i)));
    return float_texts(values, elements.dtype, precision);
  }
  std::vector<std::string> texts;
  for (size_t i : places) {
    if (is_bool(elements.dtype))
      texts.emplace_back(elements.bits(i) ? "true" : "false");
    else
      texts.push_back(is_unsigned(elements.dtype) ? fmt::format("{}", elements.bits(i))
                                                  : fmt::format("{}", elements.integer(i)));
  }
  align_right(texts);
  return texts;
}

// ---- brackets

// Nested brackets around the elements, the middle of long axes left out. The first walk asks which
// elements are shown, the second writes them.
class Layout {
 public:
  Layout(const std::vector<int64_t>& shape, const PrintOptions& options)
      : shape_(shape), options_(options) {
    int64_t count = 1;
    for (int64_t size : shape) count *= size;
    shortened_ = count > options.threshold;
    collect(0, 0);
  }

  bool shortened() const { return shortened_; }
  const std::vector<size_t>& places() const { return places_; }

  std::string text(const std::vector<std::string>& elements) {
    next_ = elements.begin();
    return block(0);
  }

 private:
  bool cuts(size_t axis) const { return shortened_ && shape_[axis] > 2 * options_.edge; }

  // As deep as the tensor has axes.
  void collect(size_t axis, size_t place) {  // NOLINT(misc-no-recursion)
    if (axis == shape_.size()) return places_.push_back(place);
    const auto size = static_cast<size_t>(shape_[axis]), edge = static_cast<size_t>(options_.edge);
    for (size_t i = 0; i < size; ++i) {
      if (cuts(axis) && i == edge) i = size - edge;
      collect(axis + 1, place * size + i);
    }
  }

  // The parts of an axis, an empty one for those left out.
  template <typename Part>
  void each_part(size_t axis, Part part) const {
    const int64_t shown = cuts(axis) ? 2 * options_.edge : shape_[axis];
    for (int64_t i = 0; i < shown; ++i) {
      if (cuts(axis) && i == options_.edge) part(/*is_left_out=*/true);
      part(/*is_left_out=*/false);
    }
  }

  std::string block(size_t axis) {  // NOLINT(misc-no-recursion)
    if (axis == shape_.size()) return *next_++;
    if (axis + 1 == shape_.size()) return row(axis);
    const std::string between =
        std::string(shape_.size() - axis - 1, '\n') + std::string(axis + 1, ' ');
    std::string text;
    each_part(axis, [&](bool is_left_out) {
      if (!text.empty()) text += between;
      text += is_left_out ? "..." : block(axis + 1);
    });
    return "[" + text + "]";
  }

  // Elements of the last axis, on further lines where one is full.
  std::string row(size_t axis) {
    const size_t indent = axis + 1;
    // What is open at the end of the row is closed on its line.
    const auto width = static_cast<size_t>(std::max<int64_t>(options_.width, 0));
    std::string text, line(indent, ' ');
    each_part(axis, [&](bool is_left_out) {
      const std::string word = is_left_out ? "..." : *next_++;
      if (line.size() > indent) line += ' ';
      if (line.size() > indent && line.size() + word.size() + indent > width) {
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
        line.assign(indent, ' ');
      }
      line += word;
    });
    text += line;
    return "[" + text.substr(indent) + "]";
  }

  std::vector<int64_t> shape_;
  PrintOptions options_;
  bool shortened_ = false;
  std::vector<size_t> places_;
  std::vector<std::string>::const_iterator next_;
};

// ---- what cannot be computed

// What has to be given first, or why it would be wrong to compute it; empty if nothing.
std::string obstacle(NodeRef root) {
  const Graph& graph = current_graph();
  for (NodeRef node : topological_order({&root, 1})) {
    if (node->op == Op::Assign)
      return fmt::format("assigns to \"{}\"", node->source(0)->arg.symbol->text());
    if (node->op == Op::Variable) return fmt::format("needs the size {}", node->arg.symbol->text());
    if (node->op == Op::Buffer && !graph.stored(node))
      return fmt::format("needs the input \"{}\"", node->arg.symbol->text());
  }
  return "";
}

// Dtypes that numbers without a suffix have, and bool, need no mention.
bool is_usual(DType dtype) {
  return dtype == DType::F32 || dtype == DType::I32 || dtype == DType::Bool;
}

}  // namespace

std::string to_text(const Tensor& tensor, const PrintOptions& options, Location where) {
  CallScope call("print", where);
  if (options.precision < 0 || options.edge < 1)
    fail(fmt::format("precision is {} and edge {}", options.precision, options.edge),
         "give a precision from 0 on and an edge from 1 on");
  if (!tensor.defined()) return "empty tensor";
  NodeRef node = node_of(tensor);
  const std::string reason = obstacle(node);
  if (!reason.empty()) return fmt::format("{} ({})", type_text(node), reason);

  const Tensor value = evaluate({tensor}, {}, where)[0];
  const Storage& storage = *current_graph().stored(node_of(value));
  const Elements elements{storage.dtype, storage.shape, storage.read()};
  Layout layout(elements.shape, options);
  const int precision = static_cast<int>(std::min<int64_t>(options.precision, 20));
  std::string text = layout.text(texts_of(elements, layout.places(), precision));
  const bool is_empty = layout.places().empty();
  if (is_empty) text = "[]";
  if (is_empty || layout.shortened() || !is_usual(elements.dtype))
    text += " " + type_text(node_of(value));
  return text;
}

std::ostream& operator<<(std::ostream& stream, const Printed& printed) {
  return stream << to_text(printed.tensor, {}, printed.where);
}
std::ostream& operator<<(std::ostream& stream, DType dtype) { return stream << name(dtype); }
std::ostream& operator<<(std::ostream& stream, const Dim& size) { return stream << size.text(); }
std::ostream& operator<<(std::ostream& stream, const Sizes& sizes) {
  return stream << to_text(sizes);
}

}  // namespace anneal
