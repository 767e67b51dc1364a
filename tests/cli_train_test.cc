// anneal train, run and sample as a user meets them: runs that learn, stop, go on and fail.
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <map>
#include <random>
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

// A folder of this test's own.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / fmt::format("anneal-train-{}", getpid())) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

// A model that is compiled in no time.
constexpr const char* kSmall = "train nanogpt --layers 1 --width 16 --heads 2 --block 8 --batch 2";

struct Steps {
  std::map<int64_t, double> losses;
  std::vector<Json> lines;
  int code = -1;
};

Steps steps_of(const std::string& arguments) {
  const Run run = anneal_run(arguments + " --json");
  Steps steps;
  steps.code = run.code;
  std::istringstream text(run.output);
  for (std::string line; std::getline(text, line);) {
    steps.lines.push_back(Json::parse(line));
    const Json& json = steps.lines.back();
    if (json.contains("counters")) steps.losses[json["step"]] = json["loss"];
  }
  return steps;
}

std::vector<std::string> words_of(const std::string& arguments) {
  std::vector<std::string> words{program_path()};
  std::istringstream text(arguments);
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

}  // namespace

TEST_CASE("cli train: nanogpt builds, compiles and allocates nothing from step 2 on") {
  const Steps steps = steps_of("train nanogpt --steps 4");
  REQUIRE(steps.code == 0);
  REQUIRE(steps.losses.size() == 4);
  CHECK(steps.lines[0]["counters"]["kernels_scheduled"].get<int>() > 0);
  for (size_t i = 1; i < 4; ++i) {
    const Json& work = steps.lines[i]["counters"];
    CAPTURE(work.dump());
    for (const char* name :
         {"nodes_built", "kernels_scheduled", "kernels_compiled", "bytes_allocated"})
      CHECK(work[name] == 0);
    CHECK(work["launches"].get<int>() > 0);
    CHECK(work["host_to_device_bytes"] == 2 * 16 * 64 * 4);
    CHECK(work["device_to_host_bytes"] == 4);
    CHECK(steps.lines[i]["tokens_per_s"].get<double>() > 0);
  }
  const Json& last = steps.lines.back();
  CHECK(last["done"] == true);
  CHECK(last["steps"] == 4);
  CHECK(last["valid_loss"].get<double>() > 0);
  CHECK(last["sample"].get<std::string>().size() > 100);
}

TEST_CASE("cli train: digits are learned") {
  struct Row {
    const char* arguments;
    double accuracy;
  };
  for (const Row& row : {Row{"train mlp --steps 150", 0.975}, Row{"train conv --steps 60", 0.95},
                         Row{"train dynmlp --steps 200", 0.97}}) {
    CAPTURE(row.arguments);
    const Steps steps = steps_of(std::string(row.arguments) + " --data digits --eval-every 50");
    REQUIRE(steps.code == 0);
    CHECK(steps.lines.back()["accuracy"].get<double>() > row.accuracy);
    CHECK(steps.lines[50]["eval"] == true);
  }
}

TEST_CASE("cli train: MNIST is learned within three epochs") {
  struct Row {
    const char* model;
    int64_t batch;
    double accuracy;
  };
  for (const Row& row : {Row{"mlp", 128, 0.975}, Row{"conv", 64, 0.985}}) {
    CAPTURE(row.model);
    const Run first = anneal_run(fmt::format("train {} --steps 0", row.model));
    if (!contains(first.output, "60000 images, 10000 to test")) {
      MESSAGE("skipped: ./dev data has not been run");
      return;
    }
    const Steps steps = steps_of(fmt::format("train {}", row.model));
    REQUIRE(steps.code == 0);
    CHECK(static_cast<int64_t>(steps.losses.size()) * row.batch <= 3 * 60000);
    const double accuracy = steps.lines.back()["accuracy"];
    MESSAGE(fmt::format("{}: {:.2f} % of MNIST's test images", row.model, 100 * accuracy));
    CHECK(accuracy >= row.accuracy);
  }
}

