// Random numbers from counters: the n-th draw of a seed is the same on every device, in any order,
// after any resume.
#pragma once

#include <anneal/tensor.h>

namespace anneal {

// A stream of draws. Each draw takes the next number of the stream.
class Generator {
 public:
  explicit Generator(uint64_t seed = 0, uint64_t draw = 0) : seed_(seed), draw_(draw) {}

  Tensor bits(const Sizes& sizes, Location where = Location::current());  // u32
  Tensor uniform(const Sizes& sizes, double low = 0, double high = 1, DType dtype = DType::F32,
                 Location where = Location::current());  // in [low, high)
  Tensor normal(const Sizes& sizes, double mean = 0, double deviation = 1, DType dtype = DType::F32,
                Location where = Location::current());
  Tensor integers(const Sizes& sizes, int64_t low, int64_t high, DType dtype = DType::I32,
                  Location where = Location::current());  // in [low, high)

  // The next draw as a value: u32 [seed low, seed high, draw]. Adding 1 to its last word gives the
  // draw after it, so a program that is built once draws anew each time it runs.
  Tensor key(Location where = Location::current());
  // A stream of its own, drawn from this one.
  Generator split();

  uint64_t seed() const { return seed_; }
  uint64_t draw() const { return draw_; }  // with the seed, all there is to save

 private:
  uint64_t seed_, draw_;
};

// The draw that a key names: what the Generator it came from would have drawn itself.
Tensor random_bits(const Sizes& sizes, const Tensor& key, Location where = Location::current());
Tensor random_uniform(const Sizes& sizes, const Tensor& key, double low = 0, double high = 1,
                      DType dtype = DType::F32, Location where = Location::current());
// Takes two draws, that of the key and the next.
Tensor random_normal(const Sizes& sizes, const Tensor& key, double mean = 0, double deviation = 1,
                     DType dtype = DType::F32, Location where = Location::current());

// The thread's own generator: parameters start from it, and short programs draw from it.
Generator& generator();
void seed(uint64_t value);
Tensor rand(const Sizes& sizes, DType dtype = DType::F32, Location where = Location::current());
Tensor randn(const Sizes& sizes, DType dtype = DType::F32, Location where = Location::current());
Tensor uniform(const Sizes& sizes, double low, double high, DType dtype = DType::F32,
               Location where = Location::current());
Tensor randint(const Sizes& sizes, int64_t low, int64_t high, DType dtype = DType::I32,
               Location where = Location::current());

}  // namespace anneal
