// Draws steps from a table of kinds. Floats stay of moderate size, and what jumps (comparisons,
// argmax) is asked of integers alone, so that rounding decides nothing.
#include "torch_program.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/dtype.h"
#include "op_case_runner.h"

namespace anneal {
namespace {

constexpr DType kIntegers[] = {DType::I8, DType::I16, DType::I32, DType::I64,
                               DType::U8, DType::U16, DType::U32, DType::U64};
constexpr double kLargest = 64;  // magnitude of floats that further steps may use

class Maker {
 public:
  explicit Maker(uint64_t seed);

  TorchProgram make() {
    for (int i = 0; i < 3; ++i) float_leaf();
    integer_leaf();
    const int steps = 6 + static_cast<int>(below(12));
    for (int i = 0; i < steps; ++i) step();
    return finish();
  }

 private:
  struct Value {
    Tensor tensor;
    double bound = 0;  // of its magnitude; of floats
    bool used = false;
  };
  using Shape = std::vector<int64_t>;

  // ---- draws

  int64_t below(int64_t count) {
    return static_cast<int64_t>(random_.uniform(0, static_cast<double>(count)));
  }
  bool chance(int percent) { return below(100) < percent; }
  template <typename List>
  auto pick(const List& list) {
    return *(std::begin(list) + below(static_cast<int64_t>(std::size(list))));
  }
  // Exact in every dtype that holds it.
  double quarter() { return static_cast<double>(below(33) - 16) / 4; }

  // ---- values

  static Shape shape_of(const Tensor& tensor) {
    Shape shape;
    for (const Dim& size : tensor.shape()) shape.push_back(size.value());
    return shape;
  }
  static Sizes sizes_of(const Shape& shape) { return {shape.begin(), shape.end()}; }
  static int64_t count_of(const Shape& shape) {
    int64_t count = 1;
    for (int64_t size : shape) count *= size;
    return count;
  }
  const Value& at(size_t i) const { return values_[i]; }
  Shape shape_at(size_t i) const { return shape_of(values_[i].tensor); }

  size_t add(std::string_view op, const std::vector<size_t>& sources, const Tensor& result,
             double bound, const std::string& attributes = "") {
    text_ += fmt::format("[\"{}\", \"{}\", [{}], {{{}}}]\n", op, name(result.dtype()),
                         fmt::join(sources, ", "), attributes);
    for (size_t source : sources) values_[source].used = true;
    values_.push_back({result, bound});
    return values_.size() - 1;
  }

  template <typename Predicate>
  size_t find(Predicate wanted) {  // values_.size(): none
    std::vector<size_t> found;
    for (size_t i = 0; i < values_.size(); ++i)
      if (wanted(values_[i])) found.push_back(i);
    return found.empty() ? values_.size() : pick(found);
  }
  // A float that may be computed with: brought to a moderate size by a power of two.
  size_t any_float() {
    const size_t i = find([](const Value& value) { return is_float(value.tensor.dtype()); });
    if (at(i).bound <= kLargest) return i;
    const double scale = std::exp2(-std::ceil(std::log2(at(i).bound)));
    return add("mul_number", {i}, at(i).tensor * scale, at(i).bound * scale,
               fmt::format("\"number\": {}", scale));
  }
  size_t any_integer() {
    return find([](const Value& value) { return is_int(value.tensor.dtype()); });
  }

  // ---- leaves

  Shape leaf_shape() {
    switch (below(6)) {
      case 0: return {};
      case 1: return {columns_};
      case 2: return {rows_, 1};
      default: return {rows_, columns_};
    }
  }

  void float_leaf() {
    const Shape shape = leaf_shape();
    const Sizes sizes = sizes_of(shape);
    const std::string at_shape = fmt::format("\"shape\": [{}]", fmt::join(shape, ", "));
    const double value = quarter();
    size_t leaf = 0;
    switch (below(6)) {
      case 0: leaf = add("zeros", {}, zeros(sizes, float_), 0, at_shape); break;
      case 1: leaf = add("ones", {}, ones(sizes, float_), 1, at_shape); break;
      case 2:
        leaf = add("full", {}, full(sizes, value, float_), std::fabs(value),
                   fmt::format("{}, \"number\": {}", at_shape, value));
        break;
      case 3: leaf = arange_leaf(); break;
      case 4:
        leaf = add("eye", {}, eye(rows_, Dim(columns_), float_), 1,
                   fmt::format("\"rows\": {}, \"columns\": {}", rows_, columns_));
        break;
      default: leaf = data_leaf(shape);
    }
    inputs_.push_back(leaf);
  }

