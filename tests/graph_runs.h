// A program run in several ways, each compared with the interpreter, with passes and
// transformations left out: every way must give the same.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph_check.h"
#include "runtime/device/device.h"
#include "schedule_runner.h"

namespace anneal {

struct Toggle {
  std::vector<std::string> names = {};  // of passes and transformations to leave out
  // What is for large sizes is for small ones, too: the scheduler's, or as if memory was scarce.
  double threshold_scale = 1;
  int64_t most_operations = 0;  // of one kernel; 0: as many as usual

  std::string text() const;
};

// None left out, each one, all.
const std::vector<Toggle>& schedule_toggles();
const std::vector<Toggle>& lower_toggles();

// A program and what is expected of it, for every binding of its sizes. Each check says what is
// wrong, also where an exception was thrown; empty when nothing is.
class GraphRuns {
 public:
  explicit GraphRuns(std::span<const NodeRef> roots);

  // Its kernels by what their bodies mean.
  std::string check_bodies(const Toggle& schedule) const;
  // By what their programs mean, one instruction at a time.
  std::string check_programs(const Toggle& schedule, const Toggle& lower) const;
  // By the machine code of their programs, between guards that nothing may touch.
  std::string check_code(const Toggle& schedule, const Toggle& lower) const;
  // As a device runs them.
  std::string check_on(Device& device, const Toggle& schedule) const;

 private:
  std::string check(const Schedule& schedule, const PartRunner& run_part) const;

  struct Case {
    SizeBinding binding;
    GraphContents contents;
    Expectation expected;
  };

  std::vector<NodeRef> roots_, simplified_;
  mutable std::vector<Case> cases_;  // contents are drawn when first needed
  std::string failure_;              // before anything could be run
};

}  // namespace anneal
