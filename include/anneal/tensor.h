// Tensor: a lazy value. Operations build a graph; nothing is computed until a value is read or
// realised. Every public call remembers the line it was written on.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <anneal/dim.h>
#include <anneal/dtype.h>
#include <anneal/error.h>
#include <anneal/location.h>
#include <anneal/number.h>
#include <anneal/root.h>

namespace anneal {

class Tensor;
class Operand;

// The C++ type's dtype: float is f32, int32_t is i32, bool is bool.
template <typename T>
constexpr DType dtype_of();

struct Bindings;

using Location = std::source_location;  // of the call, in the user's file

class Tensor : public detail::Root {
 public:
  Tensor() = default;  // empty: a place to assign to
  explicit Tensor(const Node* node) : Root(node) {}

  bool defined() const { return node() != nullptr; }
  DType dtype() const;
  Sizes shape() const;
  size_t rank() const;
  Dim dim(int64_t axis, Location where = Location::current()) const;
  Dim size() const;          // how many elements
  std::string name() const;  // of an input, a parameter or what named() made, else empty

  // Computes the value and keeps it: further use reads it instead of computing it again, and what
  // is assigned later does not change it. Programs with Variables or inputs go through evaluate().
  const Tensor& realize(Location where = Location::current()) const;

  // The elements in row-major order, converted to T as a cast would. A program with Variables or
  // inputs needs their values.
  template <typename T = float>
  std::vector<T> to_vector(Location where = Location::current()) const;
  template <typename T = float>
  std::vector<T> to_vector(const Bindings& bindings, Location where = Location::current()) const;
  // The only element of a tensor of size one.
  template <typename T = double>
  T item(Location where = Location::current()) const;
  template <typename T = double>
  T item(const Bindings& bindings, Location where = Location::current()) const;

  // Stores `value` in this parameter when the result is realised. Reads of the same step see what
  // was there before. This tensor must be a parameter.
  Tensor assign(const Tensor& value, Location where = Location::current()) const;

  // Replaces the contents of this parameter, now: the way to hand a new batch to a compiled
  // function. The values must be of its dtype and as many.
  void write(std::span<const std::byte> bytes, Location where = Location::current()) const;
  template <typename T>
  void write(const std::vector<T>& values, Location where = Location::current()) const;
  void write(const std::vector<bool>& values, Location where = Location::current()) const;

  // The most used operations, to chain. The rest are functions, below and in <anneal/functional.h>.
  Tensor cast(DType dtype, Location where = Location::current()) const;
  Tensor reshape(const Sizes& sizes, Location where = Location::current()) const;
  Tensor permute(const std::vector<int64_t>& axes, Location where = Location::current()) const;
  Tensor transpose(int64_t a = -2, int64_t b = -1, Location where = Location::current()) const;
  Tensor expand(const Sizes& sizes, Location where = Location::current()) const;
  Tensor flatten(int64_t begin = 0, int64_t end = -1, Location where = Location::current()) const;
  Tensor squeeze(const Axes& axes = {}, Location where = Location::current()) const;
  Tensor unsqueeze(int64_t axis, Location where = Location::current()) const;
  Tensor sum(const Axes& axes = {}, bool keep_axes = false,
             Location where = Location::current()) const;
  Tensor mean(const Axes& axes = {}, bool keep_axes = false,
              Location where = Location::current()) const;
  Tensor max(const Axes& axes = {}, bool keep_axes = false,
             Location where = Location::current()) const;
  Tensor min(const Axes& axes = {}, bool keep_axes = false,
             Location where = Location::current()) const;

  // The i-th slice along the first axis. (An Operand, to know the line.)
  Tensor operator[](const Operand& i) const;

