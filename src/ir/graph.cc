#include "ir/graph.h"

#include <atomic>
#include <cassert>
#include <cstring>

#include <fmt/format.h>

#include <anneal/root.h>

#include "base/call_site.h"
#include "ir/build.h"
#include "ir/infer.h"
#include "ir/node_map.h"
#include "ir/post_order.h"
#include "ir/same_arg.h"

namespace anneal {
namespace {

uint64_t next_generation() {
  static std::atomic<uint64_t> counter{0};
  return ++counter;
}

// Places a header of type T and `items` behind it in the arena.
template <typename T, typename Item>
T* place(Arena& arena, const T& header, std::span<const Item> items) {
  T* object = static_cast<T*>(arena.allocate(sizeof(T) + items.size_bytes()));
  *object = header;
  if (!items.empty()) std::memcpy(static_cast<void*>(object + 1), items.data(), items.size_bytes());
  return object;
}

template <typename A, typename B>
bool same_items(std::span<A> a, std::span<B> b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

void add_arg(KeyBuilder& key, Op op, Arg arg) {
  switch (info(op).arg) {
    case ArgKind::None: return;
    case ArgKind::Scalar: return key.add(arg.bits);
    case ArgKind::Axis: return key.add(static_cast<uint64_t>(arg.axis));
    case ArgKind::Axes: return key.add(arg.axes ? arg.axes->key : Key{});
    case ArgKind::Symbol: return key.add(arg.symbol ? arg.symbol->key : Key{});
  }
}

// What a handle points to that outlived its graph: it is not empty, but of no more use.
NodeRef ended_node() {
  static const Shape scalar{};
  static const Node node{.key = {},
                         .shape = &scalar,
                         .arg = {},
                         .origin = nullptr,
                         .id = 0,
                         .source_count = 0,
                         .op = Op::Buffer,
                         .dtype = DType::F32};
  return &node;
}

}  // namespace

Graph::Graph() : roots_(std::make_unique<detail::Root>()), generation_(next_generation()) {
  roots_->previous_ = roots_->next_ = roots_.get();
}

Graph::~Graph() {
  // Handles that outlive their graph have none, and say so when they are used.
  while (roots_->next_ != roots_.get()) {
    detail::Root* root = roots_->next_;
    root->unlink();
    root->node_ = ended_node();
    root->graph_ = nullptr;
  }
  roots_->previous_ = roots_->next_ = nullptr;
}

NodeRef Graph::try_make(Op op, DType given, std::span<const NodeRef> sources, Arg arg,
                        std::string* error) {
  for (NodeRef source : sources)
    if (!source) throw InternalError(fmt::format("{}: a source is null", name(op)));
  assert(std::ranges::all_of(sources, [&](NodeRef source) { return owns(source); }));
  DType dtype = infer_dtype(op, given, sources);
  KeyBuilder builder(static_cast<uint64_t>(number(op)) | static_cast<uint64_t>(dtype) << 8 |
                     static_cast<uint64_t>(sources.size()) << 16);
  add_arg(builder, op, arg);
  for (NodeRef source : sources) builder.add(source->key);
  Key key = builder.finish();
  const uint32_t hint = NodeHint::of(key, sources);
  nodes_.prefetch(hint);
  const Shape* shape = infer_plain_elementwise(op, sources);

  const Node* found = nodes_.find(key, hint, [&](const Node& node) {
    return node.op == op && node.dtype == dtype && same_arg(op, node.arg, arg) &&
           same_items(node.sources(), sources);
  });
  if (found) return found;

  if (!shape) {
    std::string problem = infer_shape(*this, op, dtype, sources, arg, &shape);
    if (!problem.empty()) {
      *error = fmt::format("{}: {}", name(op), problem);
      return nullptr;
    }
  }
  Node header{key,
              shape,
              arg,
              current_origin(),
              static_cast<uint32_t>(nodes_.size()),
              static_cast<uint16_t>(sources.size()),
              op,
              dtype};
  const Node* node = place(arena_, header, sources);
  nodes_.insert(key, hint, node);
  return node;
}

NodeRef Graph::make(Op op, DType dtype, std::span<const NodeRef> sources, Arg arg) {
  std::string error;
  NodeRef node = try_make(op, dtype, sources, arg, &error);
  if (!node) throw InternalError(error);
  return node;
}

const IntList* Graph::intern_axes(std::span<const int64_t> axes) {
  KeyBuilder builder(axes.size());
  for (int64_t axis : axes) builder.add(static_cast<uint64_t>(axis));
  Key key = builder.finish();
  auto equal = [&](const IntList& list) { return same_items(list.values(), axes); };
  if (const IntList* found = lists_.find(key, static_cast<uint32_t>(key.low), equal)) return found;
  const IntList* list = place(arena_, IntList{key, static_cast<uint32_t>(axes.size())}, axes);
  lists_.insert(key, static_cast<uint32_t>(key.low), list);
  return list;
}

const Symbol* Graph::intern_symbol(std::string_view text, int64_t first, int64_t second) {
  KeyBuilder builder(static_cast<uint64_t>(first));
  builder.add(static_cast<uint64_t>(second));
  builder.add(text);
  Key key = builder.finish();
  auto equal = [&](const Symbol& symbol) {
    return symbol.text() == text && symbol.first == first && symbol.second == second;
  };
  if (const Symbol* found = symbols_.find(key, static_cast<uint32_t>(key.low), equal)) return found;
  const Symbol* symbol =
      place(arena_, Symbol{key, first, second, static_cast<uint32_t>(text.size())},
            std::span<const char>(text.data(), text.size()));
  symbols_.insert(key, static_cast<uint32_t>(key.low), symbol);
  return symbol;
}

const Shape* Graph::intern_shape(std::span<const NodeRef> dims) {
  KeyBuilder builder(dims.size());
  for (NodeRef dim : dims) builder.add(dim->key);
  Key key = builder.finish();
  auto equal = [&](const Shape& shape) { return same_items(shape.dims(), dims); };
  if (const Shape* found = shapes_.find(key, static_cast<uint32_t>(key.low), equal)) return found;
  const Shape* shape = place(arena_, Shape{key, static_cast<uint32_t>(dims.size())}, dims);
  shapes_.insert(key, static_cast<uint32_t>(key.low), shape);
  return shape;
}

void Graph::store(NodeRef node, std::shared_ptr<Storage> storage) {
  stored_bytes_ += storage->size();
  if (storage.use_count() > 1) sharers_[storage.get()].push_back(node);
  if (node->op != Op::Buffer) ++results_;
  storage_[node] = std::move(storage);
}

Storage* Graph::stored(NodeRef node) const {
  auto entry = storage_.find(node);
  return entry == storage_.end() ? nullptr : entry->second.get();
}

std::shared_ptr<Storage> Graph::shared_storage(NodeRef node) const {
  auto entry = storage_.find(node);
  return entry == storage_.end() ? nullptr : entry->second;
}

size_t Graph::shared_bytes(std::span<const NodeRef> nodes) const {
  size_t bytes = 0;
  for (NodeRef node : nodes)
    if (Storage* storage = stored(node); storage && !other_holders(node).empty())
      bytes += storage->size();
  return bytes;
}

std::vector<NodeRef> Graph::other_holders(NodeRef node) const {
  std::vector<NodeRef> holders;
  const Storage* storage = stored(node);
  auto entry = sharers_.find(storage);
  if (entry == sharers_.end()) return holders;
  for (NodeRef sharer : entry->second)
    if (sharer != node && stored(sharer) == storage) holders.push_back(sharer);
  return holders;
}

void Graph::separate(std::span<const NodeRef> nodes) {
  for (NodeRef node : nodes) {
    const std::vector<NodeRef> holders = other_holders(node);
    sharers_.erase(stored(node));
    if (holders.empty()) continue;
    auto copy = std::make_shared<Storage>(*stored(node));
    stored_bytes_ += copy->size();
    for (NodeRef holder : holders) storage_[holder] = copy;
    sharers_[copy.get()] = holders;
  }
}

void Graph::forget_results() {
  if (results_ == 0) return;
  results_ = 0;
  std::erase_if(storage_, [](const auto& entry) { return entry.first->op != Op::Buffer; });
}

const void* Graph::attached(NodeRef node) const {
  auto entry = attached_.find(node);
  return entry == attached_.end() ? nullptr : entry->second.get();
}

void Graph::redirect_roots(NodeRef from, NodeRef to) {
  for (detail::Root* root = roots_->next_; root != roots_.get(); root = root->next_)
    if (root->node_ == from) root->node_ = to;
}

bool Graph::is_held_elsewhere(const detail::Root& own, bool only_handles) const {
  std::vector<NodeRef> others;
  for (detail::Root* root = roots_->next_; root != roots_.get(); root = root->next_) {
    if (root == &own) continue;
    if (root->node_ == own.node_) return true;
    others.push_back(root->node_);
  }
  if (only_handles) return false;
  const std::vector<NodeRef> reached = topological_order(others);
  return std::ranges::find(reached, own.node_) != reached.end();
}

void Graph::collect() {
  std::vector<detail::Root*> roots;
  std::vector<NodeRef> nodes;
  for (detail::Root* root = roots_->next_; root != roots_.get(); root = root->next_) {
    roots.push_back(root);
    nodes.push_back(root->node_);
  }

  // A value that was realised becomes a buffer here, and what computed it is forgotten.
  Graph fresh;
  GraphScope scope(fresh);
  auto realised = [&](NodeRef node) -> NodeRef {
    std::shared_ptr<Storage> storage = shared_storage(node);
    if (!storage) return nullptr;
    bool buffer = node->op == Op::Buffer;
    NodeRef image = make_buffer(buffer ? node->arg.symbol->text() : "",
                                buffer ? node->arg.symbol->first : new_buffer_slot(), node->dtype,
                                clone(node->shape->dims(), fresh));
    fresh.store(image, std::move(storage));
    return image;
  };
  auto copied = [&](NodeRef node, NodeRef image) {
    auto entry = attached_.find(node);
    if (entry != attached_.end()) fresh.attached_[image] = entry->second;
  };
  std::vector<NodeRef> images = clone(nodes, fresh, realised, copied);

  std::swap(arena_, fresh.arena_);
  std::swap(nodes_, fresh.nodes_);
  std::swap(shapes_, fresh.shapes_);
  std::swap(lists_, fresh.lists_);
  std::swap(symbols_, fresh.symbols_);
  std::swap(storage_, fresh.storage_);
  std::swap(sharers_, fresh.sharers_);
  std::swap(results_, fresh.results_);
  std::swap(attached_, fresh.attached_);
  std::swap(memories_, fresh.memories_);
  for (size_t i = 0; i < roots.size(); ++i) roots[i]->node_ = images[i];
  forgotten_ += fresh.node_count() - node_count();  // it has the old ones now
  generation_ = next_generation();
  nodes_after_collect_ = node_count();
  live_bytes_ = fresh.stored_bytes_;
  stored_bytes_ = 0;
}

void Graph::collect_if_worthwhile() {
  // Small graphs are not worth the walk; large ones pay for it by having doubled.
  constexpr size_t kNodes = size_t{1} << 14, kBytes = size_t{1} << 26;
  if (node_count() > std::max(kNodes, 2 * nodes_after_collect_) ||
      stored_bytes_ > std::max(kBytes, live_bytes_))
    collect();
}

namespace {
thread_local Graph* t_scope = nullptr;
}

Graph& current_graph() {
  if (t_scope) return *t_scope;
  thread_local Graph own;
  return own;
}

GraphScope::GraphScope(Graph& graph) : outer_(t_scope) { t_scope = &graph; }
GraphScope::~GraphScope() { t_scope = outer_; }

std::vector<NodeRef> topological_order(std::span<const NodeRef> roots) {
  return post_order(roots, [](NodeRef node, size_t i) {
    return i < node->source_count ? node->source(i) : nullptr;
  });
}

Arg clone_arg(Graph& to, Op op, Arg arg) {
  switch (info(op).arg) {
    case ArgKind::Axes: return Arg(to.intern_axes(arg.axes->values()));
    case ArgKind::Symbol:
      return Arg(to.intern_symbol(arg.symbol->text(), arg.symbol->first, arg.symbol->second));
    default: return arg;
  }
}

std::vector<NodeRef> clone(std::span<const NodeRef> roots, Graph& to,
                           const std::function<NodeRef(NodeRef)>& replace,
                           const std::function<void(NodeRef, NodeRef)>& copied) {
  NodeMap<NodeRef> image;
  std::vector<NodeRef> stack(roots.rbegin(), roots.rend()), sources;
  while (!stack.empty()) {
    NodeRef node = stack.back();
    if (image.contains(node)) {
      stack.pop_back();
      continue;
    }
    if (NodeRef other = replace ? replace(node) : nullptr) {
      image[node] = other;
      continue;
    }
    // Copied once every source is; until then the sources go first.
    sources.clear();
    bool ready = true;
    for (NodeRef source : node->sources()) {
      NodeRef* copy = image.find(source);
      if (!copy) {
        if (ready) ready = false;
        stack.push_back(source);
      } else {
        sources.push_back(*copy);
      }
    }
    if (!ready) continue;
    OriginScope origin(node->origin);
    NodeRef copy = to.make(node->op, node->dtype, sources, clone_arg(to, node->op, node->arg));
    image[node] = copy;
    if (copied) copied(node, copy);
  }
  std::vector<NodeRef> result;
  result.reserve(roots.size());
  for (NodeRef root : roots) result.push_back(*image.find(root));
  return result;
}

namespace detail {

Root::Root(const Node* node) : node_(node), graph_(node ? &current_graph() : nullptr) {
  if (node) link_after(graph_->roots_.get());
}
Root::Root(const Root& other) : node_(other.node_), graph_(other.graph_) {
  if (graph_) link_after(const_cast<Root*>(&other));
}
Root::Root(Root&& other) noexcept { *this = std::move(other); }
Root& Root::operator=(const Root& other) {
  if (this == &other) return *this;
  unlink();
  node_ = other.node_;
  graph_ = other.graph_;
  if (graph_) link_after(const_cast<Root*>(&other));
  return *this;
}
Root& Root::operator=(Root&& other) noexcept {
  if (this == &other) return *this;
  *this = static_cast<const Root&>(other);
  other.unlink();
  other.node_ = nullptr;
  other.graph_ = nullptr;
  return *this;
}
void Root::link_after(Root* before) {
  previous_ = before;
  next_ = before->next_;
  before->next_->previous_ = this;
  before->next_ = this;
}
void Root::unlink() {
  if (!next_) return;
  previous_->next_ = next_;
  next_->previous_ = previous_;
  previous_ = next_ = nullptr;
}

}  // namespace detail
}  // namespace anneal
