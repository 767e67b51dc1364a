#include "runtime/capture/number_inputs.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "ir/interpreter.h"

namespace anneal {

NumberInputs::NumberInputs(std::span<const Scalar> numbers)
    : NumberInputs(numbers, std::vector<int>(numbers.size(), -1)) {}

NumberInputs::NumberInputs(std::span<const Scalar> numbers, std::vector<int> inputs)
    : numbers_(numbers.begin(), numbers.end()), inputs_(std::move(inputs)) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    // Inputs are numbered as they are met.
    if (inputs_[i] < static_cast<int>(places_.size())) continue;
    auto buffer = std::ranges::find(buffers_, numbers_[i].dtype(), &Buffer::dtype);
    if (buffer == buffers_.end()) buffer = buffers_.insert(buffer, {numbers_[i].dtype()});
    places_.push_back({static_cast<int>(buffer - buffers_.begin()), buffer->count++});
  }
}

NumberInputs::Place NumberInputs::place(size_t number) const {
  return inputs_[number] < 0 ? Place{} : places_[static_cast<size_t>(inputs_[number])];
}

bool NumberInputs::serve(std::span<const Scalar> numbers) const {
  if (empty()) return std::ranges::equal(numbers, numbers_);
  std::vector<const Scalar*> shared(places_.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (inputs_[i] < 0) {
      if (numbers[i] != numbers_[i]) return false;
      continue;
    }
    const Scalar*& first = shared[static_cast<size_t>(inputs_[i])];
    if (!first) first = &numbers[i];
    if (*first != numbers[i]) return false;
  }
  return true;
}

std::vector<size_t> NumberInputs::differing(std::span<const Scalar> numbers) const {
  std::vector<size_t> result;
  for (size_t i = 0; i < numbers.size(); ++i)
    if (inputs_[i] < 0 && numbers[i] != numbers_[i]) result.push_back(i);
  return result;
}

NumberInputs NumberInputs::widened(std::span<const Scalar> numbers) const {
  // Which numbers were one before, and are one now.
  using Uses = std::tuple<int, DType, uint64_t, uint64_t>;
  std::map<Uses, int> known;
  std::vector<int> inputs(numbers.size(), -1);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (inputs_[i] < 0 && numbers[i] == numbers_[i]) continue;
    const uint64_t before = inputs_[i] < 0 ? numbers_[i].bits() : 0;
    const Uses uses{inputs_[i], numbers[i].dtype(), before, numbers[i].bits()};
    inputs[i] = known.try_emplace(uses, static_cast<int>(known.size())).first->second;
  }
  return {numbers, std::move(inputs)};
}

std::vector<std::shared_ptr<Storage>> NumberInputs::contents(
    std::span<const Scalar> numbers) const {
  std::vector<Value> values;
  for (const Buffer& buffer : buffers_)
    values.push_back(
        {buffer.dtype, {buffer.count}, std::vector<uint64_t>(static_cast<size_t>(buffer.count))});
  for (size_t i = 0; i < numbers.size(); ++i)
    if (const Place at = place(i); at.buffer >= 0)
      values[static_cast<size_t>(at.buffer)].payload[static_cast<size_t>(at.index)] =
          numbers[i].bits();
  std::vector<std::shared_ptr<Storage>> result;
  for (const Value& value : values) result.push_back(std::make_shared<Storage>(to_storage(value)));
  return result;
}

}  // namespace anneal