  // x += y is x = x + y: the handle then stands for a new tensor. What else held the old one still
  // does, and a parameter keeps its contents; assign() changes those.
  Tensor& operator+=(const Operand& y) &;
  Tensor& operator-=(const Operand& y) &;
  Tensor& operator*=(const Operand& y) &;
  Tensor& operator/=(const Operand& y) &;
  Tensor& operator%=(const Operand& y) &;
  Tensor& operator&=(const Operand& y) &;
  Tensor& operator|=(const Operand& y) &;
  Tensor& operator^=(const Operand& y) &;
  Tensor& operator<<=(const Operand& y) &;
  Tensor& operator>>=(const Operand& y) &;

 private:
  std::vector<std::byte> read(DType as, const Bindings& bindings, Location where) const;
};

// What a symbolic program is run with: numbers for its Variables, contents for its inputs.
struct Bindings {
  std::vector<std::pair<Variable, int64_t>> sizes = {};
  std::vector<std::pair<Tensor, Tensor>> inputs = {};
};

// An argument of a public function: a tensor or a number, and the line of the call. Numbers take
// the dtype of the tensor they meet, unless it could not hold their kind (0.5 with integers gives
// f32); an integer that it cannot hold is an error, but in comparisons, which are exact.
class Operand {
 public:
  Operand(const Tensor& tensor, Location where = Location::current());  // NOLINT
  template <typename T>
    requires std::is_arithmetic_v<T>
  Operand(T number, Location where = Location::current())  // NOLINT(google-explicit-constructor)
      : number_(number), where_(where) {}
  explicit Operand(Number number, Location where = Location::current())
      : number_(number), where_(where) {}

  enum class Kind { Tensor, Bool, Int, Float };
  Kind kind() const;
  const Tensor& tensor() const { return *tensor_; }
  const Number& number() const { return number_; }
  double real() const { return number_.real(); }
  int64_t integer() const { return number_.integer(); }
  const Location& where() const { return where_; }