  size_t arange_leaf() {
    const double step = 2.0 / static_cast<double>(columns_);
    const double stop = (static_cast<double>(columns_) - 0.5) * step;
    return add("arange", {}, arange(0, stop, step, float_), 2,
               fmt::format("\"count\": {}, \"step\": {}", columns_, step));
  }

  size_t data_leaf(const Shape& shape) {
    // A formula both languages have, as values would fill the file.
    const int64_t count = count_of(shape), factor = 1 + below(97);
    std::vector<double> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<double>(i * factor % 61 - 30) / 16);
    return add("data", {}, tensor_of(values, shape, float_), 2,
               fmt::format("\"shape\": [{}], \"factor\": {}", fmt::join(shape, ", "), factor));
  }

  void integer_leaf() {
    const DType dtype = pick(kIntegers);
    const int64_t low = is_unsigned(dtype) ? 0 : -60;
    if (chance(50)) {
      const int64_t value = low + below(120);
      const Shape shape = leaf_shape();
      add("full", {}, full(sizes_of(shape), static_cast<double>(value), dtype), 0,
          fmt::format("\"shape\": [{}], \"number\": {}", fmt::join(shape, ", "), value));
    } else {
      const int64_t factor = 1 + below(23);
      add("integers", {}, (arange(columns_, DType::I64) * factor % 120 + low).cast(dtype), 0,
          fmt::format("\"count\": {}, \"factor\": {}, \"low\": {}", columns_, factor, low));
    }
  }

  // ---- floats

  void unary() {
    struct Function {
      const char* name;
      Tensor (*apply)(const Operand&);
      double grows, most;  // the bound becomes min(grows * bound + 1, most)
    };
    static constexpr double kAny = 1e9;
    static const Function kFunctions[] = {
        {"neg", [](const Operand& x) { return -x; }, 1, kAny},
        {"abs", [](const Operand& x) { return abs(x); }, 1, kAny},
        {"tanh", [](const Operand& x) { return tanh(x); }, 1, 1},
        {"sigmoid", [](const Operand& x) { return sigmoid(x); }, 1, 1},
        {"relu", [](const Operand& x) { return relu(x); }, 1, kAny},
        {"gelu", [](const Operand& x) { return gelu(x); }, 1, kAny},
        {"silu", [](const Operand& x) { return silu(x); }, 1, kAny},
        {"elu", [](const Operand& x) { return elu(x); }, 1, kAny},
        {"softplus", [](const Operand& x) { return softplus(x); }, 1, kAny},
        {"sin", [](const Operand& x) { return sin(x); }, 1, 1},
        {"cos", [](const Operand& x) { return cos(x); }, 1, 1},
        {"square", [](const Operand& x) { return square(x); }, kLargest, kAny},
        {"log_one_plus_square", [](const Operand& x) { return log(square(x) + 1); }, 1, kAny},
        {"sqrt_one_plus_square", [](const Operand& x) { return sqrt(square(x) + 1); }, 1, kAny},
        {"reciprocal", [](const Operand& x) { return 1 / (square(x) + 1); }, 1, 1},
        {"exp_tanh", [](const Operand& x) { return exp(tanh(x)); }, 1, 3},
        {"log1p_square", [](const Operand& x) { return log1p(square(x)); }, 1, kAny},
        {"log10_one_plus_square", [](const Operand& x) { return log10(square(x) + 1); }, 1, kAny},
        {"expm1_tanh", [](const Operand& x) { return expm1(tanh(x)); }, 1, 2},
        {"sinh_tanh", [](const Operand& x) { return sinh(tanh(x)); }, 1, 2},
        {"cosh_tanh", [](const Operand& x) { return cosh(tanh(x)); }, 1, 2},
        {"asinh", [](const Operand& x) { return asinh(x); }, 1, kAny},
        {"acosh_two_plus_square", [](const Operand& x) { return acosh(square(x) + 2); }, 1, kAny},
        {"atanh_half_tanh", [](const Operand& x) { return atanh(tanh(x) / 2); }, 1, 1},
        {"asin_half_tanh", [](const Operand& x) { return asin(tanh(x) / 2); }, 1, 1},
        {"acos_half_tanh", [](const Operand& x) { return acos(tanh(x) / 2); }, 1, 3},
        {"atan", [](const Operand& x) { return atan(x); }, 1, 2},
        {"erfc", [](const Operand& x) { return erfc(x); }, 1, 2},
    };
    const Function function = pick(kFunctions);
    const size_t x = any_float();
    add(function.name, {x}, function.apply(at(x).tensor),
        std::min(function.grows * at(x).bound + 1, function.most));
  }

