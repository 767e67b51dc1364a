// Kernel replay: every kernel of the programs of replay_programs.cc, on every named target, is the
// one that tests/goldens/replay.txt has. ./dev replay --update writes that file anew.
#include "replay.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace anneal;

namespace {

#ifndef ANNEAL_SOURCE_DIR
#define ANNEAL_SOURCE_DIR "."
#endif
constexpr const char* kFile = ANNEAL_SOURCE_DIR "/tests/goldens/replay.txt";

const ReplayProgram& program_named(std::string_view name) {
  return *std::ranges::find(replay_programs(), name, &ReplayProgram::name);
}

ReplayTarget target_named(std::string_view name) {
  const std::vector<ReplayTarget> targets = replay_targets();
  return *std::ranges::find(targets, name, &ReplayTarget::name);
}

std::string read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("replay: kernels are those of the file") {
  std::string is;
  for (const ReplayProgram& program : replay_programs())
    for (const ReplayTarget& target : replay_targets()) is += replay(program, target);
  if (std::getenv("ANNEAL_REPLAY_UPDATE")) {
    const std::string difference = replay_difference(read(kFile), is);
    MESSAGE((difference.empty() ? "nothing changed" : difference));
    std::ofstream(kFile, std::ios::binary) << is;
    return;
  }
  const std::string difference = replay_difference(read(kFile), is);
  INFO("kernels differ from those of tests/goldens/replay.txt; ./dev replay --update accepts it");
  CHECK(difference == "");
}

TEST_CASE("replay: a changed plan is shown under its program and target") {
  const ReplayProgram& program = program_named("gemm");
  const ReplayTarget target = target_named("cpu-avx2");
  const std::string was = replay(program, target);
  CHECK(replay_difference(was, replay(program, target)) == "");

  ReplayTarget other = target;
  other.capabilities.vector_registers /= 2;
  const std::string difference = replay_difference(was, replay(program, other));
  CAPTURE(difference);
  CHECK(difference.starts_with("gemm for cpu-avx2\n"));
  CHECK(difference.find("- 1 product grid[") != std::string::npos);
  CHECK(difference.find("+ 1 product grid[") != std::string::npos);

  CHECK(replay_difference("", was).starts_with("gemm for cpu-avx2\n+ =="));
  CHECK(replay_difference(was, "") == "gemm for cpu-avx2\n- is no longer made\n");
}

TEST_CASE("replay: a changed shader is seen where the plan is the same") {
  const ReplayProgram& program = program_named("softmax");
  const ReplayTarget target = target_named("webgpu-h200");
  ReplayTarget other = target;
  other.capabilities.fixed_subgroup_threads = 0;  // sums through shared memory
  const std::string was = replay(program, target), is = replay(program, other);
  const std::string difference = replay_difference(was, is);
  CAPTURE(difference);
  CHECK(difference.find("wgsl") != std::string::npos);
}
