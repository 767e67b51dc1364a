// What commands do with their output: a full disk, a reader that goes away, people who wait.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <anneal/io.h>

#include "child_process.h"
#include "cli_runner.h"

using namespace anneal;
namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kSmall = "train nanogpt --layers 1 --width 16 --heads 2 --block 8 --batch 2";

// A place of this test's own for one file.
class File {
 public:
  File() : path_(fs::temp_directory_path() / fmt::format("anneal-output-{}", getpid())) {
    fs::remove(path_);
  }
  ~File() { fs::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

std::vector<std::string> words_of(const std::string& arguments) {
  std::vector<std::string> words{program_path()};
  std::istringstream text(arguments);
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

int64_t saved_step(const std::string& path) {
  for (const auto& [key, value] : io::Safetensors(path).metadata())
    if (key == "step") return std::stoll(value);
  return -1;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

TEST_CASE("cli output: a full disk is a failure that is told, of every command") {
  const File saved;
  REQUIRE(anneal_run(fmt::format("{} --steps 2 --save {}", kSmall, saved.path())).code == 0);
  const std::string from = " --resume " + saved.path();
  for (const std::string& command : std::vector<std::string>{
           "help", "--version", "graph --help", "graph mlp", "graph mlp --json", "explain exp",
           "explain softmax --json", "explain mlp", "kernels mlp", "kernels mlp --json",
           "run nanogpt" + from, "sample --tokens 20" + from, "sample --json --tokens 20" + from,
           fmt::format("{} --steps 3", kSmall), fmt::format("{} --steps 3 --json", kSmall),
           "bench compile --case nothing --json"}) {
    CAPTURE(command);
    const Run run = anneal_run(command + " 2>&1 >/dev/full");
    CHECK(run.code == 1);
    CHECK(contains(run.output, "error: cannot write the output: No space left on device\n"));
  }
}

TEST_CASE("cli output: a full disk ends a training run at once, and what was learned is saved") {
  const File saved;
  const Run run = anneal_run(
      fmt::format("{} --steps 1000000 --json --save {} 2>&1 >/dev/full", kSmall, saved.path()));
  CHECK(run.code == 1);
  CHECK(saved_step(saved.path()) == 1);
}

TEST_CASE("cli output: a reader that goes away ends a training run within a step") {
  // Also where it would not write for a long while. The reader stays until a step is reported.
  struct Form {
    const char* options;
    int lines;
  };
  for (const auto& [form, lines] : {Form{"--json", 1}, Form{"--plain --log-every 1000000", 3}}) {
    CAPTURE(form);
    const File saved;
    const Clock::time_point start = Clock::now();
    const Run run =
        shell(fmt::format("bash -c \"'{}' {} --steps 1000000000 {} --save {} | head -{}; echo "
                          "\\${{PIPESTATUS[0]}}\" 2>&1",
                          program_path(), kSmall, form, saved.path(), lines));
    CHECK(run.output.ends_with("\n141\n"));
    CHECK_FALSE(contains(run.output, "error"));
    CHECK(seconds_since(start) < 60);
    CHECK(saved_step(saved.path()) >= 1);
    if (form == std::string_view("--json")) CHECK(saved_step(saved.path()) < 2000);
  }
}

TEST_CASE("cli output: with --json a failure ends the stream as an object") {
  const Run usage = with_errors("train nanogtp --json");
  CHECK(usage.code == 2);
  const Json wrong = Json::parse(usage.output);
  CHECK(wrong["error"] == "there is no model 'nanogtp'");
  CHECK(contains(wrong["hint"].get<std::string>(), "did you mean nanogpt?"));
  CHECK(wrong["exit"] == 2);

  // Standard output alone: a slow machine says on the other one what it compiles.
  const Run late = anneal_run("train mlp --data digits --steps 9 --lr 1e30 --json");
  CHECK(late.code == 1);
  std::istringstream lines(late.output);
  std::string line, last;
  int steps = 0;
  while (std::getline(lines, line)) {
    if (Json::parse(line).contains("counters")) ++steps;
    last = line;
  }
  CHECK(steps == 1);
  const Json failure = Json::parse(last);
  CHECK(contains(failure["error"].get<std::string>(), "the loss is nan at step 2"));
  CHECK(contains(failure["hint"].get<std::string>(), "a smaller --lr"));
  CHECK(failure["exit"] == 1);

  for (const char* command :
       {"graph mpl --json", "explain expp --json", "kernels mlp --json --kernel x",
        "run mlp --json --resume /nonexistent", "bench gem --json", "sample --json",
        "nothing --json", "doctor --json --nonsense"}) {
    CAPTURE(command);
    const Run run = with_errors(command);
    const Json object = Json::parse(run.output);
    CHECK(object["exit"] == run.code);
    CHECK_FALSE(object["error"].get<std::string>().empty());
    CHECK_FALSE(object["hint"].get<std::string>().empty());
  }
}

TEST_CASE("cli output: plain training writes a line every ten seconds, whatever --log-every says") {
  ChildProcess child(words_of("train mlp --data digits --steps 1000000 --log-every 1000000"));
  std::optional<std::string> line;
  do line = child.line();
  while (line && !line->starts_with("step     1 "));
  REQUIRE(line);
  for (int i = 0; i < 2; ++i) {
    const Clock::time_point start = Clock::now();
    REQUIRE(child.line());
    const double seconds = seconds_since(start);
    CHECK(seconds > 5);
    CHECK(seconds < 11);
  }
}

TEST_CASE("cli output: whoever waits for a large model is told what is being done") {
  const File steps;
  const Run run = shell(fmt::format(
      "ANNEAL_CACHE=0 '{}' train nanogpt --layers 64 --width 64 --heads 1 --block 32 --batch 1 "
      "--steps 1 --json 2>&1 >{}",
      program_path(), steps.path()));
  CHECK(run.code == 0);
  const std::string first = io::load_text(steps.path());
  const double ms = Json::parse(first.substr(0, first.find('\n')))["ms"];
  CAPTURE(ms);
  const bool told = contains(run.output, "compiling the training step …\n");
  if (ms > 2200) CHECK(told);
  if (ms < 2000) CHECK_FALSE(told);
  CHECK_FALSE(contains(run.output, "\x1b"));
  // A model that is small is there at once, but on a machine that is busy.
  const Clock::time_point start = Clock::now();
  const std::string said = anneal_run(fmt::format("{} --steps 1 2>&1 >/dev/null", kSmall)).output;
  if (seconds_since(start) < 2) CHECK(said == "");
}

TEST_CASE("cli output: sample writes each character when it is made") {
  const File saved;
  REQUIRE(anneal_run(fmt::format("{} --steps 2 --save {}", kSmall, saved.path())).code == 0);
  // More than could be made at once: what comes early comes before the end.
  ChildProcess child(words_of(fmt::format("sample --tokens 16000000 --resume {}", saved.path())));
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < 3; ++i) REQUIRE(child.line());
  CHECK(seconds_since(start) < 30);
}

TEST_CASE("cli output: nohup keeps a closed terminal from ending a run") {
  ChildProcess child(
      {"/bin/sh", "-c",
       fmt::format("trap '' HUP; exec '{}' {} --steps 1000000 --json", program_path(), kSmall)});
  for (int i = 0; i < 3; ++i) REQUIRE(child.line());
  child.signal(SIGHUP);
  for (int i = 0; i < 100; ++i) REQUIRE(child.line());
  child.signal(SIGTERM);
  while (child.line()) {}
  CHECK(child.wait() == 130);
}
