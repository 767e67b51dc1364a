// Short ways to make nodes in the current graph. No checks and no rewriting beyond the op's own
// rule.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace anneal {

// Any op whose dtype follows from its sources.
NodeRef make(Op op, std::initializer_list<NodeRef> sources, Arg arg = {});
NodeRef make(Op op, std::span<const NodeRef> sources, Arg arg = {});

NodeRef make_const(const Scalar& value, std::span<const NodeRef> dims = {});
NodeRef make_const(DType dtype, double value, std::span<const NodeRef> dims = {});
NodeRef make_const_like(NodeRef like, double value);  // the same shape and dtype
NodeRef make_variable(std::string_view name, int64_t min, int64_t max);
NodeRef make_buffer(std::string_view name, int64_t slot, DType dtype,
                    std::span<const NodeRef> dims);
NodeRef make_iota(DType dtype, std::span<const NodeRef> dims, int64_t axis);
NodeRef make_cast(NodeRef source, DType dtype);
NodeRef make_bitcast(NodeRef source, DType dtype);
NodeRef make_axes(Op op, NodeRef source, std::span<const int64_t> axes);  // reduce, permute, flip
NodeRef make_tail(Op op, NodeRef source,
                  std::span<const NodeRef> tail);  // reshape, expand, pad, shrink

// The same op, arg and dtype over other sources; the node itself when nothing changes.
NodeRef with_sources(NodeRef node, std::span<const NodeRef> sources);

// A number no other buffer of the process has.
int64_t new_buffer_slot();

// x, as a value of its own: another node each time, though it computes the same.
NodeRef make_named(NodeRef x, std::string_view name = {});

std::vector<NodeRef> static_dims(std::span<const int64_t> sizes);

}  // namespace anneal
