// Writes nodes as text: exactly, for the parser, and briefly, for people.
// Must not recurse over a graph, whose depth has no bound, nor depend on ids or addresses.
#include "ir/print.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/cursor.h"
#include "ir/node_map.h"
#include "ir/post_order.h"

namespace anneal {
namespace {

bool is_index_const(NodeRef node) { return node->op == Op::Const && node->dtype == DType::Index; }

// topological_order, but the sizes of a node's type come before it too: those of pad and shrink are
// not among the sources.
std::vector<NodeRef> printing_order(std::span<const NodeRef> roots) {
  return post_order(roots, [](NodeRef node, size_t i) -> NodeRef {
    if (i < node->source_count) return node->source(i);
    return i < node->source_count + node->rank() ? node->dim(i - node->source_count) : nullptr;
  });
}

class Printer {
 public:
  explicit Printer(std::span<const NodeRef> roots) : roots_(roots), order_(printing_order(roots)) {
    name_variables();
    for (NodeRef node : order_)
      if (!is_index_const(node) && numbers_.insert(node, lines_.size()).second)
        lines_.push_back(node);
  }

  std::string all() {
    for (NodeRef variable : named_) declaration(variable), out_ += '\n';
    for (NodeRef node : lines_) definition(node), out_ += '\n';
    result(), out_ += '\n';
    return std::move(out_);
  }

  std::vector<std::pair<NodeRef, std::string>> each() {
    std::vector<std::pair<NodeRef, std::string>> lines;
    auto take = [&](NodeRef node) { lines.emplace_back(node, std::exchange(out_, {})); };
    for (NodeRef variable : named_) declaration(variable), take(variable);
    for (NodeRef node : lines_) definition(node), take(node);
    result(), take(nullptr);
    return lines;
  }

  std::string line(NodeRef node) {
    if (is_index_const(node)) {
      operand(node);
    } else if (*numbers_.find(node) == kNamed) {
      declaration(node);
    } else {
      definition(node);
    }
    return std::move(out_);
  }

 private:
  static constexpr size_t kNamed = static_cast<size_t>(-1);

  void name_variables() {
    std::vector<NodeRef> variables;
    std::copy_if(order_.begin(), order_.end(), std::back_inserter(variables),
                 [](NodeRef node) { return node->op == Op::Variable; });
    auto rank = [](NodeRef node) {
      const Symbol& symbol = *node->arg.symbol;
      return std::tuple(symbol.text(), symbol.first, symbol.second);
    };
    std::sort(variables.begin(), variables.end(),
              [&](NodeRef a, NodeRef b) { return rank(a) < rank(b); });
    auto text = [&](size_t i) { return variables[i]->arg.symbol->text(); };
    for (size_t i = 0; i < variables.size(); ++i) {
      const bool shared =
          (i > 0 && text(i - 1) == text(i)) || (i + 1 < variables.size() && text(i + 1) == text(i));
      if (shared || !is_identifier(text(i))) continue;
      numbers_.insert(variables[i], kNamed);
      named_.push_back(variables[i]);
    }
  }

  void declaration(NodeRef variable) {
    const Symbol& symbol = *variable->arg.symbol;
    append("variable {} {}..{}", symbol.text(), symbol.first, symbol.second);
  }

  void definition(NodeRef node) {
    const OpInfo& row = info(node->op);
    append("%{} = {}", *numbers_.find(node), row.text);
    if (!node->tensors().empty()) {
      out_ += ' ';
      operands(node->tensors());
      if (row.tail == Tail::Dims || row.tail == Tail::Pairs) {
        out_ += ", ";
        sizes(node->tail());
      }
    }
    argument(node, row.arg);
    append(" : {}", name(node->dtype));
    if (node->dtype != DType::Index) sizes(node->shape->dims());
  }

  void result() {
    out_ += "return";
    if (!roots_.empty()) out_ += ' ';
    operands(roots_);
  }

  void argument(NodeRef node, ArgKind kind) {
    switch (kind) {
      case ArgKind::None: return;
      case ArgKind::Scalar: return append(" {}", to_text(node->scalar()));
      case ArgKind::Axis: return append(" axis {}", node->arg.axis);
      case ArgKind::Axes: return append(" {{{}}}", fmt::join(node->axes(), ", "));
      case ArgKind::Symbol: {
        const Symbol& symbol = *node->arg.symbol;
        append(" {}", quote(symbol.text()));
        if (node->op == Op::Variable) return append(" {}..{}", symbol.first, symbol.second);
        append(" #{}", symbol.first);
        if (symbol.second != 0) append("/{}", symbol.second);
        return;
      }
    }
  }

  void sizes(std::span<const NodeRef> list) {
    out_ += '[';
    operands(list);
    out_ += ']';
  }

  void operands(std::span<const NodeRef> list) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out_ += ", ";
      operand(list[i]);
    }
  }

  void operand(NodeRef node) {
    if (is_index_const(node)) return append("{}", static_value(node));
    const size_t number = *numbers_.find(node);
    if (number == kNamed) return append("{}", node->arg.symbol->text());
    append("%{}", number);
  }

