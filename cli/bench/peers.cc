#include "cli/bench/peers.h"

#include <charconv>
#include <filesystem>

#include <fmt/format.h>

namespace anneal::cli {
namespace {

constexpr double kPatience = 120;  // the slowest answer is the first: it allocates and warms up

// Threads for every library that might count them in its own way, and memory that malloc keeps:
// fresh pages cost more than most of what is measured here. On a CPU an OpenBLAS that shares
// OpenMP's threads, where there is one; CUDA's libraries may be where the caller's path says.
LineProcess::Settings settings(int threads, PeerDevice device) {
  const std::string count = std::to_string(threads);
  LineProcess::Settings result{{"OMP_NUM_THREADS", count},
                               {"OPENBLAS_NUM_THREADS", count},
                               {"MALLOC_MMAP_MAX_", "0"},
                               {"MALLOC_TRIM_THRESHOLD_", "17179869184"},
                               {"MALLOC_TOP_PAD_", "268435456"}};
  if (device == PeerDevice::Cpu) result.emplace_back("LD_LIBRARY_PATH", ANNEAL_OPENBLAS_FOLDER);
  return result;
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

std::string missing(PeerKind kind, PeerDevice device, std::string_view reason) {
  if (kind == PeerKind::PyTorch && device == PeerDevice::Cuda)
    return fmt::format("no PyTorch on a GPU: {}; python3 needs one that was built for CUDA",
                       reason);
  return fmt::format("no {}: {}; ./dev bench installs what is needed",
                     kind == PeerKind::Libraries ? "OpenBLAS or oneDNN" : "PyTorch", reason);
}

}  // namespace

void Peers::start_libraries() {
  const std::filesystem::path program = program_folder() / "anneal_bench_peers";
  libraries_ = std::make_unique<LineProcess>(std::vector{program.string()},
                                             settings(threads_, PeerDevice::Cpu));
}

std::string Peers::pytorch_line(std::string_view wanted, double seconds) const {
  return fmt::format("{:.6f} {} {}", seconds, device_ == PeerDevice::Cuda ? "cuda" : "cpu", wanted);
}

// The first Python that has PyTorch for the device: distributions give it to their own, which need
// not be the one found first.
void Peers::start_pytorch() {
  const std::string script = (program_folder() / "anneal_bench_torch.py").string();
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    pytorch_ = std::make_unique<LineProcess>(std::vector<std::string>{python, script},
                                             settings(threads_, device_));
    const std::optional<std::string> answer =
        pytorch_->ask(pytorch_line("rows add 1 1", 0), kPatience);
    if (answer && !parse_answer(*answer).name.empty()) return;
  }
}

PeerTime Peers::time(PeerKind kind, std::string_view wanted, double seconds) {
  const bool libraries = kind == PeerKind::Libraries;
  if (libraries && !libraries_) start_libraries();
  if (!libraries && !pytorch_) start_pytorch();
  LineProcess& process = libraries ? *libraries_ : *pytorch_;
  const std::string line =
      libraries ? fmt::format("{:.6f} {}", seconds, wanted) : pytorch_line(wanted, seconds);
  const std::optional<std::string> answer = process.ask(line, seconds + kPatience);
  PeerTime result = answer ? parse_answer(*answer) : PeerTime{.reason = "it does not run"};
  if (result.name.empty()) result.reason = missing(kind, device_, result.reason);
  return result;
}

}  // namespace anneal::cli
