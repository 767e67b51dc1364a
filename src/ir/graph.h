// A Graph owns nodes and makes equal ones the same. One thread uses a graph at a time; each thread
// has its own default graph, and passes open scratch graphs of their own.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/intern_table.h"
#include "ir/node.h"
#include "ir/storage.h"

namespace anneal {

namespace detail {
class Root;  // a handle held outside the compiler: <anneal/root.h>
}

class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // The node with this structure. `dtype` matters only for ops whose TypeRule is Given.
  // A malformed node is a bug of the caller: InternalError.
  NodeRef make(Op op, DType dtype, std::span<const NodeRef> sources, Arg arg = {});
  // The same for structure that comes from outside (text): null and a reason when malformed.
  NodeRef try_make(Op op, DType dtype, std::span<const NodeRef> sources, Arg arg,
                   std::string* error);

  const IntList* intern_axes(std::span<const int64_t> axes);
  const Symbol* intern_symbol(std::string_view text, int64_t first, int64_t second);
  const Shape* intern_shape(std::span<const NodeRef> dims);

  size_t node_count() const { return nodes_.size(); }
  // All together, also those forgotten since.
  uint64_t nodes_made() const { return forgotten_ + nodes_.size(); }

  // Whether a node that is alive is one of this graph's.
  bool owns(NodeRef node) const { return nodes_.holds(node->id, node); }

  // Changes whenever handles of this graph lose their meaning: the key of caches outside.
  uint64_t generation() const { return generation_; }

  // What is remembered about nodes of this graph: one T, empty when first asked for. It is gone
  // when they are, so that it never reads a node that was freed, nor takes a new one at its address
  // for it. Only nodes that the graph owns belong there.
  template <typename T>
  T& memory() {
    static char kind;  // whose address names T
    for (const auto& [of, object] : memories_)
      if (of == &kind) return *static_cast<T*>(object.get());
    auto object = std::make_shared<T>();
    memories_.emplace_back(&kind, object);
    return *object;
  }
  // For a graph that is kept, but asked no more.
  void forget_memories() { memories_.clear(); }

  // Memory of Buffer nodes, and of nodes whose value was computed before (a lazy tensor that was
  // realised). It lives as long as some root reaches its node.
  void store(NodeRef node, std::shared_ptr<Storage> storage);
  Storage* stored(NodeRef node) const;  // null: none
  std::shared_ptr<Storage> shared_storage(NodeRef node) const;
  // Bytes that storages of these nodes share with other nodes.
  size_t shared_bytes(std::span<const NodeRef> nodes) const;
  // Nodes that share memory with one of these get a copy, so that writing to it changes only it.
  void separate(std::span<const NodeRef> nodes);
  // Forgets computed values, for they may have read a buffer that changes; buffers stay.
  void forget_results();

  // Anything else that goes with a node and lives as long as it does (a user's backward function).
  void attach(NodeRef node, std::shared_ptr<const void> object) {
    attached_[node] = std::move(object);
  }
  const void* attached(NodeRef node) const;  // null: nothing

  // Every root that stood for `from` stands for `to`.
  void redirect_roots(NodeRef from, NodeRef to);

  // Whether another root than this one reaches its node; with `only_handles` it is known that no
  // node was made of it.
  bool is_held_elsewhere(const detail::Root& root, bool only_handles) const;

  // Forgets every node no root reaches. Handles other than roots become invalid, so this runs only
  // between public calls.
  void collect();
  // Collects when the graph or its memory has doubled since the last time.
  void collect_if_worthwhile();

 private:
  friend class detail::Root;
  std::vector<NodeRef> other_holders(NodeRef node) const;  // of its storage
  // A node is looked for beside the users of its newest source; a leaf anywhere.
  struct NodeHint {
    uint32_t operator()(const Node& node) const { return of(node.key, node.sources()); }
    static uint32_t of(const Key& key, std::span<const NodeRef> sources) {
      uint32_t newest = 0;
      for (NodeRef source : sources) newest = std::max(newest, source->id);
      return sources.empty() ? static_cast<uint32_t>(key.low) : newest;
    }
  };

  Arena arena_;
  InternTable<Node, NodeHint> nodes_;
  InternTable<Shape, KeyHint> shapes_;
  InternTable<IntList, KeyHint> lists_;
  InternTable<Symbol, KeyHint> symbols_;
  std::unordered_map<NodeRef, std::shared_ptr<Storage>> storage_;
  // Who came later to a storage that had a node already. Some may have left since.
  std::unordered_map<const Storage*, std::vector<NodeRef>> sharers_;
  size_t results_ = 0;  // storages of nodes that are no buffers
  std::unordered_map<NodeRef, std::shared_ptr<const void>> attached_;
  std::vector<std::pair<const void*, std::shared_ptr<void>>> memories_;
  std::unique_ptr<detail::Root> roots_;  // sentinel of a ring
  uint64_t generation_;
  uint64_t forgotten_ = 0;  // nodes
  size_t nodes_after_collect_ = 0;
  size_t stored_bytes_ = 0;  // since the last collection
  size_t live_bytes_ = 0;    // after it
};

// The graph that free functions build into: the thread's own, or the innermost GraphScope's.
Graph& current_graph();

class GraphScope {
 public:
  explicit GraphScope(Graph& graph);
  ~GraphScope();
  GraphScope(const GraphScope&) = delete;
  GraphScope& operator=(const GraphScope&) = delete;

 private:
  Graph* outer_;
};

// Sources before users, each node once. Without recursion: graphs may be 100,000 deep.
std::vector<NodeRef> topological_order(std::span<const NodeRef> roots);

// The constant of a node in another graph.
Arg clone_arg(Graph& to, Op op, Arg arg);

// Copies what the roots reach into `to`. `replace` may answer with a node of `to` to use instead of
// a copy, or null; `copied` is told of every node and its image. Serves collection, compilation and
// substitution alike.
std::vector<NodeRef> clone(std::span<const NodeRef> roots, Graph& to,
                           const std::function<NodeRef(NodeRef)>& replace = nullptr,
                           const std::function<void(NodeRef, NodeRef)>& copied = nullptr);

}  // namespace anneal
