// Index expressions made ready to be evaluated for one binding after another, without a graph:
// what a schedule asks of its sizes whenever it runs. Must not simplify anything.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace anneal {

class IndexProgram {
 public:
  IndexProgram() = default;
  // `variables` are numbered by their place; those of another graph stand for equal ones. The
  // expressions need no other variables.
  IndexProgram(std::span<const NodeRef> expressions, std::span<const NodeRef> variables);

  // The integers the expressions stand for. Division by zero and overflow are errors of the user.
  std::vector<int64_t> evaluate(std::span<const int64_t> values) const;

  size_t size() const { return results_.size(); }
  bool is_static() const { return !reads_variables_; }

 private:
  struct Step {
    Op op;
    DType dtype;
    uint64_t constant = 0;      // payload of a constant; number of a variable
    uint32_t operands[3] = {};  // steps before this one
    uint32_t operand_count = 0;
  };
  std::vector<Step> steps_;
  std::vector<uint32_t> results_;
  bool reads_variables_ = false;
};

// The Variables that expressions (or any nodes) read, each once, ordered by key.
std::vector<NodeRef> variables_of(std::span<const NodeRef> nodes);

// Whether two Variables, perhaps of two graphs, have one name and one range.
bool same_variable(NodeRef a, NodeRef b);

}  // namespace anneal