TEST_CASE("cli train: mixed precision keeps the loss of f32") {
  constexpr int64_t kLast = 100;  // a mean of many steps: single ones are noise
  for (const char* arguments :
       {"train mlp --data digits --width 128 --steps 300 --lr 2e-4",
        "train nanogpt --layers 2 --width 32 --heads 2 --block 16 --batch 8 --steps 200"}) {
    auto loss_of = [&](const char* dtype) {
      const Steps steps = steps_of(fmt::format("{} --dtype {}", arguments, dtype));
      REQUIRE(steps.code == 0);
      CHECK(steps.lines.back()["skipped_updates"] == 0);
      double sum = 0;
      auto step = steps.losses.end();
      for (int64_t i = 0; i < kLast; ++i) sum += (--step)->second;
      return sum / kLast;
    };
    const double exact = loss_of("f32");
    for (const char* dtype : {"bf16", "f16"}) {  // f16 with scaled losses
      const double loss = loss_of(dtype);
      MESSAGE(fmt::format("{}: {} {:.5f}, f32 {:.5f}: {:+.2f} %", arguments, dtype, loss, exact,
                          100 * (loss / exact - 1)));
      CHECK(loss != exact);
      CHECK(std::fabs(loss / exact - 1) < 0.02);
    }
  }
}

TEST_CASE("cli train: one plan serves every batch of dynmlp") {
  const Steps steps = steps_of("train dynmlp --steps 17 --data digits --batch 40 --width 32");
  REQUIRE(steps.losses.size() == 17);
  for (size_t i = 1; i < 17; ++i) {
    const Json& work = steps.lines[i]["counters"];
    CAPTURE(work.dump());
    for (const char* name : {"nodes_built", "kernels_scheduled", "kernels_compiled"})
      CHECK(work[name] == 0);
    // In the first round each size gets its temporaries.
    if (i >= 8) CHECK(work["bytes_allocated"] == 0);
  }
}

TEST_CASE("cli train: threads change no bit, seeds do") {
  for (const std::string& arguments :
       {std::string(kSmall) + " --steps 8", std::string("train mlp --data digits --steps 6"),
        std::string("train conv --data digits --steps 3")}) {
    CAPTURE(arguments);
    const Steps one = steps_of(arguments + " --threads 1"),
                two = steps_of(arguments + " --threads 2");
    CHECK(!one.losses.empty());
    CHECK(one.losses == two.losses);
    CHECK(steps_of(arguments + " --seed 2").losses != one.losses);
  }
}

TEST_CASE("cli train: a run that is killed goes on bit for bit") {
  const Folder folder;
  const std::string file = folder / "run.safetensors",
                    arguments = fmt::format("{} --steps 200 --json", kSmall);
  const std::map<int64_t, double> expected = steps_of(fmt::format("{} --steps 200", kSmall)).losses;
  REQUIRE(expected.size() == 200);

  std::mt19937 random(7);
  std::map<int64_t, double> seen;
  int went_on = 0;  // from a checkpoint
  for (int round = 0; round < 20; ++round) {
    std::string command = fmt::format("{} --save {} --save-every 1", arguments, file);
    if (fs::exists(file)) {
      command += " --resume " + file;
      ++went_on;
    }
    ChildProcess child(words_of(command));
    // Any moment: while it starts, or after some steps: between them, in one, or while a checkpoint
    // is written.
    const bool starting = round % 5 == 4;
    const auto wanted = static_cast<int>(1 + random() % 8);
    int lines = 0;
    if (starting) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 100));
      child.signal(SIGKILL);
    }
    while (std::optional<std::string> line = child.line()) {
      const Json json = Json::parse(*line);
      if (!json.contains("counters")) continue;
      const int64_t step = json["step"];
      CHECK(json["loss"].get<double>() == expected.at(step));
      seen[step] = json["loss"];
      if (++lines != wanted) continue;
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 5000));
      child.signal(SIGKILL);
    }
    child.wait();
  }
  CHECK(went_on >= 15);
  const Steps rest = steps_of(fmt::format("{} --steps 200 --resume {}", kSmall, file));
  CHECK(rest.code == 0);
  // A quick machine may have made all steps by then.
  for (const auto& [step, loss] : rest.losses) {
    CHECK(loss == expected.at(step));
    seen[step] = loss;
  }
  CHECK(seen == expected);
}

