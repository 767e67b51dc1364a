#include "schedule/work_count.h"

#include <algorithm>

#include "ir/node_map.h"
#include "schedule/memory/memory_plan.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

double largest(NodeRef size) { return static_cast<double>(std::max<int64_t>(bounds(size).max, 0)); }

// A set of axes of a body.
using AxisSet = std::vector<bool>;

bool is_store(NodeRef node) { return node->op == Op::Store || node->op == Op::StoreAdd; }

// What one evaluation of a node costs in float arithmetic.
double flops_of(NodeRef node) {
  if (!is_float(node->dtype)) return 0;
  if (is_reduce_over(node->op)) return 1;  // for each element that goes in
  if (!is_elementwise(node->op)) return 0;
  switch (node->op) {
    case Op::Cast:
    case Op::Bitcast:
    case Op::Where: return 0;
    case Op::MulAdd: return 2;
    default: return 1;
  }
}

class Counter {
 public:
  explicit Counter(const KernelBody& body)
      : body_(body),
        order_(topological_order(body.stores)),
        axes_of_(order_.size()),
        read_(body.buffers.size()),
        written_(body.buffers.size()) {}

  WorkCount count() {
    for (NodeRef node : order_) visit(node);
    for (size_t i = 0; i < body_.buffers.size(); ++i) {
      NodeRef buffer = body_.buffers[i];
      if (is_tile(buffer)) continue;
      const double all = largest(buffer->dim(0)),
                   bytes = static_cast<double>(byte_size(buffer->dtype));
      work_.bytes_read += std::min(read_[i], all) * bytes;
      work_.bytes_written += std::min(written_[i], all) * bytes;
    }
    return work_;
  }

 private:
  // How often a value that depends on these axes is computed, if never twice.
  double points(const AxisSet& axes) const {
    double count = 1;
    for (size_t i = 0; i < axes.size(); ++i)
      if (axes[i]) count *= largest(body_.axes[i].size);
    return count;
  }

  void add_axes(AxisSet& to, NodeRef node) {
    const AxisSet& from = axes_of_[node];
    for (size_t i = 0; i < from.size(); ++i)
      if (from[i]) to[i] = true;
  }

  void set_axis(AxisSet& axes, NodeRef variable, bool present) const {
    for (size_t i = 0; i < axes.size(); ++i)
      if (body_.axes[i].variable == variable) axes[i] = present;
  }

  void visit(NodeRef node) {
    AxisSet axes(body_.axes.size(), false);
    if (node->op == Op::Variable) {
      set_axis(axes, node, true);
    } else if (is_reduce_over(node->op) || is_store(node)) {
      // The axes that follow are those it runs over: no values it depends on.
      for (NodeRef source : node->sources().first(info(node->op).sources)) add_axes(axes, source);
    } else {
      for (NodeRef source : node->sources()) add_axes(axes, source);
    }
    // A tile holds something else for each value of these, though positions in it do not say so.
    if (node->op == Op::Load && is_tile(node->source(0)))
      for (NodeRef axis : body_.tile_axes) set_axis(axes, axis, true);
    count(node, axes);
    if (is_reduce_over(node->op))
      for (NodeRef over : node->sources().subspan(info(node->op).sources))
        set_axis(axes, over, false);
    axes_of_[node] = std::move(axes);
  }

  bool is_tile(NodeRef buffer) const { return std::ranges::count(body_.tiles, buffer) > 0; }

  void count(NodeRef node, const AxisSet& axes) {
    if (node->op == Op::Load) touched(read_, node);
    if (is_store(node)) touched(written_, node);
    if (node->op == Op::StoreAdd) touched(read_, node);
    const bool value =
        node->dtype != DType::Index && (is_elementwise(node->op) || is_reduce_over(node->op));
    if (!value) return;
    ++work_.operations;
    work_.flops += flops_of(node) * points(axes);
  }

  // A load or a store: as many elements as its position takes values, at most.
  void touched(std::vector<double>& elements, NodeRef node) {
    const auto slot = static_cast<size_t>(node->source(0)->arg.symbol->first);
    elements[slot] += points(axes_of_[node->source(1)]);
  }

  const KernelBody& body_;
  std::vector<NodeRef> order_;
  NodeMap<AxisSet> axes_of_;
  std::vector<double> read_, written_;  // elements of each buffer
  WorkCount work_;
};

}  // namespace

WorkCount& WorkCount::operator+=(const WorkCount& other) {
  operations += other.operations;
  flops += other.flops;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  return *this;
}

WorkCount count_work(const KernelBody& body) { return Counter(body).count(); }

WorkCount count_work(const Kernel& kernel) {
  WorkCount work;
  for (const KernelPhase& phase : kernel.phases)
    for (const KernelPart& part : phase) work += count_work(part.body);
  return work;
}

MemoryCount count_memory(const Schedule& schedule) {
  const MemoryPlan plan =
      plan_memory(schedule, [](NodeRef variable) { return bounds(variable).max; });
  const std::vector<Lifetime> lives = lifetimes(schedule);
  MemoryCount memory;
  memory.arena = plan.arena_bytes;
  for (size_t i = 0; i < schedule.buffers.size(); ++i) {
    const ScheduleBuffer& buffer = schedule.buffers[i];
    if (buffer.external) {
      memory.inputs += plan.bytes[i];
    } else if (!buffer.is_temporary()) {
      memory.outputs += plan.bytes[i];
    } else if (lives[i].first >= 0) {
      memory.temporaries += plan.bytes[i];
    }
  }
  return memory;
}

}  // namespace anneal
