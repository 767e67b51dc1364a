#include "bench_peers.h"

#include <charconv>
#include <filesystem>

#include <fmt/format.h>

namespace anneal::cli {
namespace {

constexpr double kPatience = 120;  // the slowest answer is the first: it allocates and warms up

// Threads for every library that might count them in its own way, an OpenBLAS that shares OpenMP's,
// where there is one, and memory that malloc keeps: fresh pages cost more than most of what is
// measured here.
LineProcess::Settings settings(int threads) {
  const std::string count = std::to_string(threads);
  return {{"OMP_NUM_THREADS", count},
          {"OPENBLAS_NUM_THREADS", count},
          {"LD_LIBRARY_PATH", ANNEAL_OPENBLAS_FOLDER},
          {"MALLOC_MMAP_MAX_", "0"},
          {"MALLOC_TRIM_THRESHOLD_", "17179869184"},
          {"MALLOC_TOP_PAD_", "268435456"}};
}

PeerTime parse_answer(const std::string& answer) {
  constexpr std::string_view kTime = "time ", kNone = "none ";
  if (answer.starts_with(kNone)) return {.reason = answer.substr(kNone.size())};
  if (answer.starts_with(kTime)) {
    const char *begin = answer.data() + kTime.size(), *end = answer.data() + answer.size();
    PeerTime result;
    const auto [rest, error] = std::from_chars(begin, end, result.seconds);
    if (error == std::errc() && rest != end && result.seconds > 0) {
      result.name.assign(rest + 1, end);
      return result;
    }
  }
  return {.reason = fmt::format("it answered '{}'", answer)};
}

}  // namespace

void Peers::start_libraries() {
  const std::filesystem::path program = program_folder() / "anneal_bench_peers";
  libraries_ = std::make_unique<LineProcess>(std::vector{program.string()}, settings(threads_));
}

// The first Python that has PyTorch: distributions give it to their own, which need not be the one
// found first.
void Peers::start_pytorch() {
  const std::string script = (program_folder() / "anneal_bench_torch.py").string();
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    pytorch_ =
        std::make_unique<LineProcess>(std::vector<std::string>{python, script}, settings(threads_));
    const std::optional<std::string> answer = pytorch_->ask("0 rows add 1 1", kPatience);
    if (answer && !parse_answer(*answer).name.empty()) return;
  }
}

PeerTime Peers::time(PeerKind kind, std::string_view wanted, double seconds) {
  const bool libraries = kind == PeerKind::Libraries;
  if (libraries && !libraries_) start_libraries();
  if (!libraries && !pytorch_) start_pytorch();
  LineProcess& process = libraries ? *libraries_ : *pytorch_;
  const std::optional<std::string> answer =
      process.ask(fmt::format("{:.6f} {}", seconds, wanted), seconds + kPatience);
  PeerTime result = answer ? parse_answer(*answer) : PeerTime{.reason = "it does not run"};
  if (result.name.empty())
    result.reason = fmt::format("no {}: {}; ./dev bench installs what is needed",
                                libraries ? "OpenBLAS or oneDNN" : "PyTorch", result.reason);
  return result;
}

}  // namespace anneal::cli
