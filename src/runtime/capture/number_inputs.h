// Which numbers of a program are inputs of its code and which are part of it. Numbers of the host
// that change from run to run become inputs, so that nothing is compiled for them again. Must not
// know what the program does with them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ir/scalar.h"
#include "ir/storage.h"

namespace anneal {

class NumberInputs {
 public:
  // All of them are part of the code.
  explicit NumberInputs(std::span<const Scalar> numbers);

  // Whether code made this way computes a program of the same structure with these numbers.
  bool serve(std::span<const Scalar> numbers) const;
  // Numbers that are part of the code and are other ones here.
  std::vector<size_t> differing(std::span<const Scalar> numbers) const;
  // As this, with inputs for what differs: serves what this serves, and these. Uses that had one
  // number both times share an input, so that kernels that are equal but for it stay equal.
  NumberInputs widened(std::span<const Scalar> numbers) const;

  // Inputs of one dtype lie in one buffer.
  struct Place {
    int buffer = -1;  // -1: part of the code
    int64_t index = 0;
  };
  Place place(size_t number) const;
  struct Buffer {
    DType dtype;
    int64_t count = 0;
  };
  std::span<const Buffer> buffers() const { return buffers_; }
  bool empty() const { return places_.empty(); }
  // What the buffers hold in a run with these numbers, which must be served.
  std::vector<std::shared_ptr<Storage>> contents(std::span<const Scalar> numbers) const;

 private:
  NumberInputs(std::span<const Scalar> numbers, std::vector<int> inputs);

  std::vector<Scalar> numbers_;  // that it was made for
  std::vector<int> inputs_;      // by number; -1: part of the code
  std::vector<Place> places_;    // by input
  std::vector<Buffer> buffers_;
};

}  // namespace anneal
