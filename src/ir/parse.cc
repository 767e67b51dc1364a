// Reads the text of print.h back. The text may come from strangers: every limit is checked before
// what it bounds is done. Must not decide which nodes are well formed, which is infer.cc's.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include <anneal/error.h>

#include "base/cursor.h"
#include "ir/index.h"
#include "ir/infer.h"
#include "ir/node_map.h"
#include "ir/print.h"

namespace anneal {
namespace {

bool is_value_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == '-' || c == '+';
}

struct WrittenType {
  TextPosition at;
  DType dtype = DType::Index;
  std::vector<NodeRef> dims;

  std::string text() const {
    std::string result(name(dtype));
    if (dtype == DType::Index) return result;
    for (size_t i = 0; i < dims.size(); ++i) result += (i == 0 ? "[" : ", ") + to_text(dims[i]);
    return result + (dims.empty() ? "[]" : "]");
  }
};

// One statement after another from one cursor. Methods answer false (or null) once the cursor has
// failed; the first failure is the error.
class Parser {
 public:
  Parser(std::string_view text, const ParseLimits& limits)
      : limits_(limits),
        cursor_(text),
        graph_(current_graph()),
        nodes_before_(graph_.node_count()) {
    if (text.size() > limits.text_bytes)
      cursor_.fail(fmt::format("the text is longer than {} bytes", limits.text_bytes));
  }

  std::variant<std::vector<NodeRef>, ParseError> run() {
    while (!cursor_.failed() && cursor_.next_line()) {
      if (returned_) {
        cursor_.fail("nothing may follow return");
      } else if (statement()) {
        cursor_.end_of_line();
      }
    }
    if (!cursor_.failed() && !returned_) cursor_.fail("expected return before the end of the text");
    if (!cursor_.failed()) return std::move(roots_);
    const TextError& error = *cursor_.error();
    return ParseError{error.at.line, error.at.column, error.message};
  }

 private:
  // ---- layout ----

  void skip() { cursor_.skip_comment(); }
  bool accept(char wanted) { return skip(), cursor_.accept(wanted); }
  bool expect(char wanted) { return skip(), cursor_.expect(wanted); }
  bool expect_word(std::string_view wanted) { return skip(), cursor_.expect(wanted); }
  std::string_view word() { return skip(), cursor_.identifier(); }
  std::optional<int64_t> integer() { return skip(), cursor_.integer(); }

  bool fail_at(TextPosition at, std::string message) {
    cursor_.fail_at(at, std::move(message));
    return false;
  }

  // ---- statements ----

  bool statement() {
    const TextPosition at = cursor_.position();
    if (cursor_.peek() == '%') return definition();
    const std::string_view keyword = word();
    if (keyword == "variable") return declaration();
    if (keyword == "return") return results();
    return fail_at(at, "expected %number, variable or return");
  }

  bool declaration() {
    skip();
    const TextPosition at = cursor_.position();
    const std::string_view text = word();
    if (text.empty()) cursor_.fail(fmt::format("expected a name, found {}", cursor_.found()));
    if (text.size() > limits_.string_bytes)
      return fail_at(at, fmt::format("the name is longer than {} bytes", limits_.string_bytes));
    const Symbol* symbol = bounds(text);
    if (!symbol) return false;
    NodeRef variable = make(at, Op::Variable, DType::Index, {}, Arg(symbol));
    if (!variable) return false;
    if (!variables_.emplace(text, variable).second)
      return fail_at(at, fmt::format("variable {} is declared twice", text));
    return true;
  }

  const Symbol* bounds(std::string_view text) {
    const std::optional<int64_t> min = integer();
    expect_word("..");
    const std::optional<int64_t> max = integer();
    return min && max ? graph_.intern_symbol(text, *min, *max) : nullptr;
  }

  bool results() {
    skip();
    returned_ = true;
    if (cursor_.at_end() || cursor_.peek() == '\n') return true;
    do {
      NodeRef root = operand();
      if (!root) return false;
      roots_.push_back(root);
    } while (accept(','));
    return !cursor_.failed();
  }

  bool definition() {
    const TextPosition at = cursor_.position();
    const std::optional<int64_t> number = node_number();
    if (!number) return false;
    if (numbered_.contains(*number))
      return fail_at(at, fmt::format("%{} is defined twice", *number));
    expect('=');
    skip();
    const TextPosition op_at = cursor_.position();
    const std::string_view text = word();
    const std::optional<Op> op = parse_op(text);
    if (!op) return fail_at(op_at, fmt::format("there is no op '{}'", text.substr(0, 40)));
    NodeRef node = body(op_at, *op);
    if (node) numbered_[*number] = node;
    return node != nullptr;
  }

