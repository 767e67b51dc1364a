// What the system says about the machine: for people to read, for benchmarks to note, for limits to
// follow. Nothing here decides anything.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace anneal {

struct CacheLevel {
  int level = 0;
  std::string kind;  // "data", "instruction" or "unified"
  int64_t bytes = 0;
  int shared_by = 1;  // cores
};

// Empty or zero where the system does not say.
struct Machine {
  std::string cpu;
  int cores = 1;                      // that this process may use
  std::vector<std::string> features;  // of the instruction set, those that matter for numbers
  int vector_bits = 0;
  std::vector<CacheLevel> caches;
  int64_t memory_bytes = 0, free_bytes = 0;
  std::string huge_pages;  // "always", "madvise" or "never"
  double load = 0;         // processes that ran or waited to, over the last minute
};

Machine describe_machine();

// What this process could allocate now: free memory of the machine, or what is left of the limit of
// the group it is in, the less of the two. The largest number where the system does not say.
int64_t available_memory_bytes();

}  // namespace anneal
