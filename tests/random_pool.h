// The nodes that a random program grows from: leaves of drawn sizes, and operands bent so that the
// values of a tame program stay moderate. Must not evaluate anything.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/build.h"
#include "ir/index.h"
#include "random_graph.h"
#include "symbolic/bounds.h"
#include "symbolic/simplify.h"
#include "value_info.h"

namespace anneal {

inline constexpr DType kFloats[] = {DType::F32,  DType::F32, DType::F32, DType::F16,
                                    DType::BF16, DType::F64, DType::F32, DType::F8E4M3,
                                    DType::F32,  DType::F16, DType::F32, DType::F8E5M2};
inline constexpr DType kIntegers[] = {DType::I32, DType::I64, DType::U8,  DType::I32, DType::U32,
                                      DType::I8,  DType::I16, DType::U16, DType::U64, DType::I32};
inline constexpr int64_t kSmallSizes[] = {2, 3, 4, 5, 7, 8, 1};
inline constexpr int64_t kMiddleSizes[] = {9, 16, 17, 31, 32, 33, 64, 100};
inline constexpr int64_t kLargeSizes[] = {257, 1000, 1023, 1025, 2048};
inline constexpr double kFloatConstants[] = {0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -0.0, -0.25};
inline constexpr double kIntConstants[] = {0, 1, 2, 3, 7, 17, -1, 100};

inline int64_t most_of(NodeRef size) { return bounds(size).max; }
inline bool is_one(NodeRef size) { return is_static(size) && static_value(size) == 1; }

inline int64_t most_elements(std::span<const NodeRef> dims) {
  Interval count{1, 1};
  for (NodeRef dim : dims) count = count * Interval{0, std::max<int64_t>(1, most_of(dim))};
  return count.max;
}

using Dims = std::vector<NodeRef>;

class RandomPool {
 public:
  RandomPool(uint64_t seed, const RandomGraphOptions& options) : random_(seed), options_(options) {
    // Neighbouring seeds begin alike.
    random_.discard(16);
    choose_sizes();
    for (int k = 0; k < 3; ++k) push(any_leaf());
    push(leaf(pool_[0]->shape->dims(), DType::F32));
  }

 protected:
  // ---- draws

  uint64_t below(uint64_t n) { return random_() % n; }
  bool chance(uint64_t percent) { return below(100) < percent; }
  template <typename Table>
  auto one_of(const Table& table) {
    return table[below(std::size(table))];
  }
  DType any_float() {
    const DType dtype = one_of(kFloats);
    return dtype == DType::F64 && !options_.f64 ? DType::F32 : dtype;
  }
  DType any_integer() { return one_of(kIntegers); }
  DType any_dtype() {
    const uint64_t draw = below(10);
    return draw < 7 ? any_float() : draw < 9 ? any_integer() : DType::Bool;
  }

  void choose_sizes() {
    sizes_.push_back(index_const(one_of(kSmallSizes)));
    sizes_.push_back(index_const(one_of(kSmallSizes)));
    sizes_.push_back(index_const(one_of(kMiddleSizes)));
    if (chance(12)) sizes_.push_back(index_const(one_of(kLargeSizes)));
    if (chance(4)) sizes_.push_back(index_const(0));
    if (!options_.symbolic || !chance(35)) return;
    const auto low = static_cast<int64_t>(below(4)), span = static_cast<int64_t>(1 + below(20));
    NodeRef n = make_variable("n", low, low + span);
    sizes_.push_back(n);
    if (chance(30)) sizes_.push_back(index_add(n, index_const(1)));
    if (chance(30)) sizes_.push_back(make_variable("m", 1, 2 + static_cast<int64_t>(below(9))));
  }

  Dims leaf_dims() {
    const uint64_t draw = below(20);
    size_t rank = draw == 0 ? 0 : draw < 6 ? 1 : draw < 14 ? 2 : draw < 18 ? 3 : 4;
    Dims dims;
    for (size_t i = 0; i < rank; ++i) dims.push_back(one_of(sizes_));
    while (most_elements(dims) > options_.max_elements) dims.pop_back();
    return dims;
  }

  // ---- the pool

