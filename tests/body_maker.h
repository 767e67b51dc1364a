// Kernel bodies written by hand, for tests: buffers, axes and stores in the order they are named.
#pragma once

#include <string>

#include "body/kernel_body.h"
#include "ir/build.h"
#include "ir/index.h"

namespace anneal {

class BodyMaker {
 public:
  NodeRef variable(const std::string& name, int64_t min, int64_t max) {
    body.variables.push_back(make_variable(name, min, max));
    return body.variables.back();
  }
  // `most` bounds a symbolic size.
  NodeRef axis(const std::string& name, NodeRef size, int64_t most = 0) {
    const int64_t limit = is_static(size) ? static_value(size) : most;
    body.axes.push_back({make_variable(name, 0, limit > 0 ? limit - 1 : 0), size});
    return body.axes.back().variable;
  }
  NodeRef axis(const std::string& name, int64_t size) { return axis(name, index_const(size)); }
  NodeRef buffer(DType dtype, NodeRef elements) {
    const int64_t slot = static_cast<int64_t>(body.buffers.size());
    body.buffers.push_back(
        make_buffer("b" + std::to_string(slot), slot, dtype, std::vector{elements}));
    return body.buffers.back();
  }
  NodeRef buffer(DType dtype, int64_t elements) { return buffer(dtype, index_const(elements)); }

  static NodeRef always() { return make_const(Scalar::of_int(DType::Bool, 1)); }
  static NodeRef load(NodeRef buffer, NodeRef position, NodeRef condition = nullptr) {
    return make(Op::Load, {buffer, position, condition ? condition : always()});
  }
  // The first `parallel` axes may run in any order; -1: all of them.
  NodeRef store(NodeRef buffer, NodeRef position, NodeRef value, std::vector<NodeRef> axes,
                NodeRef condition = nullptr, int64_t parallel = -1, Op op = Op::Store) {
    std::vector<NodeRef> sources{buffer, position, condition ? condition : always(), value};
    sources.insert(sources.end(), axes.begin(), axes.end());
    if (parallel < 0) parallel = static_cast<int64_t>(axes.size());
    body.stores.push_back(make(op, sources, Arg(parallel)));
    return body.stores.back();
  }

  // i * n + j and so on: the position of coordinates in row-major order.
  static NodeRef at(std::vector<NodeRef> coordinates, std::vector<NodeRef> sizes) {
    NodeRef position = index_const(0);
    for (size_t i = 0; i < coordinates.size(); ++i)
      position = index_add(index_mul(position, sizes[i]), coordinates[i]);
    return position;
  }
  static NodeRef at(std::vector<NodeRef> coordinates, std::vector<int64_t> sizes) {
    return at(std::move(coordinates), static_dims(sizes));
  }

  KernelBody body;
};

}  // namespace anneal
