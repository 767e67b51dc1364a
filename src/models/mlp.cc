// A perceptron with two hidden layers.
#include <anneal/functional.h>

#include "models/program.h"

namespace anneal::models {

Program mlp() {
  ParameterList parameter;
  Tensor image = input("image", {128, 784}), label = input("label", {128}, DType::I32);
  auto linear = [&](const Tensor& x, const std::string& name, int64_t from, int64_t to) {
    return matmul(x, parameter(name + ".weight", {from, to})) + parameter(name + ".bias", {to});
  };
  Tensor hidden = relu(linear(image, "up", 784, 512));
  hidden = relu(linear(hidden, "middle", 512, 512));
  return training_step(cross_entropy(linear(hidden, "down", 512, 10), label), parameter);
}

}  // namespace anneal::models
