// The tests' main program. ANNEAL_DEVICE may also name "reference", which runs schedules one scalar
// at a time, and "checked", which compares every kernel of the CPU with it.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "reference_device.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/execute/executor.h"

int main(int count, char** arguments) {
  anneal::add_device("reference", [] {
    return std::make_unique<anneal::Executor>(anneal::make_reference_device());
  });
  anneal::add_device("checked", [] {
    return std::make_unique<anneal::Executor>(
        anneal::make_checked_device(anneal::make_cpu_device()));
  });
  return doctest::Context(count, arguments).run();
}
