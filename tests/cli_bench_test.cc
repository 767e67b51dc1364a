// The benchmarks' own machinery, on the smallest cases: figures are noise here, their form is not.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli_runner.h"
#include "environment_scope.h"

using namespace anneal;

namespace {

constexpr const char* kQuick = "bench gemm --case '256 x 256' --seconds 0";

void check_row(const Json& row) {
  for (const char* key :
       {"bench", "case", "device", "threads", "ours", "unit", "peer", "peer_value", "ratio"})
    CHECK_MESSAGE(row.contains(key), key);
  CHECK(row["ours"].get<double>() > 0);
  CHECK(row["peer"].is_null() == row["peer_value"].is_null());
  CHECK(row["peer"].is_null() == row["ratio"].is_null());
  if (!row["ratio"].is_null())
    CHECK(row["ratio"].get<double>() ==
          doctest::Approx(row["ours"].get<double>() / row["peer_value"].get<double>()));
}

}  // namespace

TEST_CASE("cli: bench gives a row for each case and number of threads") {
  const Json shown = json_of(std::string(kQuick) + " --threads 1,2");
  REQUIRE(shown["rows"].size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    const Json& row = shown["rows"][i];
    check_row(row);
    CHECK(row["bench"] == "gemm");
    CHECK(row["case"] == "256 x 256 x 256");
    CHECK(row["threads"] == i + 1);
    CHECK(row["unit"] == "GFLOP/s");
  }
}

TEST_CASE("cli: bench times training steps") {
  const Json shown = json_of("bench train --case MLP --seconds 0 --threads 1");
  REQUIRE(shown["rows"].size() == 1);
  const Json& row = shown["rows"][0];
  CHECK(row["bench"] == "train");
  CHECK(row["unit"] == "ms");
  CHECK(row["ours"].get<double>() > 0);
  if (!row["ratio"].is_null())
    CHECK(row["ratio"].get<double>() ==
          doctest::Approx(row["peer_value"].get<double>() / row["ours"].get<double>()));
}

TEST_CASE("cli: bench as a table") {
  const Run run = anneal_run(std::string(kQuick) + " --threads 1 2>/dev/null");
  CHECK(run.code == 0);
  CHECK(contains(run.output, "ratio"));
  CHECK(contains(run.output, "256 x 256 x 256"));
  CHECK(contains(run.output, "GFLOP/s"));
}

TEST_CASE("cli: bench compares a GPU with a GPU") {
  const Json shown = json_of(std::string(kQuick) + " --device webgpu");
  REQUIRE(shown["rows"].size() == 1);  // it does not use the cores
  const Json& row = shown["rows"][0];
  check_row(row);
  CHECK(row["device"] == "webgpu");
  if (row["peer"].is_null())
    CHECK(contains(row["note"], "built for CUDA"));
  else
    CHECK(contains(row["peer"], "PyTorch"));
  CHECK_FALSE(row.contains("matmul_precision"));
}

TEST_CASE("cli: bench says when products of f32 are not made in f32") {
  const EnvironmentScope tiles("ANNEAL_WEBGPU_TILES", "gpu"),
      matrices("ANNEAL_WEBGPU_MATRICES", "emulated");
  const std::string command = std::string(kQuick) + " --device webgpu";
  CHECK(json_of(command)["rows"][0]["matmul_precision"] == "high");
  CHECK(contains(anneal_run(command + " 2>/dev/null").output,
                 "made of f16 halves (--matmul-precision high)"));
}

TEST_CASE("cli: bench compares a GPU's memory with copying it there") {
  const Json shown = json_of("bench rows --case 2x+1 --seconds 0 --device webgpu");
  REQUIRE(shown["rows"].size() == 2);
  for (const Json& row : shown["rows"]) check_row(row);
  const Json& beside = shown["rows"][1];
  CHECK(beside["case"] == "2x+1 beside copying");
  CHECK(beside["peer"] == "device copy");
  // Both read and write as much: one that were not there would be faster than any memory.
  CHECK(beside["ratio"].get<double>() > 0.01);
  CHECK(beside["ratio"].get<double>() < 100);
}

TEST_CASE("cli: bench has large cases for large GPUs only") {
  for (const char* device : {"cpu", "webgpu"})
    for (const char* large : {"gemm --case 4096", "train --case '6 x 384'"}) {
      const Run run = with_errors(fmt::format("bench {} --seconds 0 --device {}", large, device));
      CHECK(run.code == 2);
      CHECK(contains(run.output, "no case of"));
    }
  CHECK(with_errors("bench rows --case 2x+1 --device cpu").code == 2);
}

TEST_CASE("cli: a peer that is not there leaves its place empty and says why") {
  // A copy of the program has no peers beside it.
  const Run copied = shell(fmt::format(
      "folder=$(mktemp -d) && cp '{}' \"$folder/anneal\" && \"$folder/anneal\" {} --threads 1 "
      "--json; rm -r \"$folder\"",
      program_path(), kQuick));
  REQUIRE(copied.code == 0);
  const Json row = Json::parse(copied.output)["rows"][0];
  check_row(row);
  CHECK(row["peer"].is_null());
  CHECK(contains(row["note"], "./dev bench installs what is needed"));
}
