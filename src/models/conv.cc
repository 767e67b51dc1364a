// A small convolutional network for 28x28 images.
#include <anneal/functional.h>

#include "models/program.h"

namespace anneal::models {

Program conv() {
  ParameterList parameter;
  Tensor image = input("image", {64, 1, 28, 28}), label = input("label", {64}, DType::I32);
  auto block = [&](const Tensor& x, const std::string& name, int64_t from, int64_t to) {
    Tensor y = conv2d(x, parameter(name + ".weight", {to, from, 3, 3}),
                      parameter(name + ".bias", {to}), {.padding = {1}});
    return max_pool(relu(y), {2, 2});
  };
  Tensor features = flatten(block(block(image, "first", 1, 32), "second", 32, 64), 1);
  Tensor logits =
      matmul(features, parameter("out.weight", {64 * 7 * 7, 10})) + parameter("out.bias", {10});
  return training_step(cross_entropy(logits, label), parameter);
}

}  // namespace anneal::models