  // Whether it may be used: moderate in size and in value.
  bool is_usable(NodeRef node) {
    if (most_elements(node->shape->dims()) > options_.max_elements) return false;
    return !options_.tame || infos_[node].tame;
  }
  bool push(NodeRef node) {
    if (!node || !is_usable(node) || std::ranges::find(pool_, node) != pool_.end()) return false;
    pool_.push_back(node);
    return true;
  }
  // Late nodes more often: programs grow deep rather than wide. Small ones less often, for
  // reductions make ever smaller ones.
  NodeRef pick() {
    const size_t n = pool_.size(), back = std::min<size_t>(n, below(5) ? 3 : n);
    NodeRef node = pool_[n - 1 - below(back)];
    if (chance(50)) return node;
    NodeRef other = pool_[n - 1 - below(std::min<size_t>(n, 6))];
    return most_elements(node->shape->dims()) < most_elements(other->shape->dims()) ? other : node;
  }
  template <typename Accept>
  NodeRef pick_where(Accept accept) {
    for (int tries = 0; tries < 12; ++tries)
      if (NodeRef node = pick(); accept(node)) return node;
    const size_t start = below(pool_.size());
    for (size_t i = 0; i < pool_.size(); ++i)
      if (NodeRef node = pool_[(start + i) % pool_.size()]; accept(node)) return node;
    return nullptr;
  }
  ValueInfo info_of(NodeRef node) { return infos_[node]; }

  // ---- leaves

  NodeRef buffer(std::span<const NodeRef> dims, DType dtype, const Grid& grid) {
    const std::string_view prefix = is_float(dtype) ? "x" : is_bool(dtype) ? "b" : "i";
    const int64_t slot = static_cast<int64_t>(buffers_.size());
    NodeRef node =
        make_buffer(buffer_name(fmt::format("{}{}", prefix, slot), grid), slot, dtype, dims);
    buffers_.push_back(node);
    return node;
  }

  NodeRef leaf(std::span<const NodeRef> dims, DType dtype) {
    if (is_bool(dtype)) return buffer(dims, dtype, {.low = 0, .high = 1});
    if (!is_float(dtype)) {
      if (chance(30)) return buffer(dims, dtype, {.low = 0, .high = 100});
      return buffer(dims, dtype, {.low = is_unsigned(dtype) ? 0 : -20, .high = 20});
    }
    switch (dtype) {
      case DType::F8E4M3: return buffer(dims, dtype, {.low = -8, .high = 8, .denominator = 4});
      case DType::F8E5M2: return buffer(dims, dtype, {.low = -4, .high = 4, .denominator = 2});
      case DType::BF16: return buffer(dims, dtype, {.low = -128, .high = 128, .denominator = 64});
      case DType::F16:
        if (chance(50)) break;
        return buffer(dims, dtype, {.low = -1024, .high = 1024, .denominator = 512});
      default:
        if (chance(50)) break;  // else every bit of the fraction is used
        return buffer(dims, dtype,
                      {.low = -(1 << 23), .high = 1 << 23, .denominator = int64_t{1} << 22});
    }
    if (chance(30)) return buffer(dims, dtype, {.low = -3, .high = 3});
    return buffer(dims, dtype, {.low = -128, .high = 128, .denominator = 32});
  }

  NodeRef any_leaf() {
    const Dims dims = leaf_dims();
    return leaf(dims, any_dtype());
  }

  NodeRef constant(std::span<const NodeRef> dims, DType dtype) {
    if (is_float(dtype)) return make_const(dtype, one_of(kFloatConstants), dims);
    if (is_bool(dtype)) return make_const(dtype, static_cast<double>(below(2)), dims);
    return make_const(dtype, one_of(kIntConstants), dims);
  }
  NodeRef number(NodeRef like, double value) { return make_const_like(like, value); }

  // ---- operands of a wanted form

  // Sizes of 1 in front, then repeated; null where it does not fit.
  NodeRef stretched(NodeRef node, std::span<const NodeRef> dims) {
    if (node->rank() > dims.size()) return nullptr;
    Dims aligned(dims.size() - node->rank(), index_const(1));
    for (NodeRef dim : node->shape->dims()) aligned.push_back(dim);
    for (size_t i = 0; i < dims.size(); ++i)
      if (aligned[i] != dims[i] && !is_one(aligned[i])) return nullptr;
    if (node->rank() < dims.size()) node = make_tail(Op::Reshape, node, aligned);
    return std::ranges::equal(aligned, dims) ? node : make_tail(Op::Expand, node, dims);
  }