  void with_number() {
    struct Function {
      const char* name;
      Tensor (*apply)(const Tensor&, double);
      double grows;
    };
    static const Function kFunctions[] = {
        {"add_number", [](const Tensor& x, double n) { return x + n; }, 1},
        {"number_sub", [](const Tensor& x, double n) { return n - x; }, 1},
        {"mul_number", [](const Tensor& x, double n) { return n * x; }, 4},
        {"div_number", [](const Tensor& x, double n) { return x / (n * n + 1); }, 1},
        {"number_div", [](const Tensor& x, double n) { return n / (square(x) + 1); }, 1},
        {"maximum_number", [](const Tensor& x, double n) { return maximum(x, n); }, 1},
        {"pow_number", [](const Tensor& x, double n) { return pow(square(x) + 1, n / 8); }, 4},
    };
    const Function function = pick(kFunctions);
    const size_t x = any_float();
    const double number = quarter();
    add(function.name, {x}, function.apply(at(x).tensor, number), function.grows * at(x).bound + 4,
        fmt::format("\"number\": {}", number));
  }

  // Two floats whose shapes broadcast.
  std::pair<size_t, size_t> partners() {
    const size_t a = any_float();
    const Shape shape = shape_at(a);
    const size_t b = find([&](const Value& value) {
      if (!is_float(value.tensor.dtype()) || value.bound > kLargest) return false;
      const Shape other = shape_of(value.tensor);
      for (size_t i = 1; i <= std::min(shape.size(), other.size()); ++i) {
        const int64_t left = shape[shape.size() - i], right = other[other.size() - i];
        if (left != right && left != 1 && right != 1) return false;
      }
      return true;
    });
    return {a, b};
  }

  void binary() {
    const auto [a, b] = partners();
    if (b == values_.size()) return;
    const Tensor x = at(a).tensor, y = at(b).tensor;
    const double sum = at(a).bound + at(b).bound;
    switch (below(8)) {
      case 0: add("add", {a, b}, x + y, sum); return;
      case 1: add("sub", {a, b}, x - y, sum); return;
      case 2: add("mul", {a, b}, x * y, at(a).bound * at(b).bound); return;
      case 3: add("atan2", {a, b}, atan2(x, square(y) + 1), 2); return;  // jumps below 0
      case 4: add("logaddexp", {a, b}, logaddexp(x, y), sum + 1); return;
      case 5: add("div", {a, b}, x / (square(y) + 1), at(a).bound); return;
      case 6: add("maximum", {a, b}, maximum(x, y), sum); return;
      default: add("minimum", {a, b}, minimum(x, y), sum); return;
    }
  }

  void reduce() {
    const size_t x = any_float();
    const Shape shape = shape_at(x);
    if (shape.empty()) return;
    const int64_t axis = below(static_cast<int64_t>(shape.size()));
    const Tensor tensor = at(x).tensor;
    const double bound = at(x).bound, size = static_cast<double>(shape[static_cast<size_t>(axis)]);
    const std::string along = fmt::format("\"axis\": {}", axis);
    switch (below(8)) {
      case 0: add("sum", {x}, sum(tensor, axis), bound * size, along); return;
      case 1: add("mean", {x}, mean(tensor, axis), bound, along); return;
      case 2: add("max", {x}, max(tensor, axis), bound, along); return;
      case 3: add("min", {x}, min(tensor, axis), bound, along); return;
      case 4: add("softmax", {x}, softmax(tensor, axis), 1, along); return;
      case 5: add("logsumexp", {x}, logsumexp(tensor, axis), bound + std::log(size), along); return;
      case 6: add("cumsum", {x}, cumsum(tensor, axis), bound * size, along); return;
      default: add("var", {x}, var(tensor, axis, false, 0), 4 * bound * bound, along); return;
    }
  }

