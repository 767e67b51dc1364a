// Tensors from vectors and lists of the host: from_data(values), tensor({{1, 2}, {3, 4}}). A part
// of tensor.h, which includes it.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include <anneal/tensor.h>

namespace anneal {

// One size may be -1, and follows from the number of values; without sizes there is one axis.
template <typename T>
Tensor from_data(std::span<const T> values, const Sizes& sizes = {-1},
                 Location where = Location::current()) {
  return from_bytes(std::as_bytes(values), sizes, dtype_of<T>(), where);
}
template <typename T>
Tensor from_data(const std::vector<T>& values, const Sizes& sizes = {-1},
                 Location where = Location::current()) {
  return from_data(std::span<const T>(values), sizes, where);
}
Tensor from_data(const std::vector<bool>& values, const Sizes& sizes = {-1},
                 Location where = Location::current());

namespace detail {
// The elements of lists in lists, in order, and the lengths of the lists, level by level.
class ListReader {
 public:
  explicit ListReader(Location where) : where_(where) {}
  void open(size_t count);  // a list of so many; an error where another of its level is not as long
  void close();
  void add(std::span<const std::byte> elements);
  Tensor tensor(DType dtype) const;

 private:
  Location where_;
  std::vector<int64_t> sizes_, path_;  // the path: lists closed so far in each open list
  std::vector<std::byte> bytes_;
};

template <typename T>
void read_list(std::initializer_list<T> list, ListReader& reader) {
  reader.open(list.size());
  reader.add(std::as_bytes(std::span<const T>(list.begin(), list.size())));
  reader.close();
}
template <typename T>
void read_list(std::initializer_list<std::initializer_list<T>> lists, ListReader& reader) {
  reader.open(lists.size());
  for (const std::initializer_list<T>& list : lists) read_list(list, reader);
  reader.close();
}

template <typename T, typename Item>
Tensor from_lists(std::initializer_list<Item> lists, Location where) {
  ListReader reader(where);
  read_list(lists, reader);
  return reader.tensor(dtype_of<T>());
}
}  // namespace detail

// tensor({1.0f, 2.0f}) has one axis, tensor({{1, 2}, {3, 4}}) two, and so on up to four. Lists of
// one level have one length. tensor({}) is empty. (Written out, as compilers deduce T only so.)
template <typename T = float>
Tensor tensor(std::initializer_list<T> values, Location where = Location::current()) {
  return detail::from_lists<T>(values, where);
}
template <typename T = float>
Tensor tensor(std::initializer_list<std::initializer_list<T>> values,
              Location where = Location::current()) {
  return detail::from_lists<T>(values, where);
}
template <typename T = float>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> values,
              Location where = Location::current()) {
  return detail::from_lists<T>(values, where);
}
template <typename T = float>
Tensor tensor(
    std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>>
        values,
    Location where = Location::current()) {
  return detail::from_lists<T>(values, where);
}
// The elements in row-major order: tensor({1, 2, 3, 4}, {2, 2}) has two axes.
template <typename T>
Tensor tensor(std::initializer_list<T> values, const Sizes& sizes,
              Location where = Location::current()) {
  return from_data(std::span<const T>(values.begin(), values.size()), sizes, where);
}

}  // namespace anneal
