#include "schedule/graph/scatter_as_reduction.h"

#include "ir/build.h"
#include "ir/index.h"
#include "rewrite/local_rules.h"
#include "schedule/cost.h"

namespace anneal {
namespace {

bool is_worth_spreading(NodeRef node, const ScheduleTuning& tuning) {
  if (node->op != Op::ScatterAdd) return false;
  const DType dtype = node->dtype, place = node->source(1)->dtype;
  const bool plain = dtype == DType::F32 || dtype == DType::I32 || dtype == DType::U32;
  // Places of other dtypes might be the same as others when they are compared as i32.
  const bool places = place == DType::I32 || (is_int(place) && byte_size(place) < 4);
  const auto axis = static_cast<size_t>(node->arg.axis);
  return plain && places && element_estimate(*node->shape) <= tuning.scatter_results &&
         size_estimate(node->source(1)->dim(axis)) > tuning.scatter_values;
}

// target + the sum over k of where(places[k] == v, values[k], 0), at every v of the axis.
NodeRef as_sum(NodeRef target, NodeRef places, NodeRef values, int64_t axis) {
  const auto along = static_cast<size_t>(axis);
  std::span<const NodeRef> dims = values->shape->dims();
  std::vector<NodeRef> beside(dims.begin(), dims.end());
  beside.insert(beside.begin() + axis, index_const(1));
  std::vector<NodeRef> all = beside;
  all[along] = target->dim(along);
  auto for_each_result = [&](NodeRef node) {
    return make_tail(Op::Expand, make_tail(Op::Reshape, node, beside), all);
  };
  NodeRef here = make(
      Op::Eq, {for_each_result(make_cast(places, DType::I32)), make_iota(DType::I32, all, axis)});
  NodeRef added =
      make(Op::Where, {here, for_each_result(values), make_const(values->dtype, 0, all)});
  const int64_t summed = axis + 1;
  NodeRef sum = make_axes(Op::ReduceSum, added, {&summed, 1});
  return make(Op::Add, {target, make_tail(Op::Reshape, sum, target->shape->dims())});
}

const LocalRules<const ScheduleTuning> kRules{
    "scatter-as-reduction",
    {{"sum-over-values", any_of({Op::ScatterAdd}),
      [](NodeRef node, NodeRef image, const ScheduleTuning& tuning) {
        return is_worth_spreading(node, tuning)
                   ? as_sum(image->source(0), image->source(1), image->source(2), image->arg.axis)
                   : unchanged;
      }}}};

}  // namespace

std::vector<std::string_view> scatter_rules() { return kRules.rule_names(); }

std::vector<NodeRef> scatters_as_reductions(std::span<const NodeRef> roots,
                                            const ScheduleTuning& tuning) {
  return rewrite_once(roots, kRules, tuning);
}

}  // namespace anneal
