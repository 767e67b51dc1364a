// What can run programs, by name: the interpreter, and an executor for each device. Which of them
// is current is decided here and nowhere else.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/execute/contents.h"
#include "runtime/execute/counters.h"
#include "target/capabilities.h"

namespace anneal {

// One run of a program, in the current graph.
struct Request {
  std::vector<NodeRef> roots;  // whose values are wanted
  // Assign nodes to store, after every read; no target twice. Others are the value they were to
  // store.
  std::vector<NodeRef> assigns;
  const Contents* contents = nullptr;
};

class CanonicalProgram;

// A program made ready to run again and again, without the graph it came from.
class Plan {
 public:
  virtual ~Plan() = default;
  // `slots` and `sizes` are those of the program's slots() and variables(). Values are written to
  // `results`, each memory of its own; assigned slots change after all reads.
  virtual void run(std::span<const std::shared_ptr<Storage>> slots, std::span<const int64_t> sizes,
                   std::span<const std::shared_ptr<Storage>> results) = 0;
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Memory with the values of the roots. Memory that is only read may be a result as it is.
  virtual std::vector<std::shared_ptr<Storage>> run(const Request& request) = 0;
  // Of a program without draws, all of whose assignments take effect as they stand.
  virtual std::unique_ptr<Plan> plan(const CanonicalProgram& program) = 0;
  virtual RuntimeCounters counters() const { return {}; }
  // What kernels may use of what is there; null: it makes no kernels.
  virtual const Capabilities* capabilities() const { return nullptr; }
};

std::unique_ptr<Evaluator> make_interpreter();

// The current device's, of this thread. Made when it is first needed.
Evaluator& current_evaluator();

// How often this thread has computed values so far, on any device.
int64_t evaluations();

// The devices that read a setting when they are opened: "adapter", "matmul-precision" or
// "memory-budget".
std::vector<std::string> devices_with_setting(std::string_view setting);

// Another device to choose from; the name must be new. For tests and for programs that bring one.
void add_device(std::string_view name, std::function<std::unique_ptr<Evaluator>()> make);

}  // namespace anneal
