// What a program sees when it runs: numbers for its Variables and memory for its buffers; bound
// inputs first, then what buffers and earlier results hold. Computes nothing.
#pragma once

#include <memory>
#include <unordered_map>

#include <anneal/tensor.h>

#include "ir/graph.h"

namespace anneal {

class Contents {
 public:
  // Checks that what is bound fits; realises the values.
  explicit Contents(const Bindings& bindings);

  // The number bound to a Variable, within its bounds; an error when there is none.
  int64_t size(NodeRef variable) const;
  // The memory that holds a node's value: null when it has to be computed, or there is none.
  std::shared_ptr<Storage> find(NodeRef node) const;
  // The same for a Buffer; an error when it has no contents.
  std::shared_ptr<Storage> buffer(NodeRef node) const;
  // Whether a buffer's contents are given for this run only.
  bool is_bound(NodeRef buffer) const { return inputs_.contains(buffer); }

 private:
  void bind(NodeRef place, const Tensor& value);

  bool bound_;  // anything at all
  std::unordered_map<NodeRef, int64_t> sizes_;
  std::unordered_map<NodeRef, std::shared_ptr<Storage>> inputs_;
};

}  // namespace anneal
