// A small convolutional network for 28x28 images.
#include <anneal/functional.h>

#include "models/networks.h"
#include "models/program.h"
#include "models/training.h"

namespace anneal::models {

ConvNet::ConvNet(int64_t channels)
    : first(this, "first", 1, channels, 3, {.padding = {1}}),
      second(this, "second", channels, 2 * channels, 3, {.padding = {1}}),
      out(this, "out", 2 * channels * (kImageSide / 4) * (kImageSide / 4), kClasses) {}

Tensor ConvNet::operator()(const Tensor& image) const {
  Tensor x = image.reshape({image.dim(0), 1, kImageSide, kImageSide});
  x = max_pool(relu(first(x)), {2, 2});
  x = max_pool(relu(second(x)), {2, 2});
  return out(flatten(x, 1));
}

Program conv() {
  nn::StructureOnly structure;
  const ModelRow& row = *find_model("conv");
  const ConvNet model(row.width);
  Tensor image = input("image", {row.batch, kPixels}),
         label = input("label", {row.batch}, DType::I32);
  return training_step(cross_entropy(model(image), label), model, optimizer_options(row, row.lr));
}

}  // namespace anneal::models
