// Questions about a body that plans and emission share, answered once: which axes a node depends
// on, how it moves through memory along them, which reductions wait for which.
#pragma once

#include <unordered_map>
#include <vector>

#include "body/kernel_body.h"
#include "kernel/plan/axis_form.h"

namespace anneal {

class Analysis {
 public:
  explicit Analysis(const KernelBody& body);

  const KernelBody& body() const { return body_; }

  size_t axis_count() const { return body_.axes.size(); }
  size_t number(NodeRef variable) const { return free_.number(variable); }
  NodeRef size(size_t axis) const { return body_.axes[axis].size; }
  // A guess where the size is symbolic: what plans reckon with.
  int64_t expected_size(size_t axis) const { return expected_sizes_[axis]; }
  bool is_static_size(size_t axis) const { return is_static(size(axis)); }
  bool may_be_empty(size_t axis) const;
  int64_t size_multiple(size_t axis) const;  // the size is a multiple of this

  AxisSet free(NodeRef node) { return free_.of(node); }
  FreeAxes& free_axes() { return free_; }
  const AxisForm& form(NodeRef index);

  size_t buffer_number(NodeRef buffer) const { return *buffer_numbers_.find(buffer); }
  bool is_tile(NodeRef buffer) const;
  bool is_written(NodeRef buffer) const { return written_[buffer_number(buffer)]; }

  // The axes a store or reduction lists.
  static std::span<const NodeRef> listed(NodeRef node);
  AxisSet listed_set(NodeRef node) const;

  // Every reduction of the body, sources first. The rank is how many reductions lie below it at
  // most: those of equal rank do not wait for each other.
  const std::vector<NodeRef>& reductions() const { return reductions_; }
  int rank(NodeRef node) const { return *ranks_.find(node); }

 private:
  KernelBody body_;
  FreeAxes free_;
  std::vector<int64_t> expected_sizes_;
  std::unordered_map<NodeRef, AxisForm> forms_;  // whose elements stay where they are
  NodeMap<size_t> buffer_numbers_;
  std::vector<bool> written_;
  std::vector<NodeRef> reductions_;
  NodeMap<int> ranks_;
};

}  // namespace anneal