  void move() {
    const size_t x = any_float();
    const Shape shape = shape_at(x);
    const Tensor tensor = at(x).tensor;
    const double bound = at(x).bound;
    if (shape.empty()) {
      add("unsqueeze", {x}, unsqueeze(tensor, 0), bound);
      return;
    }
    const int64_t axis = below(static_cast<int64_t>(shape.size()));
    const int64_t size = shape[static_cast<size_t>(axis)];
    const std::string along = fmt::format("\"axis\": {}", axis);
    switch (below(6)) {
      case 0: add("flip", {x}, flip(tensor, axis), bound, along); return;
      case 1: add("flatten", {x}, tensor.reshape({-1}), bound); return;
      case 2:
        if (shape.size() == 2) add("transpose", {x}, transpose(tensor), bound);
        return;
      case 3: add("concat", {x, x}, concat({tensor, tensor}, axis), bound, along); return;
      case 4: {
        const int64_t begin = below(size);
        std::vector<Slice> slices(shape.size());
        slices[static_cast<size_t>(axis)] = {Dim(begin), Dim(size)};
        add("slice", {x}, slice(tensor, slices), bound,
            fmt::format("{}, \"begin\": {}", along, begin));
        return;
      }
      default: {
        std::vector<Padding> padding(shape.size());
        padding[static_cast<size_t>(axis)] = {2, 1};
        add("pad", {x}, pad(tensor, padding), bound, along);
      }
    }
  }

  void product() {
    const size_t a = any_float();
    const Shape left = shape_at(a);
    if (left.size() != 2 || left[0] > 8) return;
    const size_t b = find([&](const Value& value) {
      const Shape right = shape_of(value.tensor);
      return is_float(value.tensor.dtype()) && value.bound <= kLargest && right.size() == 2 &&
             right[1] == left[1] && right[0] <= 8;
    });
    if (b == values_.size()) return;
    add("matmul_transposed", {a, b}, matmul(at(a).tensor, transpose(at(b).tensor)),
        at(a).bound * at(b).bound * static_cast<double>(left[1]));
  }

  void loss_of_classes() {
    const size_t x = any_float(), targets = any_integer();
    const Shape shape = shape_at(x);
    if (shape.size() != 2 || at(targets).tensor.rank() > 1) return;
    const DType dtype = at(targets).tensor.dtype();
    if (dtype == DType::U64 || shape_at(targets) != Shape{shape[0]} || shape[1] > 100) return;
    const Tensor classes = at(targets).tensor % shape[1];
    add("cross_entropy", {x, targets}, cross_entropy(at(x).tensor, classes),
        2 * at(x).bound + std::log(static_cast<double>(shape[1])));
  }

  // ---- integers

  void integer_number() {
    const size_t x = any_integer();
    const Tensor tensor = at(x).tensor;
    const bool ordered = tensor.dtype() != DType::U64;  // PyTorch has no order of those
    const int64_t number = 1 + below(100);
    const std::string attributes = fmt::format("\"number\": {}", number);
    switch (below(ordered ? 10 : 6)) {
      case 0: add("add_number", {x}, tensor + number, 0, attributes); return;
      case 1: add("mul_number", {x}, number * tensor, 0, attributes); return;
      case 2: add("number_sub", {x}, number - tensor, 0, attributes); return;
      case 3: add("and_number", {x}, tensor & number, 0, attributes); return;
      case 4: add("xor_number", {x}, tensor ^ number, 0, attributes); return;
      case 5: add("shl_number", {x}, tensor << (number % 7), 0, attributes); return;
      case 6: add("floor_divide_number", {x}, floor_divide(tensor, number), 0, attributes); return;
      case 7: add("mod_number", {x}, tensor % number, 0, attributes); return;
      case 8: add("shr_number", {x}, tensor >> (number % 7), 0, attributes); return;
      default: add("maximum_number", {x}, maximum(tensor, number), 0, attributes); return;
    }
  }

