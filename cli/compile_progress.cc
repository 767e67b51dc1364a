#include "cli/compile_progress.h"

#include <chrono>
#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include <anneal/progress.h>

#include "cli/busy.h"

namespace anneal::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLong = std::chrono::seconds(2);
constexpr auto kBetween = std::chrono::milliseconds(100);

class Line {
 public:
  void show(const CompileProgress& progress) {
    const Clock::time_point now = Clock::now();
    if (progress.stage == "schedule" && !compiling_) {
      compiling_ = true;
      begun_ = now;
    }
    if (!compiling_) return;  // a kernel by itself
    if (Busy::set_detail(progress.stage == "done" ? "" : text(progress))) {
      compiling_ = progress.stage != "done";
      return;
    }
    if (progress.stage == "done") {
      if (shown_) put("");
      compiling_ = shown_ = false;
    } else if (now - begun_ >= kLong && (!shown_ || now - drawn_ >= kBetween)) {
      put(text(progress));
      shown_ = true;
      drawn_ = now;
    }
  }

 private:
  static std::string text(const CompileProgress& progress) {
    const std::string_view stage = progress.stage;
    const std::string_view verb = stage == "schedule" ? "scheduling"
                                  : stage == "lower"  ? "planning"
                                                      : "compiling";
    if (progress.total == 0) return fmt::format("{} kernels", verb);
    return fmt::format("{} kernels: {} of {}", verb, progress.done, progress.total);
  }

  static void put(const std::string& text) {
    fmt::print(stderr, "\r\x1b[K{}", text);
    std::fflush(stderr);
  }

  bool compiling_ = false, shown_ = false;
  Clock::time_point begun_, drawn_;
};

}  // namespace

CompileProgressLine::CompileProgressLine() {
  if (isatty(fileno(stderr)) == 0) return;
  on_compile_progress(
      [line = Line()](const CompileProgress& progress) mutable { line.show(progress); });
}

CompileProgressLine::~CompileProgressLine() { on_compile_progress({}); }

}  // namespace anneal::cli
