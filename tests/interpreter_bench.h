// What the tests of the interpreter share: a graph with values for its buffers, and plain arrays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ir/build.h"
#include "ir/interpreter.h"

namespace anneal::testing {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr int64_t kI64Min = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kI64Max = std::numeric_limits<int64_t>::max();

inline constexpr DType kInts[] = {DType::I8, DType::I16, DType::I32, DType::I64,
                                  DType::U8, DType::U16, DType::U32, DType::U64};
inline constexpr DType kFloats[] = {DType::F8E4M3, DType::F8E5M2, DType::F16,
                                    DType::BF16,   DType::F32,    DType::F64};

using Sizes = std::vector<int64_t>;

inline int64_t product(const Sizes& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

inline Sizes coordinates_of(int64_t flat, const Sizes& shape) {
  Sizes at(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) at[i] = flat % shape[i];
  return at;
}

inline int64_t flat_of(const Sizes& at, const Sizes& shape) {
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + at[i];
  return flat;
}

inline Value value_of(DType dtype, Sizes shape, const std::vector<double>& numbers) {
  Value value{dtype, std::move(shape), {}};
  for (double number : numbers) value.payload.push_back(Scalar::of(dtype, number).bits());
  return value;
}

inline std::vector<double> numbers_of(const Value& value) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < value.size(); ++i) numbers.push_back(value.as_double(i));
  return numbers;
}

// A graph with the values of its buffers and variables.
struct Bench {
  Graph graph;
  GraphScope scope{graph};
  std::map<NodeRef, Value> values;
  std::map<NodeRef, int64_t> sizes;

  NodeRef input(Value value) {
    NodeRef node = make_buffer("x", new_buffer_slot(), value.dtype, static_dims(value.shape));
    values[node] = std::move(value);
    return node;
  }
  NodeRef input(DType dtype, Sizes shape, const std::vector<double>& numbers) {
    return input(value_of(dtype, std::move(shape), numbers));
  }
  // 1, 2, 3 ...: every element differs from its neighbours and from padding.
  NodeRef counting(DType dtype, const Sizes& shape) {
    std::vector<double> numbers(static_cast<size_t>(product(shape)));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i + 1);
    return input(dtype, shape, numbers);
  }

  Environment environment() {
    Environment result;
    result.variable = [this](NodeRef node) { return sizes.at(node); };
    result.buffer = [this](NodeRef node) {
      auto found = values.find(node);
      return found == values.end() ? nullptr : &found->second;
    };
    return result;
  }
  Value run(NodeRef root) { return interpret({&root, 1}, environment())[0]; }
  std::vector<double> numbers(NodeRef root) { return numbers_of(run(root)); }

  // The message of the error that evaluating `root` must raise.
  std::string error(NodeRef root) {
    try {
      run(root);
    } catch (const UserError& error) {
      return error.message();
    }
    return "no error";
  }
};

inline bool mentions(const std::string& text, std::initializer_list<const char*> parts) {
  INFO(text);
  return std::all_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string::npos; });
}

}  // namespace anneal::testing
