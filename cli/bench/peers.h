// The peers of the benchmarks: other libraries, timed by programs of their own beside this one.
// Nothing of them is linked here.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cli/bench/line_process.h"

namespace anneal::cli {

struct PeerTime {
  double seconds = 0;
  std::string name = {};    // of the library that was fastest; empty: none could do it
  std::string reason = {};  // why there is none
};

enum class PeerKind { Libraries, PyTorch };
enum class PeerDevice { Cpu, Cuda };  // of PyTorch; the libraries know the CPU only

// Peers that work with a number of threads; each is started when it is first asked.
class Peers {
 public:
  Peers(int threads, PeerDevice device) : threads_(threads), device_(device) {}

  // The fastest run in about `seconds`; what a case says is in bench/peers/peer.h, and for PyTorch
  // in torch_rows.py.
  PeerTime time(PeerKind kind, std::string_view wanted, double seconds);

 private:
  void start_libraries();
  void start_pytorch();
  std::string pytorch_line(std::string_view wanted, double seconds) const;

  int threads_;
  PeerDevice device_;
  std::unique_ptr<LineProcess> libraries_, pytorch_;
};

}  // namespace anneal::cli
