// anneal cache: what it shows, removes and keeps.
#include <filesystem>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "cli_runner.h"
#include "environment_scope.h"
#include "runtime/disk/kernel_folder.h"
#include "temporary_folder.h"

using namespace anneal;
using namespace anneal::testing;

namespace {

void fill(const std::string& path, int count) {
  KernelFolder kernels(path, {});
  for (int i = 0; i < count; ++i) {
    KeyBuilder key(3);
    key.add(static_cast<uint64_t>(i));
    kernels.write(key.finish(), std::string(1024, 'x'));
  }
}

// What the commands of a test see.
struct Surroundings {
  TemporaryFolder folder;
  EnvironmentScope directory{"ANNEAL_CACHE_DIR", folder.path()}, on{"ANNEAL_CACHE", "1"},
      limit{"ANNEAL_CACHE_LIMIT", ""};
};

}  // namespace

TEST_CASE("cli: cache shows what is kept") {
  const Surroundings here;
  CHECK(contains(anneal_run("cache").output, "holds    0 kernels, 0 bytes"));
  fill(here.folder.path(), 3);
  const std::string text = anneal_run("cache show").output;
  CHECK(contains(text, "folder   " + here.folder.path()));
  CHECK(contains(text, "holds    3 kernels, 3 KiB"));
  CHECK(contains(text, "limit    20000 kernels, 512 MiB"));
  CHECK(contains(text, "used     the newest less than a minute ago, the oldest less than"));
  const Json json = json_of("cache");
  CHECK(json["directory"] == here.folder.path());
  CHECK(json["kernels"] == 3);
  CHECK(json["bytes"] == 3072);
  CHECK(json["limit_bytes"] == 512 << 20);
  CHECK(json["oldest_use_s"].get<double>() < 60);
  CHECK(json["not_used_because"] == "");
}

TEST_CASE("cli: cache clear removes them, cache limit bounds them for good") {
  const Surroundings here;
  fill(here.folder.path(), 8);
  const Run limited = anneal_run("cache limit 4K");
  CHECK(limited.code == 0);
  CHECK(contains(limited.output, "the limit is 4 KiB"));
  CHECK(contains(limited.output, "removed 5 kernels, 5 KiB, from " + here.folder.path()));
  CHECK(json_of("cache")["limit_bytes"] == 4096);
  const Json cleared = json_of("cache clear");
  CHECK(cleared["removed_kernels"] == 3);
  CHECK(cleared["removed_bytes"] == 3072);
  CHECK(json_of("cache")["kernels"] == 0);
  CHECK(json_of("cache")["limit_bytes"] == 4096);
  const EnvironmentScope other("ANNEAL_CACHE_LIMIT", "8K");
  CHECK(json_of("cache")["limit_bytes"] == 8192);
  CHECK(contains(anneal_run("cache limit 6K").output, "ANNEAL_CACHE_LIMIT says"));
}

TEST_CASE("cli: cache says what is wrong") {
  const Surroundings here;
  struct Row {
    const char *arguments, *says;
  };
  for (const Row& row :
       {Row{"cache limit lots", "\"lots\" is no number of bytes\n  hint: anneal cache limit 512M"},
        Row{"cache limit", "there is no number of bytes"},
        Row{"cache claer", "there is no action 'claer'\n  hint: did you mean clear?"},
        Row{"cache clear 5", "cache clear takes no \"5\""}}) {
    CAPTURE(row.arguments);
    const Run run = with_errors(row.arguments);
    CHECK(run.code == 2);
    CHECK(contains(run.output, row.says));
  }
  {
    const EnvironmentScope off("ANNEAL_CACHE", "0");
    CHECK(contains(with_errors("cache").output, "compiled kernels are not kept on disk"));
  }
  const EnvironmentScope bad("ANNEAL_CACHE_LIMIT", "1.5G");
  CHECK(contains(with_errors("cache").output, "ANNEAL_CACHE_LIMIT is \"1.5G\""));
}

TEST_CASE("cli: a folder that others can write to is not used, and the run goes on") {
  const Surroundings here;
  std::filesystem::create_directories(here.folder.path());
  std::filesystem::permissions(here.folder.path(), std::filesystem::perms::all);
  const Run run = with_errors("train mlp --data digits --steps 1 --width 8 --batch 2");
  CHECK(run.code == 0);
  const std::string notice =
      "notice: compiled kernels on disk are not used: " + here.folder.path() +
      " can be written to by others";
  const size_t first = run.output.find(notice);
  REQUIRE(first != std::string::npos);
  CHECK(run.output.find("notice:", first + 1) == std::string::npos);
  CHECK(here.folder.files().empty());
  CHECK(contains(anneal_run("cache").output, "not used " + here.folder.path()));
}
