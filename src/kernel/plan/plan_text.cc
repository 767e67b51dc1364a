// Layout: the kind, its fields, then those of all plans. A part is "(name value ..)", a list
// "[value ..]"; a node is its place in topological order, an axis its number or "-" for none, a
// tile "lanes x copies" with its neighbours where there are several: "8x4", "32x8n4".
#include "kernel/plan/plan_text.h"

#include <array>
#include <charconv>
#include <concepts>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "ir/node.h"
#include "kernel/plan/plan_fields.h"

namespace anneal {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<KernelPlan::Kind>> kKinds{
    "cell", "product", "elements", "transpose", "workgroup-product"};
constexpr size_t kMostElements = 4096;  // of a list

template <typename T>
struct ElementOf;
template <typename T>
struct ElementOf<std::vector<T>> {
  using type = T;
};
template <typename T>
concept List = requires { typename ElementOf<T>::type; };

class Writer {
 public:
  explicit Writer(const Analysis& analysis) {
    const std::vector<NodeRef> nodes = topological_order(analysis.body().stores);
    for (size_t i = 0; i < nodes.size(); ++i) numbers_[nodes[i]] = i;
  }

  template <typename Part>
  void fields(Part& part) {
    visit_fields(part, *this);
  }
  template <typename Field>
  void operator()(std::string_view name, Field& field) {
    if (text_.back() != '(') text_ += ' ';
    text_ += name;
    text_ += ' ';
    value(field);
  }
  std::string take() { return std::move(text_); }

 private:
  template <typename Value>
  void value(Value& value) {
    if constexpr (List<Value>) {
      text_ += '[';
      for (auto& element : value) {
        if (text_.back() != '[') text_ += ' ';
        this->value(element);
      }
      text_ += ']';
    } else if constexpr (std::is_same_v<Value, NodeRef>) {
      text_ += fmt::format("{}", *numbers_.find(value));
    } else if constexpr (std::is_same_v<Value, Tile>) {
      text_ += fmt::format("{}x{}", value.lanes, value.copies);
      if (value.neighbours > 1) text_ += fmt::format("n{}", value.neighbours);
    } else if constexpr (std::is_same_v<Value, size_t>) {
      text_ += value == AxisSet::kMost ? "-" : fmt::format("{}", value);
    } else if constexpr (std::is_enum_v<Value>) {
      text_ += fmt::format("{}", static_cast<int>(value));
    } else if constexpr (std::integral<Value>) {
      text_ += fmt::format("{}", static_cast<int64_t>(value));
    } else {
      text_ += '(';
      visit_fields(value, *this);
      text_ += ')';
    }
  }

  std::string text_ = "(";
  NodeMap<size_t> numbers_;
};

// After the first mistake nothing more is read.
class Reader {
 public:
  Reader(std::string_view text, const Analysis& analysis)
      : rest_(text), nodes_(topological_order(analysis.body().stores)) {}

  template <typename Part>
  void fields(Part& part) {
    visit_fields(part, *this);
  }
  template <typename Field>
  void operator()(std::string_view name, Field& field) {
    expect(name);
    value(field);
  }
  std::string_view word() {
    skip();
    const size_t end = std::min(rest_.find_first_of(" ()[]"), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }
  void expect(std::string_view wanted) {
    if (!problem_.empty()) return;
    skip();
    if (rest_.starts_with(wanted))
      rest_.remove_prefix(wanted.size());
    else
      fail(fmt::format("\"{}\" is missing before \"{}\"", wanted, rest_.substr(0, 20)));
  }
  void fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }
  std::string finish() {
    skip();
    if (!rest_.empty()) fail(fmt::format("\"{}\" is too much", rest_.substr(0, 20)));
    return std::move(problem_);
  }

 private:
  void skip() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }
  bool next_is(char wanted) {
    skip();
    return rest_.starts_with(wanted);
  }

