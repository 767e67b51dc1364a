// Images from IDX files, and the order in which a run takes them.
#include "io/data_images.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <anneal/io.h>

#include "base/call_site.h"
#include "base/os/files.h"
#include "io/data_random.h"
#include "ir/dtype.h"

namespace anneal::io {
namespace {

// MNIST's files are called train-images-idx3-ubyte here and train-images.idx3-ubyte there.
std::string find_file(const std::string& folder, const std::string& what, int rank) {
  for (const char separator : {'-', '.'}) {
    const std::string path = fmt::format("{}/{}{}idx{}-ubyte", folder, what, separator, rank);
    if (file_exists(path)) return path;
  }
  fail(fmt::format("there is no {}-idx{}-ubyte in \"{}\"", what, rank, folder),
       "give a folder with the four IDX files of MNIST, unpacked");
}

std::vector<uint8_t> bytes_of(const std::string& path, const Sizes& tail) {
  const Tensor tensor = load_idx(path);
  const Sizes shape = tensor.shape();
  if (tensor.dtype() != DType::U8 || shape.empty() ||
      !std::equal(shape.begin() + 1, shape.end(), tail.begin(), tail.end()))
    fail(fmt::format("\"{}\" holds {}{}", path, name(tensor.dtype()), to_text(shape)),
         "MNIST's images are u8 of 28 by 28, its labels single bytes");
  return tensor.to_vector<uint8_t>();
}

Images load_part(const std::string& folder, const std::string& part) {
  const std::string image_path = find_file(folder, part + "-images", 3),
                    label_path = find_file(folder, part + "-labels", 1);
  Images images{bytes_of(image_path, {Images::kSide, Images::kSide}), bytes_of(label_path, {})};
  const size_t count = images.pixels.size() / Images::kPixels;
  if (count != images.labels.size() || count == 0)
    fail(fmt::format("\"{}\" has {} images, \"{}\" has {} labels", image_path, count, label_path,
                     images.labels.size()),
         "take both from the same place");
  for (const uint8_t label : images.labels)
    if (label > 9)
      fail(fmt::format("\"{}\" has the label {}", label_path, label), "labels are 0 to 9");
  return images;
}

}  // namespace

ImageData load_images(const std::string& folder) {
  const CallScope call("load_images", {});
  if (!folder_exists(folder))
    fail(fmt::format("\"{}\" is not a folder", folder),
         "give a folder with the four IDX files of MNIST, or leave it out for drawn digits");
  return {load_part(folder, "train"), load_part(folder, "t10k"), folder};
}

int64_t Shuffle::at(int64_t place) {
  const auto count = static_cast<int64_t>(order_.size());
  if (const int64_t epoch = place / count; epoch != epoch_) {
    epoch_ = epoch;
    std::iota(order_.begin(), order_.end(), int64_t{0});
    HostRandom random(seed_, static_cast<uint64_t>(epoch));
    for (int64_t i = count - 1; i > 0; --i)
      std::swap(order_[static_cast<size_t>(i)], order_[static_cast<size_t>(random.below(i + 1))]);
  }
  return order_[static_cast<size_t>(place % count)];
}

}  // namespace anneal::io