TEST_CASE("cli train: digits go on bit for bit, too") {
  const Folder folder;
  const std::string file = folder / "run.safetensors";
  for (const char* model : {"mlp", "conv", "dynmlp"}) {
    CAPTURE(model);
    const std::string arguments = fmt::format("train {} --data digits --batch 16", model);
    const std::map<int64_t, double> expected = steps_of(arguments + " --steps 8").losses;
    steps_of(fmt::format("{} --steps 5 --save {}", arguments, file));
    const Steps rest = steps_of(fmt::format("train {} --steps 8 --resume {}", model, file));
    REQUIRE(rest.losses.size() == 3);
    for (const auto& [step, loss] : rest.losses) CHECK(loss == expected.at(step));
  }
}

TEST_CASE("cli train: an interrupt ends after the step, saves and exits with 130") {
  const Folder folder;
  const std::string file = folder / "run.safetensors";
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    ChildProcess child(words_of(fmt::format("{} --steps 1000000 --json --save {}", kSmall, file)));
    for (int i = 0; i < 10; ++i) REQUIRE(child.line());
    child.signal(number);
    std::string last;
    while (std::optional<std::string> line = child.line()) last = *line;
    CHECK(child.wait() == 130);
    const Json json = Json::parse(last);
    CHECK(json["done"] == false);
    CHECK(json["saved"] == file);
    const io::Safetensors saved(file);
    const std::pair<std::string, std::string> step{"step",
                                                   std::to_string(json["steps"].get<int>())};
    CHECK(std::ranges::count(saved.metadata(), step) == 1);
  }
}

TEST_CASE("cli train: a terminal gets a bar and is left as it was") {
  if (shell("script --version 2>/dev/null").code != 0) return;  // no terminal to be had
  const std::string command = fmt::format("{} {} --steps 30", program_path(), kSmall);
  const Run run = shell(fmt::format("TERM=xterm script -qec '{}' /dev/null </dev/null", command));
  CHECK(run.code == 0);
  CHECK(contains(run.output, "30/30  loss "));
  CHECK(contains(run.output, "tokens/s"));
  CHECK(contains(run.output, "▁"));
  CHECK(contains(run.output, "\r\x1b[K"));
  CHECK_FALSE(contains(run.output, "\x1b[?"));  // no mode is changed
  CHECK(contains(run.output, "done after 30 steps"));
  const Run plain =
      shell(fmt::format("TERM=xterm script -qec '{} --plain' /dev/null </dev/null", command));
  CHECK_FALSE(contains(plain.output, "30/30"));
  CHECK(contains(plain.output, "step    30  loss"));
}

TEST_CASE("cli train: what a model learned is run and sampled") {
  const Folder folder;
  const std::string digits = folder / "mlp.safetensors", text = folder / "gpt.safetensors";
  const Steps steps =
      steps_of(fmt::format("train mlp --data digits --width 64 --steps 60 --save {}", digits));
  const Json run = json_of("run mlp --resume " + digits);
  CHECK(run["accuracy"] == steps.lines.back()["accuracy"]);
  CHECK(run["step"] == 60);

  // A text of its own, which sampling does not need.
  const std::string corpus = folder / "corpus.txt";
  std::string words;
  for (int i = 0; i < 100; ++i) words += "über die Brücke, unter der Brücke\n";
  io::save_text(corpus, words);
  steps_of(fmt::format("{} --steps 20 --data {} --save {}", kSmall, corpus, text));
  fs::remove(corpus);
  const std::string sample = fmt::format("sample --resume {} --tokens 40 --prompt die", text);
  const Json first = json_of(sample);
  CHECK(first["text"].get<std::string>().starts_with("die"));
  CHECK(json_of(sample)["text"] == first["text"]);
  CHECK(json_of(sample + " --seed 2")["text"] != first["text"]);
  CHECK(json_of(sample + " --temperature 0")["text"] ==
        json_of(sample + " --temperature 0 --seed 2")["text"]);
  CHECK(anneal_run(sample).output == first["text"].get<std::string>() + "\n");
}