  template <std::integral Number>
  Number number(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      fail(fmt::format("\"{}\" is no number", text));
    return value;
  }

  void tile(Tile& tile) {
    const std::string_view text = word();
    const size_t cross = text.find('x'), n = text.find('n');
    if (cross == std::string_view::npos) return fail(fmt::format("\"{}\" is no tile", text));
    tile.lanes = number<int>(text.substr(0, cross));
    tile.copies = number<int>(text.substr(cross + 1, std::min(n, text.size()) - cross - 1));
    tile.neighbours = n == std::string_view::npos ? 1 : number<int>(text.substr(n + 1));
  }

  template <typename Value>
  void list(Value& value) {
    value.clear();
    expect("[");
    while (problem_.empty() && !next_is(']')) {
      if (value.size() == kMostElements) fail("a list is too long");
      this->value(value.emplace_back());
    }
    expect("]");
  }

  template <typename Value>
  void value(Value& value) {
    if (!problem_.empty()) return;
    if constexpr (List<Value>) {
      list(value);
    } else if constexpr (std::is_same_v<Value, NodeRef>) {
      const auto place = number<size_t>(word());
      if (problem_.empty() && place >= nodes_.size())
        fail(fmt::format("there is no node {}", place));
      if (problem_.empty()) value = nodes_[place];
    } else if constexpr (std::is_same_v<Value, Tile>) {
      tile(value);
    } else if constexpr (std::is_same_v<Value, size_t>) {
      const std::string_view text = word();
      value = text == "-" ? AxisSet::kMost : number<size_t>(text);
    } else if constexpr (std::is_same_v<Value, bool>) {
      const auto given = number<int>(word());
      if (given != 0 && given != 1) fail(fmt::format("{} is neither 0 nor 1", given));
      value = given == 1;
    } else if constexpr (std::is_enum_v<Value>) {
      const auto given = number<int>(word());
      if (given < 0 || given > static_cast<int>(Value::Term))
        fail(fmt::format("{} is no axis of a product", given));
      value = static_cast<Value>(given);
    } else if constexpr (std::integral<Value>) {
      value = number<Value>(word());
    } else {
      expect("(");
      visit_fields(value, *this);
      expect(")");
    }
  }

  std::string_view rest_;
  std::vector<NodeRef> nodes_;
  std::string problem_;
};

template <size_t number = 0>
KernelPlan::Kind kind_named(std::string_view name, bool& known) {
  if constexpr (number < kKinds.size()) {
    known = name == kKinds[number];
    if (!known) return kind_named<number + 1>(name, known);
    return std::variant_alternative_t<number, KernelPlan::Kind>{};
  } else {
    return CellPlan{};
  }
}

}  // namespace

std::string to_text(const KernelPlan& plan, const Analysis& analysis) {
  KernelPlan copy = plan;
  Writer kind(analysis), all(analysis);
  std::visit([&](auto& part) { kind.fields(part); }, copy.kind);
  all.fields(copy);
  return fmt::format("{} {}) {})", kKinds[plan.kind.index()], kind.take(), all.take());
}

Key hash_of(const KernelPlan& plan, const Analysis& analysis) {
  KeyBuilder key(0x706c616e);
  key.add(to_text(plan, analysis));
  return key.finish();
}

std::optional<KernelPlan> parse_plan(std::string_view text, const Analysis& analysis,
                                     std::string& problem) {
  Reader reader(text, analysis);
  KernelPlan plan;
  bool known = false;
  const std::string_view name = reader.word();
  plan.kind = kind_named(name, known);
  if (!known) reader.fail(fmt::format("\"{}\" is no kind of plan", name));
  reader.expect("(");
  std::visit([&](auto& part) { reader.fields(part); }, plan.kind);
  reader.expect(")");
  reader.expect("(");
  reader.fields(plan);
  reader.expect(")");
  problem = reader.finish();
  if (!problem.empty()) return std::nullopt;
  return plan;
}

}  // namespace anneal
