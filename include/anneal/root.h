// The base of every handle a user can hold. It keeps its node alive: a graph forgets what no root
// reaches. A root belongs to the thread that made it.
#pragma once

namespace anneal {

struct Node;
class Graph;

namespace detail {

class Root {
 public:
  Root() = default;
  explicit Root(const Node* node);
  Root(const Root& other);
  Root(Root&& other) noexcept;
  Root& operator=(const Root& other);
  Root& operator=(Root&& other) noexcept;
  ~Root() { unlink(); }

  // The IR node behind the handle, for the compiler's own use.
  const Node* node() const { return node_; }
  // The graph it was made in; null once that graph is gone.
  const Graph* graph() const { return graph_; }

 private:
  friend class anneal::Graph;
  void link_after(Root* before);
  void unlink();

  const Node* node_ = nullptr;
  Graph* graph_ = nullptr;
  Root *previous_ = nullptr, *next_ = nullptr;
};

}  // namespace detail
}  // namespace anneal
