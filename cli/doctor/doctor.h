// anneal doctor: what this machine is and how fast, what anneal finds on it, and what to repair.
#pragma once

#include <string>

namespace anneal::cli {

struct DoctorOptions {
  std::string adapter;  // the only GPU to look at; empty: all of them
  bool json = false;
};

// False when something does not work; what is merely slow is no failure.
bool doctor(const DoctorOptions& options);

}  // namespace anneal::cli
