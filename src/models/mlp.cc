// A perceptron with two hidden layers.
#include <anneal/functional.h>

#include "models/networks.h"
#include "models/program.h"

namespace anneal::models {

Mlp::Mlp(int64_t width)
    : up(this, "up", kPixels, width),
      middle(this, "middle", width, width),
      down(this, "down", width, kClasses) {}

Tensor Mlp::operator()(const Tensor& image) const {
  Tensor hidden = relu(up(image));
  hidden = relu(middle(hidden));
  return down(hidden);
}

Program mlp() {
  nn::StructureOnly structure;
  const Mlp model;
  Tensor image = input("image", {128, kPixels}), label = input("label", {128}, DType::I32);
  return training_step(cross_entropy(model(image), label), model);
}

}  // namespace anneal::models
