// A perceptron with two hidden layers.
#include <anneal/functional.h>

#include "models/networks.h"
#include "models/program.h"
#include "models/training.h"

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

namespace {

Program step_of(std::string_view name, const Dim& batch) {
  nn::StructureOnly structure;
  const ModelRow& row = *find_model(name);
  const Mlp model(row.width);
  Tensor image = input("image", {batch, kPixels}), label = input("label", {batch}, DType::I32);
  return training_step(cross_entropy(model(image), label), model, optimizer_options(row, row.lr));
}

}  // namespace

Program mlp() { return step_of("mlp", find_model("mlp")->batch); }

Program dynmlp() {
  const Variable batch("batch", 1, find_model("dynmlp")->batch);
  return step_of("dynmlp", batch);
}

}  // namespace anneal::models
