// A program freed from what does not matter to compiling it: which buffers it reads, when its nodes
// were made, marks for gradients. Programs that do the same are the same words, in any process.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/key.h"
#include "ir/node_map.h"
#include "runtime/evaluator.h"

namespace anneal {

class CanonicalProgram {
 public:
  // Buffers, and nodes whose value is known, become slots, numbered by where a walk from the roots
  // first meets them.
  explicit CanonicalProgram(const Request& request);

  // Equal exactly when what is built from them is.
  const std::vector<uint32_t>& words() const { return words_; }
  const Key& key() const { return key_; }

  // Nodes of the request's graph.
  std::span<const NodeRef> slots() const { return slots_; }
  // The contents of one slot more, unless there are none: numbers of draws and seeds, so that
  // drawing again is the same program.
  std::span<const uint32_t> numbers() const { return numbers_of_draws_; }
  std::span<const NodeRef> variables() const { return variables_; }
  // Assignments to a buffer that is read from elsewhere in this run: their values follow those of
  // the request's roots, and storing them is the caller's.
  std::span<const NodeRef> late_assigns() const { return late_assigns_; }

  struct Built {
    std::vector<NodeRef> values;   // of the request's roots, then of the late assignments
    std::vector<NodeRef> assigns;  // the other ones
    std::vector<NodeRef> variables;
  };
  // Makes the program in a graph; slot i is the buffer "" #i.
  Built build(Graph& graph) const;

 private:
  enum class Kind : uint8_t { Plain, Slot, PassThrough, Draw };
  struct Step {
    NodeRef node;
    Kind kind;
  };

  Kind kind_of(NodeRef node) const;
  static std::span<const NodeRef> children(const Step& step);
  void walk(NodeRef root);
  void finish(const Step& step);
  void add_text(std::string_view text);
  void add_long(uint64_t word);
  uint32_t number(NodeRef node) const { return *numbers_.find(node); }
  static NodeRef build_draw(NodeRef element, NodeRef numbers, int64_t first);

  const Contents& contents_;
  NodeMap<char> stores_;  // assignments that take effect as they stand
  NodeMap<uint32_t> numbers_;
  std::vector<Step> steps_;  // by number
  std::vector<NodeRef> values_, assigns_, late_assigns_, slots_, variables_;
  std::vector<uint32_t> words_, numbers_of_draws_;
  Key key_;
};

}  // namespace anneal
