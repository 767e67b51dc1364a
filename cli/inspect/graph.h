// anneal graph PROGRAM: the whole step as one graph, each node with its phase and its origin.
#pragma once

#include <string>

namespace anneal::cli {

struct GraphOptions {
  std::string program;
  bool forward = false;  // only what the loss needs
  bool json = false;
};

void graph(const GraphOptions& options);

}  // namespace anneal::cli
