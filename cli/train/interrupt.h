// Ctrl-C, SIGTERM and a terminal that is closed, as a question the training loop asks after each
// step. A second one ends the program at once.
#pragma once

namespace anneal::cli {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static bool requested();
};

}  // namespace anneal::cli
