// A program freed from what does not matter to compiling it: which buffers it reads, when its nodes
// were made, marks for gradients. Programs that do the same with some numbers are the same words,
// in any process; the numbers stand beside them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/key.h"
#include "ir/node_map.h"
#include "runtime/capture/number_inputs.h"
#include "runtime/execute/evaluator.h"

namespace anneal {

class CanonicalProgram {
 public:
  // Buffers, and nodes whose value is known, become slots, numbered by where a walk from the roots
  // first meets them.
  explicit CanonicalProgram(const Request& request);

  // Equal, with equal numbers, exactly when what is built from them is.
  const std::vector<uint32_t>& words() const { return words_; }
  const Key& key() const { return key_; }
  Key exact_key() const;  // with the numbers
  // Constants that are data, one for each use: uses that share a number now may not the next time.
  std::span<const Scalar> numbers() const { return numbers_; }
  // Whether rules look for that number, so that code made for it is much better than code that
  // reads it: a choice of 0, an infinity in a mask, the exponent 2.
  bool is_sought(size_t number) const { return sought_[number]; }

  // Nodes of the request's graph.
  std::span<const NodeRef> slots() const { return slots_; }
  // The contents of the slots that follow: first numbers of draws and seeds, so that drawing again
  // is the same program, then the numbers that are inputs.
  std::vector<std::shared_ptr<Storage>> extra_slots(const NumberInputs& inputs) const;
  std::span<const NodeRef> variables() const { return variables_; }
  // Assignments to a buffer that is read from elsewhere in this run: their values follow those of
  // the request's roots, and storing them is the caller's.
  std::span<const NodeRef> late_assigns() const { return late_assigns_; }

  struct Built {
    std::vector<NodeRef> values;   // of the request's roots, then of the late assignments
    std::vector<NodeRef> assigns;  // the other ones
    std::vector<NodeRef> variables;
    std::vector<NodeRef> nodes;  // see image()
  };
  // Makes the program in a graph; slot i is the buffer "" #i.
  Built build(Graph& graph, const NumberInputs& inputs) const;
  Built build(Graph& graph) const { return build(graph, NumberInputs(numbers_)); }
  // What a node of the request became; null for a number, which is another one at each use.
  NodeRef image(const Built& built, NodeRef node) const;

 private:
  enum class Kind : uint8_t { Plain, Slot, PassThrough, Draw, Number };
  struct Step {
    NodeRef node;
    Kind kind;
    uint32_t sources = 0, count = 0;  // among the source steps
  };
  class Builder;

  Kind kind_of(NodeRef node) const;
  static std::span<const NodeRef> children(const Step& step);
  void walk(NodeRef root);
  void finish(Step step);
  void add_arg(NodeRef node);
  void add_text(std::string_view text);
  void add_long(uint64_t word);
  // The number of a node's step; a number gets one of its own for this use.
  uint32_t use(NodeRef node, NodeRef user = nullptr, size_t index = 0);
  uint32_t add_step(Step step, std::span<const uint32_t> sources);

  const Contents& contents_;
  NodeMap<char> stores_;  // assignments that take effect as they stand
  NodeMap<uint32_t> step_of_;
  std::vector<Step> steps_;
  std::vector<uint32_t> source_steps_, root_steps_;  // of steps; of values, then assignments
  std::vector<NodeRef> values_, assigns_, late_assigns_, slots_, variables_;
  std::vector<uint32_t> words_, numbers_of_draws_;
  std::vector<Scalar> numbers_;
  std::vector<bool> sought_;  // by number
  Key key_;
};

}  // namespace anneal
