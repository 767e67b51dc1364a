// Tensors as text: what is printed is what NumPy prints with a precision of 4, but for the dtype.
#include <limits>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "error_text.h"

using namespace anneal;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <typename T>
std::string text(const T& value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

}  // namespace

TEST_CASE("print: floats are aligned at their points") {
  CHECK(text(tensor({1.f, 2.5f})) == "[1.  2.5]");
  CHECK(text(tensor({0.1f, 0.25f, 100.f})) == "[  0.1    0.25 100.  ]");
  CHECK(text(tensor({1.f / 3, 2.f / 3})) == "[0.3333 0.6667]");
  CHECK(text(tensor({123456.789f})) == "[123456.79]");  // no digits that f32 does not have
  CHECK(text(tensor({-0.f, 0.f})) == "[-0.  0.]");
  CHECK(text(tensor({1.f, kNan, -kInf})) == "[  1.  nan -inf]");
  CHECK(text(tensor({-kNan, kInf})) == "[nan inf]");
}

TEST_CASE("print: exponents where numbers are small, large or far from each other") {
  CHECK(text(tensor({1e-10f, 1.f})) == "[1.e-10 1.e+00]");
  CHECK(text(tensor({1.5e-10f, 1.f})) == "[1.5e-10 1.0e+00]");
  CHECK(text(tensor({1000.5f, 0.5f})) == "[1.0005e+03 5.0000e-01]");
  CHECK(text(tensor({1e8f, 1.f})) == "[1.e+08 1.e+00]");
  CHECK(text(tensor({1e-5f, kNan})) == "[1.e-05    nan]");
  CHECK(text(tensor({1e-300, 1e300})) == "[1.e-300 1.e+300] f64[2]");
}

TEST_CASE("print: integers and bools are aligned at the right") {
  CHECK(text(tensor({{1, -20}, {300, 4}})) == "[[  1 -20]\n [300   4]]");
  CHECK(text(tensor({true, false})) == "[ true false]");
  CHECK(text(tensor<uint64_t>({18446744073709551615u, 0})) ==
        "[18446744073709551615                    0] u64[2]");
  CHECK(text(tensor<int8_t>({-128, 127})) == "[-128  127] i8[2]");
  CHECK(text(tensor<int64_t>({std::numeric_limits<int64_t>::min()})) ==
        "[-9223372036854775808] i64[1]");
}

TEST_CASE("print: dtypes that a number does not have by itself are named") {
  CHECK(text(tensor({1.0, 2.0})) == "[1. 2.] f64[2]");
  CHECK(text(full({2}, 0.1, DType::F16)) == "[0.1 0.1] f16[2]");
  CHECK(text(full({1}, 448, DType::F8E4M3)) == "[448.] f8e4m3[1]");
  CHECK(text(sum(tensor({1.f, 2.5f}))) == "3.5");
  CHECK(text(tensor({7}).reshape({})) == "7");
  CHECK(text(zeros({}, DType::F64)) == "0. f64[]");
  CHECK(text(zeros({0, 3})) == "[] f32[0, 3]");
  CHECK(text(zeros({2, 0}, DType::I32)) == "[] i32[2, 0]");
}

TEST_CASE("print: axes are nested, long lines are broken") {
  CHECK(text(arange(12).reshape({2, 3, 2})) ==
        "[[[ 0  1]\n  [ 2  3]\n  [ 4  5]]\n\n [[ 6  7]\n  [ 8  9]\n  [10 11]]]");
  CHECK(text(arange(40)) ==
        "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n"
        " 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39]");
  CHECK(text(arange(20, DType::F32).reshape({2, 10}) / 3.0) ==
        "[[0.     0.3333 0.6667 1.     1.3333 1.6667 2.     2.3333 2.6667 3.    ]\n"
        " [3.3333 3.6667 4.     4.3333 4.6667 5.     5.3333 5.6667 6.     6.3333]]");
  CHECK(to_text(arange(5), {.width = 6}) == "[0 1\n 2 3\n 4]");
  CHECK(to_text(tensor({100000, 2}), {.width = 1}) == "[100000\n      2]");
}

TEST_CASE("print: of many elements the edges are shown") {
  CHECK(text(arange(2000)) == "[   0    1    2 ... 1997 1998 1999] i32[2000]");
  CHECK(text(arange(1000)).find("...") == std::string::npos);
  CHECK(text(zeros({100, 100})) ==
        "[[0. 0. 0. ... 0. 0. 0.]\n [0. 0. 0. ... 0. 0. 0.]\n [0. 0. 0. ... 0. 0. 0.]\n ...\n"
        " [0. 0. 0. ... 0. 0. 0.]\n [0. 0. 0. ... 0. 0. 0.]\n [0. 0. 0. ... 0. 0. 0.]] "
        "f32[100, 100]");
  CHECK(text(arange(4000).reshape({2, 2, 1000})) ==
        "[[[   0    1    2 ...  997  998  999]\n  [1000 1001 1002 ... 1997 1998 1999]]\n\n"
        " [[2000 2001 2002 ... 2997 2998 2999]\n  [3000 3001 3002 ... 3997 3998 3999]]] "
        "i32[2, 2, 1000]");
  CHECK(to_text(arange(9), {.threshold = 4, .edge = 1}) == "[0 ... 8] i32[9]");
  CHECK(to_text(tensor({1.f / 3}), {.precision = 0}) == "[0.]");
  CHECK(to_text(tensor({1.0 / 3}), {.precision = 8}) == "[0.33333333] f64[1]");
}

TEST_CASE("print: what cannot be computed shows its type") {
  Variable n("n", 1, 8);
  CHECK(text(Tensor()) == "empty tensor");
  CHECK(text(input("x", {2, 3}) + 1) == "f32[2, 3] (needs the input \"x\")");
  CHECK(text(zeros({n, 3}, DType::I64)) == "i64[n, 3] (needs the size n)");
  Tensor p = parameter("p", tensor({1.f, 2.f}));
  CHECK(text(p.assign(p + 1)) == "f32[2] (assigns to \"p\")");
  CHECK(text(p) == "[1. 2.]");
  CHECK(contains(error_of([] { to_text(tensor({1}), {.edge = 0}); }),
                 "print: precision is 4 and edge 0"));
}

TEST_CASE("print: a look changes nothing") {
  Tensor p = parameter("p", tensor({1.f, 2.f}));
  Tensor twice = p * 2;
  CHECK(text(twice) == "[2. 4.]");
  evaluate({p.assign(p + 1)});
  CHECK(text(twice) == "[4. 6.]");
}

TEST_CASE("print: sizes and dtypes") {
  Variable n("n", 1, 8);
  CHECK(text(Dim(n) * 2) == "n * 2");
  CHECK(text(zeros({n, 3}).shape()) == "[n, 3]");
  CHECK(text(DType::BF16) == "bf16");
  std::ostringstream stream;
  stream << tensor({1, 2}) << ' ' << 3 << ' ' << 'c' << ' ' << true << ' ' << 2.5;
  CHECK(stream.str() == "[1 2] 3 c 1 2.5");
}
