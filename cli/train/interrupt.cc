#include "cli/train/interrupt.h"

#include <array>
#include <csignal>

namespace anneal::cli {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

volatile std::sig_atomic_t interrupted = 0;

extern "C" void on_interrupt(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

Interrupt::Interrupt() {
  interrupted = 0;
  // What is ignored stays so: nohup says that closing the terminal is to end nothing.
  for (int number : kSignals)
    if (std::signal(number, on_interrupt) == SIG_IGN) std::signal(number, SIG_IGN);
}

Interrupt::~Interrupt() {
  for (int number : kSignals)
    if (std::signal(number, SIG_DFL) == SIG_IGN) std::signal(number, SIG_IGN);
}

bool Interrupt::requested() { return interrupted != 0; }

}  // namespace anneal::cli