  template <typename... Args>
  void append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  std::span<const NodeRef> roots_;
  std::vector<NodeRef> order_, named_, lines_;
  NodeMap<size_t> numbers_;  // of a line, or kNamed
  std::string out_;
};

// ---- infix text for people

struct TextLimits {
  static constexpr size_t kBytes = 2000;
  static constexpr size_t kLinks = kBytes / 4;  // each writes at least " + x"
  static constexpr int kDepth = 64;
};

// How tightly an operator binds; kAtom is a name, a number, a call.
enum Precedence { kComparison, kSum, kProduct, kAtom };

struct Infix {
  std::string_view text;
  Precedence precedence;
};

Infix infix(Op op) {
  switch (op) {
    case Op::Lt: return {" < ", kComparison};
    case Op::Le: return {" <= ", kComparison};
    case Op::Eq: return {" == ", kComparison};
    case Op::Add: return {" + ", kSum};
    case Op::Mul: return {" * ", kProduct};
    case Op::FloorDiv: return {" // ", kProduct};
    case Op::Mod: return {" % ", kProduct};
    default: return {"", kAtom};
  }
}

// The factor below zero by which a sum may write its right side as a subtraction: of n * -2, of -2.
NodeRef negative_factor(NodeRef node) {
  NodeRef factor = node->op == Op::Mul ? node->source(1) : node;
  return is_index_const(factor) && static_value(factor) < 0 ? factor : nullptr;
}

// Recursion is bounded by the depth, time by the length: every call writes something.
class InfixWriter {
 public:
  std::string run(NodeRef node) {
    write(node, kComparison, 0);
    return std::move(out_);
  }

 private:
  void emit(std::string_view piece) {
    if (full_) return;
    full_ = out_.size() + piece.size() > TextLimits::kBytes;
    if (!full_) {
      out_ += piece;
    } else {
      out_ += "…";
    }
  }

  void write(NodeRef node, Precedence least, int depth) {
    if (full_) return;
    if (depth > TextLimits::kDepth) return emit("…");
    const Precedence precedence = infix(node->op).precedence;
    if (precedence == kAtom) return atom(node, depth);
    if (precedence < least) emit("(");
    chain(node, precedence, depth);
    if (precedence < least) emit(")");
  }

  // Operators of one precedence nest to the left: a + b - c. That side is followed by a loop, so
  // that long sums do not count as deep.
  void chain(NodeRef node, Precedence precedence, int depth) {
    std::vector<NodeRef> links;
    while (infix(node->op).precedence == precedence && links.size() < TextLimits::kLinks) {
      links.push_back(node);
      node = node->source(0);
    }
    const Precedence tighter = static_cast<Precedence>(precedence + 1);
    if (infix(node->op).precedence == precedence) {
      emit("…");
    } else {
      write(node, tighter, depth + 1);
    }
    for (auto link = links.rbegin(); link != links.rend() && !full_; ++link) {
      NodeRef right = (*link)->source(1);
      if ((*link)->op == Op::Add && negative_factor(right)) {
        minus(right, depth);
      } else {
        emit(infix((*link)->op).text);
        write(right, tighter, depth + 1);
      }
    }
  }

  void minus(NodeRef term, int depth) {
    NodeRef factor = negative_factor(term);
    const uint64_t size = 0 - static_cast<uint64_t>(static_value(factor));
    emit(" - ");
    if (term != factor) write(term->source(0), kProduct, depth + 1);
    if (term != factor && size != 1) emit(" * ");
    if (term == factor || size != 1) emit(fmt::format("{}", size));
  }

  void atom(NodeRef node, int depth) {
    if (node->op == Op::Const) return emit(to_text(node->scalar()));
    if (node->op == Op::Variable || node->op == Op::Buffer) {
      std::string_view text = node->arg.symbol->text().substr(0, TextLimits::kBytes + 1);
      return emit(is_identifier(text) ? std::string(text) : quote(text));
    }
    emit(name(node->op));
    emit("(");
    for (size_t i = 0; i < node->source_count && !full_; ++i) {
      if (i > 0) emit(", ");
      write(node->source(i), kComparison, depth + 1);
    }
    emit(")");
  }

  std::string out_;
  bool full_ = false;
};

}  // namespace

std::string print(std::span<const NodeRef> roots) { return Printer(roots).all(); }

std::string print_line(std::span<const NodeRef> roots, NodeRef node) {
  return Printer(roots).line(node);
}

std::vector<std::pair<NodeRef, std::string>> print_lines(std::span<const NodeRef> roots) {
  return Printer(roots).each();
}

std::string to_text(NodeRef index) { return InfixWriter().run(index); }

std::string to_text(const Shape& shape) {
  std::string text = "[";
  for (size_t axis = 0; axis < shape.rank; ++axis) {
    if (axis > 0) text += ", ";
    text += to_text(shape[axis]);
  }
  return text + "]";
}

std::string type_text(NodeRef node) {
  std::string text(name(node->dtype));
  return node->dtype == DType::Index ? text : text + to_text(*node->shape);
}

}  // namespace anneal
