// Tensors from and to bytes in memory, where there may be no files: the core's tests have it, too.
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

using namespace anneal;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

template <typename Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.message();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("io memory: safetensors come back as they were") {
  const nn::Linear model(nullptr, "model", 3, 2);
  const std::vector<std::byte> file = io::write_safetensors(model.state(), {{"step", "7"}});
  const State state = io::read_safetensors(file);
  REQUIRE(state.size() == 2);
  CHECK(state[0].first == "model.bias");
  CHECK(state[1].first == "model.weight");
  CHECK(state[1].second.to_vector<float>() == model.weight.to_vector<float>());
  CHECK(io::write_safetensors(state, {{"step", "7"}}) == file);

  const std::span<const std::byte> part(file.data(), file.size() - 1);
  CHECK(
      message_of([&] { io::read_safetensors(part); }).starts_with("read_safetensors: the bytes: "));
}

TEST_CASE("io memory: npy") {
  std::string file("\x93NUMPY\x01\0v\0", 10);
  file += "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  file.resize(127, ' ');
  file += "\n";
  file += std::string("\0\0\x80?\0\0\0\xc0", 8);
  CHECK(io::read_npy(bytes_of(file)).to_vector<float>() == std::vector<float>{1, -2});
  file.pop_back();
  CHECK(message_of([&] { io::read_npy(bytes_of(file)); }).starts_with("read_npy: the bytes: "));
}