TEST_CASE("cli train: a loss that is not finite names the tensor, its op and line") {
  const Folder folder;
  const std::string file = folder / "run.safetensors";
  const Run run = with_errors("train mlp --data digits --steps 9 --lr 1e30 --save " + file);
  CHECK(run.code == 1);
  CHECK(contains(run.output,
                 "the loss is nan at step 2: the first tensor that is not finite is "
                 "f32[128, 512, 512], made by mul of linear at mlp.cc:"));
  CHECK(contains(run.output, "in \"middle\""));
  CHECK(contains(run.output, "a smaller --lr"));
  CHECK_FALSE(fs::exists(file));
  const Run gpt = with_errors(std::string(kSmall) + " --steps 9 --lr 1e30");
  CHECK(gpt.code == 1);
  CHECK(contains(gpt.output, "the first tensor that is not finite is f32["));
  const Run symbolic = with_errors("train dynmlp --data digits --steps 9 --lr 1e30");
  CHECK(contains(symbolic.output, "is not finite is f32[batch, 512"));
}

TEST_CASE("cli train: mistakes are explained, and nothing is overwritten") {
  const Folder folder;
  const std::string good = folder / "good.safetensors", cut = folder / "cut.safetensors",
                    foreign = folder / "foreign.safetensors", empty = folder / "empty.txt",
                    small = folder / "small.txt", full = folder / "full.safetensors",
                    huge = folder / "huge.safetensors", partial = folder / "partial.safetensors";
  REQUIRE(anneal_run(fmt::format("{} --steps 2 --save {}", kSmall, good)).code == 0);
  const std::string bytes = io::load_text(good);
  io::save_text(cut, bytes.substr(0, bytes.size() / 2));
  io::save_safetensors(foreign, {{"x", tensor({1.0f})}});
  const io::Safetensors whole(good);
  io::Metadata huge_sizes = whole.metadata();
  for (auto& [key, value] : huge_sizes)
    if (key == "width") value = "1000000000000";
  io::save_safetensors(huge, whole.state(), huge_sizes);
  io::save_safetensors(partial, {whole.state()[0]}, whole.metadata());
  io::save_text(empty, "");
  io::save_text(small, "a few words");
  io::save_text(full, "what was there before");

  struct Row {
    std::string arguments;
    int code;
    std::string says;
  };
  for (const Row& row : std::vector<Row>{
           {"train nanogpt --resume " + cut, 1, "it is cut off"},
           {"train nanogpt --resume " + foreign, 1, "is no checkpoint of a training run"},
           {"train nanogpt --resume " + huge, 1, "width is \"1000000000000\""},
           {"train nanogpt --resume " + partial, 1, "the checkpoint has no vocabulary"},
           {"train nanogpt --resume " + folder / "nothing", 1, "there is no such file"},
           {"train mlp --resume " + good, 1, "is a checkpoint of nanogpt, not of mlp"},
           {"train nanogpt --width 32 --resume " + good, 1, "has width 16, --width says 32"},
           {"run nanogpt --layers 2 --resume " + good, 1, "has layers 1, --layers says 2"},
           {"train nanogpt --data " + folder / "", 1, "is a directory"},
           {"train nanogpt --data " + empty, 1, "is empty"},
           {"train nanogpt --data " + small, 1, "the text has 11 characters"},
           {"train nanogpt --data " + folder / "nothing", 1, "there is no such file"},
           {"train mlp --data " + small, 1, "is not a folder"},
           {"train mlp --data " + folder / "", 1, "there is no train-images-idx3-ubyte"},
           {"train mlp --steps -5", 2, "--steps must be from 0 to 1099511627776, got -5"},
           {"train mlp --steps many", 2, "--steps must be a whole number"},
           {"train mlp --steps 1.5", 2,
            "--steps must be a whole number from 0 to 1099511627776, got 1.5"},
           {"train mlp --steps 1e300", 2, "--steps must be a whole number"},
           {"train mlp --lr nan", 2, "--lr must be a number above 0, got nan"},
           {"train mlp --lr inf", 2, "--lr must be a number above 0, got inf"},
           {"train mlp --lr 0", 2, "--lr must be above 0, got 0"},
           {"train mlp --lr -1", 2, "--lr must be above 0, got -1"},
           {"train mlp --batch 0", 2, "--batch must be from 1 to 1048576, got 0"},
           {"train mlp --dtype i32", 2, "there is no dtype to compute in 'i32'"},
           {"train mlp --dtype bf61", 2, "did you mean bf16? there are: f32, bf16, f16"},
           {"train nanogpt --dtype bf16 --resume " + good, 1, "computes in f32, --dtype says bf16"},
           {"train nanogpt --heads 3", 2, "a width of 128 does not divide into 3 heads"},
           {"train mlp --heads 3", 2, "mlp has no --heads"},
           {"train nanogtp", 2, "did you mean nanogpt? there are: mlp, conv, dynmlp, nanogpt"},
           {"train", 2, "MODEL is required"},
           {"train mlp --device nothing", 2, "there is no device 'nothing'"},
           {"train mlp --data digits --save " + folder / "none/x", 1, "cannot write"},
           {"train mlp --data digits --save " + folder / "", 1, "it is a directory"},
           {"sample --resume " + cut, 1, "it is cut off"},
           {"sample --resume " + good + " --prompt \\#", 1, "does not know the character '#'"},
           {"sample --resume " + good + " --temperature -1", 2,
            "--temperature must be from 0 to 100, got -1"},
           {"sample --resume " + good + " --prompt ''", 2, "the prompt is empty"},
           {"sample", 2, "--resume is required"},
           {"run mpl", 2, "did you mean mlp?"},
       }) {
    CAPTURE(row.arguments);
    const bool trains = row.arguments.starts_with("train ") && !contains(row.arguments, "--save");
    const Run run = with_errors(row.arguments + (trains ? " --save " + full : ""));
    CHECK(run.code == row.code);
    CHECK(contains(run.output, "error: "));
    CHECK(contains(run.output, "hint: "));
    CHECK_MESSAGE(contains(run.output, row.says), run.output);
  }
  CHECK(io::load_text(full) == "what was there before");
  CHECK(io::load_text(good) == bytes);
}

