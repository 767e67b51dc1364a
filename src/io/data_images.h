// Images of digits to learn from: MNIST's files, or digits drawn here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace anneal::io {

struct Images {
  static constexpr int64_t kSide = 28, kPixels = kSide * kSide;

  std::vector<uint8_t> pixels;  // image after image, row after row; 255 is ink
  std::vector<uint8_t> labels;  // 0 to 9

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
  std::span<const uint8_t> image(int64_t i) const {
    return std::span(pixels).subspan(static_cast<size_t>(i * kPixels), kPixels);
  }
};

struct ImageData {
  Images train, test;
  std::string source;  // where it comes from, for people
};

// The four IDX files of MNIST, with or without a dot before "idx". An error for everything else.
ImageData load_images(const std::string& folder);

// Digits drawn as strokes that are bent, turned, moved and blotted at random. The same seed gives
// the same digits.
Images drawn_digits(int64_t count, uint64_t seed);
ImageData drawn_digits();  // 20,000 to train and 4,000 to test

// Which image comes at a place of a run that takes each image once an epoch, in a new order each
// time. Keeps the order of one epoch.
class Shuffle {
 public:
  Shuffle(int64_t count, uint64_t seed) : order_(static_cast<size_t>(count)), seed_(seed) {}
  int64_t at(int64_t place);

 private:
  std::vector<int64_t> order_;
  uint64_t seed_;
  int64_t epoch_ = -1;
};

}  // namespace anneal::io