 private:
  const Tensor* tensor_ = nullptr;  // outlives the call: operands are arguments, never kept
  Number number_ = 0;
  Location where_;
};

// ---- Making tensors

Tensor zeros(const Sizes& sizes, DType dtype = DType::F32, Location where = Location::current());
Tensor ones(const Sizes& sizes, DType dtype = DType::F32, Location where = Location::current());
Tensor full(const Sizes& sizes, Number value, DType dtype = DType::F32,
            Location where = Location::current());
Tensor zeros_like(const Operand& x);
Tensor ones_like(const Operand& x);
Tensor full_like(const Operand& x, Number value);
Tensor arange(const Dim& stop, DType dtype = DType::I32, Location where = Location::current());
Tensor arange(Number start, Number stop, Number step, DType dtype = DType::F32,
              Location where = Location::current());
// `count` numbers from start to stop, both included, at equal distances; logspace: powers of base.
Tensor linspace(double start, double stop, int64_t count, DType dtype = DType::F32,
                Location where = Location::current());
Tensor logspace(double start, double stop, int64_t count, double base = 10,
                DType dtype = DType::F32, Location where = Location::current());
// Coordinates of a grid: result i is axes[i], of one axis, repeated along the others.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, Location where = Location::current());
Tensor eye(const Dim& rows, const std::optional<Dim>& columns = {}, DType dtype = DType::F32,
           Location where = Location::current());
// A symbolic size as a scalar tensor.
Tensor from_dim(const Dim& dim, DType dtype = DType::I64, Location where = Location::current());
// A named place whose contents are given when the program runs (Bindings::inputs).
Tensor input(std::string_view name, const Sizes& sizes, DType dtype = DType::F32,
             Location where = Location::current());
// A named buffer that starts as `initial`, and that assign() can change.
Tensor parameter(std::string_view name, const Operand& initial);

Tensor from_bytes(std::span<const std::byte> bytes, const Sizes& sizes, DType dtype,
                  Location where = Location::current());

// From vectors and lists of the host: <anneal/lists.h>, which this header includes.

// Values of several tensors in one go, with every Variable bound.
std::vector<Tensor> evaluate(const std::vector<Tensor>& tensors, const Bindings& bindings = {},
                             Location where = Location::current());

// ---- Elementwise. Shapes broadcast as in NumPy; dtypes promote (docs/tensor.md has the table).

Tensor operator+(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
Tensor operator/(const Operand& a, const Operand& b);  // true division: integers become floats
Tensor operator%(const Operand& a, const Operand& b);  // the remainder with the sign of b
Tensor operator-(const Operand& a);
Tensor operator&(const Operand& a, const Operand& b);
Tensor operator|(const Operand& a, const Operand& b);
Tensor operator^(const Operand& a, const Operand& b);
Tensor operator~(const Operand& a);
Tensor operator!(const Operand& a);
Tensor operator<<(const Operand& a, const Operand& b);
Tensor operator>>(const Operand& a, const Operand& b);
Tensor operator<(const Operand& a, const Operand& b);
Tensor operator<=(const Operand& a, const Operand& b);
Tensor operator>(const Operand& a, const Operand& b);
Tensor operator>=(const Operand& a, const Operand& b);
Tensor operator==(const Operand& a, const Operand& b);
Tensor operator!=(const Operand& a, const Operand& b);

Tensor floor_divide(const Operand& a, const Operand& b);  // of floats as NumPy: inf // 1 is NaN
Tensor pow(const Operand& a, const Operand& b);
// ln(e^a + e^b), of numbers whose exponentials overflow too; of two equal infinities that infinity.
Tensor logaddexp(const Operand& a, const Operand& b);
// The angle of the point (x, y) in radians, -pi to pi, in all quadrants; zeros have a sign, and of
// infinities both may be one, as in C.
Tensor atan2(const Operand& y, const Operand& x);
Tensor maximum(const Operand& a, const Operand& b);
Tensor minimum(const Operand& a, const Operand& b);
Tensor clamp(const Operand& x, Number low, Number high);
// The lower bound first, so where it is above the upper one that counts. An empty one is none.
Tensor clamp(const Operand& x, const Tensor& low, const Tensor& high);
Tensor where(const Operand& condition, const Operand& a, const Operand& b);

Tensor abs(const Operand& x);
Tensor sign(const Operand& x);
Tensor exp(const Operand& x);
Tensor exp2(const Operand& x);
Tensor log(const Operand& x);
Tensor log2(const Operand& x);
Tensor log10(const Operand& x);  // of the powers of ten that f32 holds exactly, the exponent
Tensor log1p(const Operand& x);  // ln(1 + x), exact near 0
Tensor expm1(const Operand& x);  // e^x - 1, exact near 0
Tensor sin(const Operand& x);
Tensor cos(const Operand& x);
Tensor tan(const Operand& x);
Tensor asin(const Operand& x);  // in -pi/2 to pi/2; NaN outside of -1 to 1
Tensor acos(const Operand& x);  // in 0 to pi; NaN outside of -1 to 1
Tensor atan(const Operand& x);  // in -pi/2 to pi/2
Tensor sinh(const Operand& x);  // exact near 0; infinite only where the result is
Tensor cosh(const Operand& x);
Tensor tanh(const Operand& x);
Tensor asinh(const Operand& x);  // exact near 0, finite of every finite number
Tensor acosh(const Operand& x);  // exact near 1; NaN below 1
Tensor atanh(const Operand& x);  // exact near 0; infinite at -1 and 1, NaN beyond
Tensor erf(const Operand& x);
Tensor erfc(const Operand& x);  // 1 - erf(x), exact where that is near 0
Tensor sqrt(const Operand& x);
Tensor rsqrt(const Operand& x);
Tensor reciprocal(const Operand& x);
Tensor square(const Operand& x);
Tensor floor(const Operand& x);
Tensor ceil(const Operand& x);
Tensor trunc(const Operand& x);
Tensor round(const Operand& x);  // halves to even
Tensor is_nan(const Operand& x);
Tensor is_inf(const Operand& x);
Tensor is_finite(const Operand& x);
inline Tensor isnan(const Operand& x) { return is_nan(x); }  // NumPy's names
inline Tensor isinf(const Operand& x) { return is_inf(x); }
inline Tensor isfinite(const Operand& x) { return is_finite(x); }
Tensor cast(const Operand& x, DType dtype);
Tensor bitcast(const Operand& x, DType dtype);
Tensor contiguous(const Operand& x);

// ---- Reductions. Sums and products of bool, i8 and i16 are i32, of u8 and u16 u32.

Tensor sum(const Operand& x, const Axes& axes = {}, bool keep_axes = false);
Tensor prod(const Operand& x, const Axes& axes = {}, bool keep_axes = false);
Tensor max(const Operand& x, const Axes& axes = {}, bool keep_axes = false);
Tensor min(const Operand& x, const Axes& axes = {}, bool keep_axes = false);
Tensor mean(const Operand& x, const Axes& axes = {}, bool keep_axes = false);
// Divided by n - correction: 1 gives the sample variance, 0 the population's.
Tensor var(const Operand& x, const Axes& axes = {}, bool keep_axes = false, int64_t correction = 1);
Tensor stddev(const Operand& x, const Axes& axes = {}, bool keep_axes = false,
              int64_t correction = 1);
Tensor any(const Operand& x, const Axes& axes = {}, bool keep_axes = false);
Tensor all(const Operand& x, const Axes& axes = {}, bool keep_axes = false);
Tensor argmax(const Operand& x, int64_t axis = -1, bool keep_axis = false);  // the first one; i32
Tensor argmin(const Operand& x, int64_t axis = -1, bool keep_axis = false);
Tensor logsumexp(const Operand& x, const Axes& axes = {}, bool keep_axes = false);
Tensor cumsum(const Operand& x, int64_t axis = -1);
Tensor cumprod(const Operand& x, int64_t axis = -1);
Tensor cummax(const Operand& x, int64_t axis = -1);
Tensor cummin(const Operand& x, int64_t axis = -1);
// Each element less the one before it, `order` times: one element fewer each time.
Tensor diff(const Operand& x, int64_t order = 1, int64_t axis = -1);
struct Sorted {
  Tensor values, indices;  // indices are i32
};
// Stable; NaN counts as the largest. The work follows the largest size that the axis can have.
Sorted sort(const Operand& x, int64_t axis = -1, bool descending = false);
Tensor argsort(const Operand& x, int64_t axis = -1, bool descending = false);  // i32
Sorted topk(const Operand& x, int64_t k, int64_t axis = -1, bool largest = true);

// ---- Movement: never a copy

enum class PadMode { Constant, Reflect, Replicate, Circular };
struct Padding {
  Dim before = 0, after = 0;
};
// Of one axis: from begin up to end by step. Negative numbers count from the end; a negative step
// reads backwards, as in Python.
struct Slice {
  std::optional<Dim> begin = {}, end = {};
  int64_t step = 1;
};

Tensor reshape(const Operand& x, const Sizes& sizes);  // one size may be -1
Tensor permute(const Operand& x, const std::vector<int64_t>& axes);
Tensor transpose(const Operand& x, int64_t a = -2, int64_t b = -1);
Tensor expand(const Operand& x, const Sizes& sizes);  // -1 keeps a size; new axes go in front
Tensor pad(const Operand& x, const std::vector<Padding>& padding, PadMode mode = PadMode::Constant,
           Number value = 0);
Tensor slice(const Operand& x, const std::vector<Slice>& slices);
Tensor flip(const Operand& x, const Axes& axes = {});
Tensor squeeze(const Operand& x, const Axes& axes = {});
Tensor unsqueeze(const Operand& x, int64_t axis);
Tensor flatten(const Operand& x, int64_t begin = 0, int64_t end = -1);
std::vector<Tensor> split(const Operand& x, const Sizes& sizes, int64_t axis = 0);
std::vector<Tensor> chunk(const Operand& x, int64_t count, int64_t axis = 0);
Tensor concat(const std::vector<Tensor>& tensors, int64_t axis = 0,
              Location where = Location::current());
Tensor stack(const std::vector<Tensor>& tensors, int64_t axis = 0,
             Location where = Location::current());
Tensor repeat(const Operand& x, int64_t count, int64_t axis);       // each element in turn
Tensor tile(const Operand& x, const std::vector<int64_t>& counts);  // the whole in turn
Tensor roll(const Operand& x, int64_t shift, int64_t axis);
Tensor tril(const Operand& x, int64_t diagonal = 0);
Tensor triu(const Operand& x, int64_t diagonal = 0);
Tensor diagonal(const Operand& x, int64_t offset = 0);  // of the last two axes

// ---- Indexing. An index outside the axis reads 0 and writes nothing.

// result[.., i, ..] = x[.., index[.., i, ..], ..]; index broadcasts against x beside the axis.
Tensor take_along_axis(const Operand& x, const Operand& index, int64_t axis);
// The same with sizes that must fit, as PyTorch's gather.
Tensor gather(const Operand& x, int64_t axis, const Operand& index);
// Rows of x: index of any shape takes the place of the axis.
Tensor index_select(const Operand& x, const Operand& index, int64_t axis = 0);
Tensor scatter(const Operand& x, int64_t axis, const Operand& index, const Operand& values);
Tensor scatter_add(const Operand& x, int64_t axis, const Operand& index, const Operand& values);
Tensor one_hot(const Operand& index, const Dim& classes, DType dtype = DType::F32);
Tensor masked_fill(const Operand& x, const Operand& mask, const Operand& value);

// ---- Products

Tensor matmul(const Operand& a, const Operand& b);
Tensor dot(const Operand& a, const Operand& b);
Tensor outer(const Operand& a, const Operand& b);
Tensor einsum(std::string_view equation, const std::vector<Tensor>& tensors,
              Location where = Location::current());

// ---- Inline parts

template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::same_as<T, bool>)
    return DType::Bool;
  else if constexpr (std::same_as<T, float>)
    return DType::F32;
  else if constexpr (std::same_as<T, double>)
    return DType::F64;
  else if constexpr (std::unsigned_integral<T>)
    return sizeof(T) == 1   ? DType::U8
           : sizeof(T) == 2 ? DType::U16
           : sizeof(T) == 4 ? DType::U32
                            : DType::U64;
  else {
    static_assert(std::signed_integral<T>, "no dtype holds this type");
    return sizeof(T) == 1   ? DType::I8
           : sizeof(T) == 2 ? DType::I16
           : sizeof(T) == 4 ? DType::I32
                            : DType::I64;
  }
}