  // The value in another dtype, bounded first where integers are too large for it.
  NodeRef converted(NodeRef node, DType dtype) {
    if (node->dtype == dtype) return node;
    if (options_.tame && is_float(dtype) && !is_float(node->dtype) &&
        info_of(node).magnitude() > 100)
      node = make(Op::Mod, {node, number(node, 17)});
    if (options_.tame && is_float(node->dtype) && is_float(dtype))
      node = bounded(node, dtype == DType::F8E4M3 || dtype == DType::F8E5M2 ? 16 : 1000);
    NodeRef result = make_cast(node, dtype);
    return !options_.tame || info_of(result).tame ? result : nullptr;
  }

  // Anything of this dtype and shape: of the pool as it is, repeated or converted, or a leaf.
  NodeRef operand(std::span<const NodeRef> dims, DType dtype) {
    if (chance(60))
      if (NodeRef node = pick_where([&](NodeRef n) {
            return n->dtype == dtype && std::ranges::equal(n->shape->dims(), dims);
          }))
        return node;
    if (chance(70))
      if (NodeRef node = pick_where(
              [&](NodeRef n) { return n->dtype == dtype && n->rank() && stretched(n, dims); }))
        return stretched(node, dims);
    if (chance(50))
      if (NodeRef node = pick_where([&](NodeRef n) { return stretched(n, dims) != nullptr; }))
        if (NodeRef cast = converted(node, dtype)) return stretched(cast, dims);
    if (chance(30)) return constant(dims, dtype);
    if (chance(20) && !dims.empty() && !is_bool(dtype))
      if (NodeRef node = make_iota(dtype, dims, static_cast<int64_t>(below(dims.size())));
          !options_.tame || info_of(node).magnitude() < 16)
        return node;
    // Parameters of one size for all of an axis, as biases have it.
    Dims some(dims.begin(), dims.end());
    if (!some.empty() && chance(40)) some[below(some.size())] = index_const(1);
    NodeRef node = leaf(some, dtype);
    push(node);
    return stretched(node, dims);
  }
  NodeRef like(NodeRef node) { return operand(node->shape->dims(), node->dtype); }
  NodeRef like(NodeRef node, DType dtype) { return operand(node->shape->dims(), dtype); }

  // ---- keeping values moderate

  // Within -limit..limit.
  NodeRef bounded(NodeRef node, double limit) {
    if (!options_.tame || !is_float(node->dtype)) return node;
    const ValueInfo info = info_of(node);
    if (info.magnitude() <= limit) return node;
    if (std::isinf(info.magnitude()) || chance(15)) {
      const double edge = std::exp2(std::floor(std::log2(limit)));
      return make(Op::Max, {make(Op::Min, {node, number(node, edge)}), number(node, -edge)});
    }
    if (limit >= 1 && chance(10)) return make(Op::Tanh, {node});
    const double factor = std::exp2(-std::ceil(std::log2(info.magnitude() / limit)));
    return make(Op::Mul, {node, number(node, factor)});
  }
  NodeRef moderate(NodeRef node) {
    return node && is_float(node->dtype) && info_of_bound(node) > 8 ? bounded(node, 4) : node;
  }
  double info_of_bound(NodeRef node) { return options_.tame ? info_of(node).magnitude() : 0; }
  // At least 1/2.
  NodeRef positive(NodeRef node) {
    if (!options_.tame) return node;
    if (info_of(node).low >= 0.25) return node;
    return make(Op::Add, {make(Op::Abs, {node}), number(node, 0.5)});
  }
  bool is_exact(NodeRef node) { return !options_.tame || info_of(node).exact; }

  std::mt19937_64 random_;
  RandomGraphOptions options_;
  ValueInfos infos_;
  Dims sizes_;
  std::vector<NodeRef> pool_, buffers_;
};

}  // namespace anneal