  // ---- one node ----

  NodeRef body(TextPosition at, Op op) {
    const OpInfo& row = info(op);
    std::vector<NodeRef> sources;
    if (row.sources > 0 && !read_sources(at, row, sources)) return nullptr;
    skip();
    const TextPosition value_at = cursor_.position();
    std::string_view value;
    Arg arg;
    if (row.arg == ArgKind::Scalar) {
      value = cursor_.take_while(is_value_char);
    } else if (!argument(op, arg)) {
      return nullptr;
    }
    WrittenType type;
    if (!expect(':') || !read_type(type)) return nullptr;
    if (row.sources == 0 && row.tail == Tail::Dims) sources = type.dims;
    if (row.arg == ArgKind::Scalar) {
      const std::optional<Scalar> scalar = parse_scalar(type.dtype, value);
      if (!scalar) {
        fail_at(value_at,
                fmt::format("'{}' is no value of {}", value.substr(0, 40), name(type.dtype)));
        return nullptr;
      }
      arg = Arg(*scalar);
    }
    if (row.tail == Tail::Pairs && !afford_sizes(at, sources)) return nullptr;
    NodeRef node = make(at, op, type.dtype, sources, arg);
    if (node && !has_type(node, type)) {
      fail_at(type.at,
              fmt::format("{}: the type is {}, not {}", name(op), type_text(node), type.text()));
      return nullptr;
    }
    return node;
  }

  static bool has_type(NodeRef node, const WrittenType& type) {
    const std::span<const NodeRef> dims = node->shape->dims();
    return node->dtype == type.dtype &&
           std::equal(dims.begin(), dims.end(), type.dims.begin(), type.dims.end());
  }

  bool read_sources(TextPosition at, const OpInfo& row, std::vector<NodeRef>& sources) {
    const bool has_sizes = row.tail == Tail::Dims || row.tail == Tail::Pairs;
    do {
      if (sources.size() == Limits::kSources)
        return fail_at(at, fmt::format("{} has more than {} operands", row.text, Limits::kSources));
      NodeRef source = operand();
      if (!source) return false;
      sources.push_back(source);
    } while (!(has_sizes && sources.size() == row.sources) && accept(','));
    if (cursor_.failed()) return false;
    if (row.tail != Tail::Inputs && sources.size() != row.sources)
      return fail_at(
          at, fmt::format("{} has {} operands, needs {}", row.text, sources.size(), row.sources));
    if (!has_sizes) return true;
    return expect(',') && read_sizes(sources, limits_.rank * (row.tail == Tail::Pairs ? 2 : 1));
  }

  // "[OPERAND, ...]", appended to `list`.
  bool read_sizes(std::vector<NodeRef>& list, size_t most) {
    skip();
    const TextPosition at = cursor_.position();
    if (!expect('[')) return false;
    if (accept(']')) return true;
    const size_t before = list.size();
    do {
      if (list.size() - before == most) return fail_at(at, fmt::format("more than {} sizes", most));
      NodeRef size = operand();
      if (!size) return false;
      list.push_back(size);
    } while (accept(','));
    return expect(']');
  }

  bool argument(Op op, Arg& arg) {
    switch (info(op).arg) {
      case ArgKind::None:
      case ArgKind::Scalar: return true;
      case ArgKind::Axis: {
        expect_word("axis");
        const std::optional<int64_t> axis = integer();
        if (axis) arg = Arg(*axis);
        return axis.has_value();
      }
      case ArgKind::Axes: return read_axes(arg);
      case ArgKind::Symbol: {
        skip();
        const std::optional<std::string> text = cursor_.quoted(limits_.string_bytes);
        if (!text) return false;
        const Symbol* symbol = op == Op::Variable ? bounds(*text) : slot(*text);
        arg = Arg(symbol);
        return symbol != nullptr;
      }
    }
    return false;
  }

  bool read_axes(Arg& arg) {
    skip();
    const TextPosition at = cursor_.position();
    std::vector<int64_t> axes;
    if (!expect('{')) return false;
    if (!accept('}')) {
      do {
        if (axes.size() == limits_.rank)
          return fail_at(at, fmt::format("more than {} axes", limits_.rank));
        const std::optional<int64_t> axis = integer();
        if (!axis) return false;
        axes.push_back(*axis);
      } while (accept(','));
      if (!expect('}')) return false;
    }
    arg = Arg(graph_.intern_axes(axes));
    return true;
  }