  void integer_binary() {
    const size_t a = any_integer(), b = any_integer();
    const Shape left = shape_at(a), right = shape_at(b);
    if (!left.empty() && !right.empty() && left != right) return;
    const Tensor x = at(a).tensor, y = at(b).tensor;
    switch (below(5)) {
      case 0: add("add", {a, b}, x + y, 0); return;
      case 1: add("sub", {a, b}, x - y, 0); return;
      case 2: add("mul", {a, b}, x * y, 0); return;
      case 3: add("and", {a, b}, x & y, 0); return;
      default: add("or", {a, b}, x | y, 0); return;
    }
  }

  void integer_reduce() {
    const size_t x = any_integer();
    const Tensor tensor = at(x).tensor;
    if (tensor.rank() == 0) return;
    const bool ordered = tensor.dtype() != DType::U64;
    switch (below(ordered ? 4 : 2)) {
      case 0: add("sum", {x}, sum(tensor, 0), 0, "\"axis\": 0"); return;
      case 1: add("prod", {x}, prod(tensor, 0), 0, "\"axis\": 0"); return;
      case 2: add("max", {x}, max(tensor, 0), 0, "\"axis\": 0"); return;
      default: add("min", {x}, min(tensor, 0), 0, "\"axis\": 0"); return;
    }
  }

  // From an integer to a float: a remainder, or a choice by a comparison.
  void meet() {
    const size_t i = any_integer();
    const Tensor whole = at(i).tensor;
    if (whole.dtype() == DType::U64) return;
    const int64_t number = 1 + below(20);
    const std::string attributes = fmt::format("\"number\": {}", number);
    const size_t x = any_float();
    const Shape shape = shape_at(x), other = shape_at(i);
    if (other.empty() || shape.empty() || shape == other) {
      if (chance(50))
        add("where_less", {i, x}, where(whole < number, at(x).tensor, 0.5), at(x).bound + 1,
            attributes);
      else
        add("mul_remainder", {i, x}, (whole % number) * at(x).tensor,
            static_cast<double>(number) * at(x).bound, attributes);
      return;
    }
    add("divide_integers", {i}, cast(whole % number, float_) / number, 1, attributes);
  }

  struct Kind {
    void (Maker::*make)();
    int weight;
  };
  static constexpr Kind kKinds[] = {
      {&Maker::unary, 20},          {&Maker::with_number, 14},   {&Maker::binary, 22},
      {&Maker::reduce, 12},         {&Maker::move, 10},          {&Maker::product, 5},
      {&Maker::loss_of_classes, 3}, {&Maker::meet, 8},           {&Maker::integer_number, 10},
      {&Maker::integer_binary, 6},  {&Maker::integer_reduce, 3}, {&Maker::float_leaf, 3},
      {&Maker::integer_leaf, 3},
  };

  void step() {
    int64_t total = 0;
    for (const Kind& kind : kKinds) total += kind.weight;
    int64_t draw = below(total);
    for (const Kind& kind : kKinds) {
      if (draw < kind.weight) return (this->*kind.make)();
      draw -= kind.weight;
    }
  }

  TorchProgram finish() {
    TorchProgram program{.text = std::move(text_), .inputs = {}, .outputs = {}, .loss = {}};
    program.loss = zeros({}, float_);
    std::vector<size_t> outputs;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i].used) continue;
      outputs.push_back(i);
      program.outputs.push_back(values_[i].tensor);
      if (is_float(values_[i].tensor.dtype())) program.loss = program.loss + sum(values_[i].tensor);
    }
    for (size_t i : inputs_) program.inputs.push_back(values_[i].tensor);
    program.text += fmt::format("[\"end\", \"{}\", [{}], {{\"inputs\": [{}]}}]\n", name(float_),
                                fmt::join(outputs, ", "), fmt::join(inputs_, ", "));
    return program;
  }

  Draws random_;
  DType float_ = DType::F32;
  int64_t rows_ = 1, columns_ = 1;
  std::string text_;
  std::vector<Value> values_;
  std::vector<size_t> inputs_;
};

Maker::Maker(uint64_t seed) : random_(fmt::format("torch program {}", seed)) {
  static constexpr int64_t kLong[] = {257, 1000, 4097, 100'000};
  float_ = chance(75) ? DType::F32 : DType::F64;
  rows_ = 1 + below(5);
  columns_ = chance(25) ? pick(kLong) : 1 + below(7);
}

}  // namespace

TorchProgram random_torch_program(uint64_t seed) { return Maker(seed).make(); }

}  // namespace anneal
