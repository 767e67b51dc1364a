// Random programs beside PyTorch: values, gradients and tangents (torch_program.h).
// $ANNEAL_PARITY_PROGRAMS says how many, $ANNEAL_PARITY_FIRST the seed of the first one.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <unordered_map>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/anneal.h>

#include "ir/dtype.h"
#include "op_case_runner.h"
#include "torch_peer.h"
#include "torch_program.h"

using namespace anneal;

namespace {

constexpr int kPrograms = 40;

uint64_t from_environment(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// What rounding to f32 did to PyTorch's own result, some times over: programs differ in how they
// magnify errors.
constexpr double kAsPyTorch = 8;

using Arrays = std::unordered_map<std::string, Array>;

Array array_of(const Tensor& tensor) { return run(tensor, {}); }

double largest_difference(const Array& a, const Array& b) {
  double largest = 0;
  for (size_t i = 0; i < a.reals.size(); ++i)
    largest = std::max(largest, std::fabs(a.reals[i] - b.reals[i]));
  return largest;
}

// Why a result differs from PyTorch's; empty when it does not.
std::string difference_from(const Array& got, const Arrays& peer, const std::string& name) {
  Array expected = peer.at(name);
  Tolerance tolerance = got.dtype == DType::F32 ? kF32 : kIdentity;
  if (const auto rounded = peer.find(name + ".f32"); rounded != peer.end() && !got.reals.empty()) {
    const double scale = std::max(1.0, expected.largest());
    tolerance.absolute += kAsPyTorch * largest_difference(rounded->second, expected) / scale;
  }
  expected.dtype = got.dtype;
  return difference(got, expected, tolerance);
}

struct Results {
  std::vector<Array> outputs, gradients;
  double tangent = 0;  // of the loss along ones
};

Results results_of(const TorchProgram& program) {
  std::vector<Tensor> wanted = program.outputs, ones;
  for (const Tensor& slope : grad(program.loss, program.inputs, {.allow_unused = true}))
    wanted.push_back(slope);
  for (const Tensor& input : program.inputs) ones.push_back(ones_like(input));
  wanted.push_back(jvp({program.loss}, program.inputs, ones)[0]);
  const std::vector<Array> all = run(wanted, {});
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(program.outputs.size());
  return {{all.begin(), middle}, {middle, all.end() - 1}, all.back().reals[0]};
}

void check_program(uint64_t seed, const std::string& prefix, const Arrays& peer) {
  const TorchProgram program = random_torch_program(seed);
  const Results results = results_of(program);
  auto check = [&](const Array& got, const std::string& name) {
    const std::string text = difference_from(got, peer, prefix + name);
    CHECK_MESSAGE(text.empty(),
                  fmt::format("program {}: {} {}\n{}", seed, name, text, program.text));
  };
  for (size_t i = 0; i < results.outputs.size(); ++i)
    check(results.outputs[i], fmt::format("out{}", i));
  double along_ones = 0, size = 1;
  for (size_t i = 0; i < results.gradients.size(); ++i) {
    check(results.gradients[i], fmt::format("grad{}", i));
    for (double slope : results.gradients[i].reals) {
      along_ones += slope;
      size += std::fabs(slope);
    }
  }
  const Tolerance& tolerance =
      program.loss.dtype() == DType::F32 ? tolerance_of(DType::F16) : kIdentity;
  CHECK_MESSAGE(std::fabs(results.tangent - along_ones) <= tolerance.relative * size,
                fmt::format("program {}: the tangent along ones is {}, gradients say {}\n{}", seed,
                            results.tangent, along_ones, program.text));
}

}  // namespace

TEST_CASE("torch programs: values and gradients are PyTorch's") {
  const uint64_t count = from_environment("ANNEAL_PARITY_PROGRAMS", kPrograms);
  const uint64_t first = from_environment("ANNEAL_PARITY_FIRST", 0);
  const PeerFolder folder;
  const std::string in = folder.path / "programs", out = folder.path / "out.safetensors";
  std::ofstream file(in);
  for (uint64_t i = 0; i < count; ++i) file << random_torch_program(first + i).text;
  file.close();
  if (!run_torch("tests/torch_programs.py", fmt::format("'{}' '{}'", in, out))) {
    MESSAGE("skipped: no python3 here has PyTorch");
    return;
  }
  Arrays peer;
  for (const auto& [name, tensor] : io::load_safetensors(out)) peer[name] = array_of(tensor);
  for (uint64_t i = 0; i < count; ++i) {
    try {
      check_program(first + i, fmt::format("{}.", i), peer);
    } catch (const std::exception& error) {
      FAIL_CHECK(fmt::format("program {}: {}\n{}", first + i, error.what(),
                             random_torch_program(first + i).text));
    }
  }
}