  const Symbol* slot(std::string_view text) {
    expect('#');
    const std::optional<int64_t> first = integer();
    std::optional<int64_t> second = 0;
    const bool comment = cursor_.peek(1) == '/';
    if (!comment && cursor_.accept('/')) second = cursor_.integer();
    return first && second ? graph_.intern_symbol(text, *first, *second) : nullptr;
  }

  bool read_type(WrittenType& type) {
    skip();
    type.at = cursor_.position();
    const std::string_view text = word();
    const std::optional<DType> dtype = parse_dtype(text);
    if (!dtype) return fail_at(type.at, fmt::format("there is no dtype '{}'", text.substr(0, 40)));
    type.dtype = *dtype;
    return type.dtype == DType::Index || read_sizes(type.dims, limits_.rank);
  }

  // ---- operands ----

  std::optional<int64_t> node_number() {
    cursor_.expect('%');
    const TextPosition at = cursor_.position();
    const std::optional<int64_t> number = cursor_.integer();
    if (number && *number < 0) fail_at(at, "a node's number is not negative");
    return cursor_.failed() ? std::nullopt : number;
  }

  NodeRef operand() {
    skip();
    const TextPosition at = cursor_.position();
    const char first = cursor_.peek();
    if (first == '%') {
      const std::optional<int64_t> number = node_number();
      if (!number) return nullptr;
      auto entry = numbered_.find(*number);
      if (entry != numbered_.end()) return entry->second;
      fail_at(at, fmt::format("%{} is not defined above", *number));
      return nullptr;
    }
    if (first == '-' || (first >= '0' && first <= '9')) {
      const std::optional<int64_t> value = cursor_.integer();
      if (!value) return nullptr;
      return make(at, Op::Const, DType::Index, {}, Arg(Scalar::of_int(DType::Index, *value)));
    }
    const std::string_view text = word();
    auto entry = variables_.find(text);
    if (entry != variables_.end()) return entry->second;
    fail_at(at, text.empty() ? fmt::format("expected %number, an integer or a variable, found {}",
                                           cursor_.found())
                             : fmt::format("there is no variable '{}'", text.substr(0, 40)));
    return nullptr;
  }

  // ---- limits ----

  NodeRef make(TextPosition at, Op op, DType dtype, std::span<const NodeRef> sources, Arg arg) {
    std::string problem;
    NodeRef node = graph_.try_make(op, dtype, sources, arg, &problem);
    if (!node) fail_at(at, problem);
    if (graph_.node_count() - nodes_before_ > limits_.nodes)
      fail_at(at, fmt::format("more than {} nodes", limits_.nodes));
    return cursor_.failed() ? nullptr : node;
  }

  // The sizes of pad and shrink are sums of whole expressions: work and nodes in proportion to the
  // expressions, which a line can name again and again. Their sizes are charged before they are
  // made.
  bool afford_sizes(TextPosition at, std::span<const NodeRef> sources) {
    for (std::span<const NodeRef> list : {sources.subspan(1), sources[0]->shape->dims()})
      for (NodeRef expression : list)
        if (index_work_ <= limits_.index_work) index_work_ += index_work(expression);
    if (index_work_ <= limits_.index_work) return true;
    return fail_at(at, fmt::format("more than {} steps of index arithmetic", limits_.index_work));
  }

  // How many nodes the expression has, or as many as use up the limit.
  size_t index_work(NodeRef expression) const {
    if (expression->source_count == 0) return 1;
    size_t work = 0;
    NodeMap<char> seen;
    std::vector<NodeRef> stack{expression};
    while (!stack.empty() && index_work_ + work <= limits_.index_work) {
      NodeRef node = stack.back();
      stack.pop_back();
      if (!seen.insert(node, 1).second) continue;
      ++work;
      stack.insert(stack.end(), node->sources().begin(), node->sources().end());
    }
    return work;
  }

  const ParseLimits& limits_;
  Cursor cursor_;
  Graph& graph_;
  size_t nodes_before_;
  size_t index_work_ = 0;
  bool returned_ = false;
  std::unordered_map<int64_t, NodeRef> numbered_;
  std::unordered_map<std::string_view, NodeRef> variables_;  // names are views of the text
  std::vector<NodeRef> roots_;
};

}  // namespace

std::variant<std::vector<NodeRef>, ParseError> parse(std::string_view text,
                                                     const ParseLimits& limits) {
  return Parser(text, limits).run();
}

}  // namespace anneal