template <typename T>
std::vector<T> Tensor::to_vector(const Bindings& bindings, Location where) const {
  std::vector<std::byte> bytes = read(dtype_of<T>(), bindings, where);
  std::vector<T> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    __builtin_memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = value;
  }
  return values;
}

template <typename T>
std::vector<T> Tensor::to_vector(Location where) const {
  return to_vector<T>(Bindings{}, where);
}

namespace detail {
[[noreturn]] void fail_not_one_element(const Tensor& tensor, size_t count, Location where);
}

template <typename T>
T Tensor::item(const Bindings& bindings, Location where) const {
  std::vector<T> values = to_vector<T>(bindings, where);
  if (values.size() != 1) detail::fail_not_one_element(*this, values.size(), where);
  return values[0];
}

template <typename T>
T Tensor::item(Location where) const {
  return item<T>(Bindings{}, where);
}

namespace detail {
void check_dtype_of_values(const Tensor& tensor, DType dtype, Location where);
}  // namespace detail
template <typename T>
void Tensor::write(const std::vector<T>& values, Location where) const {
  detail::check_dtype_of_values(*this, dtype_of<T>(), where);
  write(std::as_bytes(std::span<const T>(values)), where);
}

}  // namespace anneal

#include <anneal/lists.h>  // needs what stands above