// A disk that is full shows as a limit on files does (the thread sanitizer needs half of it).
TEST_CASE("cli train: without room for a checkpoint the old file stays") {
  const Folder folder;
  const std::string full = folder / "full.safetensors";
  io::save_text(full, "what was there before");
  const Run no_room = shell(fmt::format(
      "bash -c 'ulimit -f 1024; \"{}\" train mlp --data digits --steps 2 --save {} 2>&1'",
      program_path(), full));
  CHECK(no_room.code == 1);
  CHECK(contains(no_room.output, "cannot write"));
  CHECK(io::load_text(full) == "what was there before");
}

TEST_CASE("cli train: a disk that is full ends the run and leaves the last checkpoint") {
  const Folder folder;
  const std::string disk = folder / "disk", kept = folder / "kept", expected = folder / "expected",
                    file = disk + "/run.safetensors";
  fs::create_directory(disk);
  // On a disk of `bytes` that no one else sees; `then` is for what is to be known of it.
  auto on_disk = [&](uintmax_t bytes, const std::string& command, const std::string& then) {
    return shell(
        fmt::format("unshare $([ $(id -u) = 0 ] && echo -m || echo -rm) sh -c 'mount -t tmpfs -o "
                    "size={} tmpfs {} || exit 77; {}; "
                    "code=$?; {}; exit $code' 2>&1",
                    bytes, disk, command, then));
  };
  if (on_disk(1 << 20, "true", "true").code != 0) {
    MESSAGE("skipped: no disk can be mounted here");
    return;
  }
  REQUIRE(anneal_run(fmt::format("{} --steps 2 --save {}", kSmall, expected)).code == 0);
  const uintmax_t size = fs::file_size(expected);
  const std::string command =
      fmt::format("{} {} --steps 9 --save-every 2 --save {}", program_path(), kSmall, file);

  // There is room for one checkpoint, and none to write the next beside it.
  const Run filled = on_disk(size * 3 / 2, command,
                             fmt::format("cp {} {}; echo files: $(ls -A {})", file, kept, disk));
  CAPTURE(filled.output);
  CHECK(filled.code == 1);
  CHECK(contains(filled.output, "cannot write"));
  CHECK(contains(filled.output, "No space left on device"));
  CHECK(contains(filled.output, "files: run.safetensors\n"));
  CHECK(io::load_text(kept) == io::load_text(expected));

  // There never was any room: nothing is trained in vain.
  const Run full = on_disk(size / 2, command, fmt::format("echo files: $(ls -A {})", disk));
  CAPTURE(full.output);
  CHECK(full.code == 1);
  CHECK(contains(full.output, "a checkpoint needs"));
  CHECK(contains(full.output, "files:\n"));
  CHECK_FALSE(contains(full.output, "step     1"));
}
