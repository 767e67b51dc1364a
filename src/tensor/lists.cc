// Tensors from lists of the host: lists in lists, and vectors of bool, which have no memory of
// their own kind.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <anneal/tensor.h>

#include "base/call_site.h"

namespace anneal {
namespace {

std::vector<std::byte> bytes_of(const std::vector<bool>& values) {
  std::vector<std::byte> bytes;
  bytes.reserve(values.size());
  for (bool value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

}  // namespace

namespace detail {

void ListReader::open(size_t count) {
  CallScope call("tensor", where_);
  const size_t level = path_.size();
  const auto size = static_cast<int64_t>(count);
  if (level == sizes_.size()) sizes_.push_back(size);  // the first of its level
  if (sizes_[level] != size)
    fail(fmt::format("the list at [{}] has {} elements, those before it have {}",
                     fmt::join(path_, ", "), count, sizes_[level]),
         "lists of one level have one length");
  path_.push_back(0);
}

void ListReader::close() {
  path_.pop_back();
  if (!path_.empty()) ++path_.back();
}

void ListReader::add(std::span<const std::byte> elements) {
  bytes_.insert(bytes_.end(), elements.begin(), elements.end());
}

Tensor ListReader::tensor(DType dtype) const {
  return from_bytes(bytes_, Sizes(sizes_.begin(), sizes_.end()), dtype, where_);
}

}  // namespace detail

Tensor from_data(const std::vector<bool>& values, const Sizes& sizes, Location where) {
  return from_bytes(bytes_of(values), sizes, DType::Bool, where);
}

void Tensor::write(const std::vector<bool>& values, Location where) const {
  detail::check_dtype_of_values(*this, DType::Bool, where);
  write(std::span<const std::byte>(bytes_of(values)), where);
}

}  // namespace anneal
