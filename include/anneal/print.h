// Values as text, in NumPy's look: std::cout << tensor. Printing computes the value and changes
// nothing. A value that cannot be computed (it needs an input or a size that is bound later, or it
// would assign to a parameter) is shown as its dtype and shape.
#pragma once

#include <iosfwd>
#include <string>

#include <anneal/tensor.h>

namespace anneal {

struct PrintOptions {
  int64_t precision = 4;     // digits behind the point, at most
  int64_t threshold = 1000;  // of more elements only the edges are shown
  int64_t edge = 3;          // elements at each end of a shortened axis
  int64_t width = 75;        // columns of a line
};
std::string to_text(const Tensor& tensor, const PrintOptions& options = {},
                    Location where = Location::current());

// A tensor, and the line on which it is printed.
struct Printed {
  Printed(const Tensor& printed, Location line = Location::current())  // NOLINT
      : tensor(printed), where(line) {}
  const Tensor& tensor;
  Location where;
};
std::ostream& operator<<(std::ostream& stream, const Printed& printed);
std::ostream& operator<<(std::ostream& stream, DType dtype);         // f32
std::ostream& operator<<(std::ostream& stream, const Dim& size);     // n * 3 + 1
std::ostream& operator<<(std::ostream& stream, const Sizes& sizes);  // [n, 784]

}  // namespace anneal
