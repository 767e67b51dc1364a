#include "ir/index.h"

#include <algorithm>
#include <unordered_map>

#include "base/checked.h"
#include "ir/build.h"
#include "ir/node_map.h"

namespace anneal {
namespace {

bool key_less(NodeRef a, NodeRef b) { return a->key < b->key; }

// A product of more factors stays as it is written: shared parts may stand for exponentially many.
constexpr size_t kMostFactors = 4096;

// The factors of a product, ordered by key, with constants multiplied into `constant`.
bool collect_factors(NodeRef node, std::vector<NodeRef>& factors, int64_t& constant) {
  std::vector<NodeRef> stack{node};
  size_t count = 0;
  while (!stack.empty()) {
    NodeRef top = stack.back();
    stack.pop_back();
    if (top->op != Op::Mul && ++count > kMostFactors) return false;
    if (top->op == Op::Mul) {
      stack.push_back(top->source(0));
      stack.push_back(top->source(1));
    } else if (is_static(top)) {
      std::optional<int64_t> product = checked_mul(constant, static_value(top));
      if (!product) return false;
      constant = *product;
    } else {
      factors.push_back(top);
    }
  }
  std::sort(factors.begin(), factors.end(), key_less);
  return true;
}

NodeRef chain(Op op, std::span<const NodeRef> items) {
  NodeRef result = items[0];
  for (NodeRef item : items.subspan(1)) result = make(op, {result, item});
  return result;
}

// The sums and constant multiples an expression is made of, and the terms under them; parts before
// the sums that hold them.
std::vector<NodeRef> linear_parts(NodeRef expression) {
  std::vector<NodeRef> order, stack{expression};
  NodeMap<char> state;  // 1: its parts are on the stack, 2: in the order
  while (!stack.empty()) {
    NodeRef node = stack.back();
    char& mark = state[node];
    bool product =
        node->op == Op::Mul && (is_static(node->source(0)) || is_static(node->source(1)));
    if (mark == 0 && (node->op == Op::Add || product)) {
      mark = 1;
      for (NodeRef part : node->sources()) stack.push_back(part);
      continue;
    }
    stack.pop_back();
    if (mark != 2) order.push_back(node);
    mark = 2;
  }
  return order;
}

NodeRef opaque(Op op, NodeRef a, NodeRef b) {
  if (b->key < a->key) std::swap(a, b);
  return make(op, {a, b});
}

}  // namespace

NodeRef index_const(int64_t value) { return make_const(Scalar::of_int(DType::Index, value)); }

void LinearForm::add(const LinearForm& other, int64_t times) {
  overflow |= other.overflow;
  auto accumulate = [&](int64_t& target, int64_t amount) {
    std::optional<int64_t> product = checked_mul(amount, times);
    std::optional<int64_t> sum = product ? checked_add(target, *product) : std::nullopt;
    if (sum) target = *sum;
    overflow |= !sum;
  };
  accumulate(constant, other.constant);
  if (other.terms.empty()) return;
  std::vector<Term> merged;
  merged.reserve(terms.size() + other.terms.size());
  auto mine = terms.begin();
  for (const Term& theirs : other.terms) {
    while (mine != terms.end() && key_less(mine->base, theirs.base)) merged.push_back(*mine++);
    bool shared = mine != terms.end() && mine->base == theirs.base;
    Term term = shared ? *mine++ : Term{theirs.base, 0};
    accumulate(term.factor, theirs.factor);
    if (term.factor != 0) merged.push_back(term);
  }
  merged.insert(merged.end(), mine, terms.end());
  terms = std::move(merged);
}

// Sums may be deep, and may share parts so often that their written-out length is exponential; so
// each part is visited once, with the number of times it counts.
LinearForm linear_form(NodeRef expression) {
  LinearForm form;
  std::vector<NodeRef> order = linear_parts(expression);
  NodeMap<int64_t> times(order.size());
  times[expression] = 1;
  auto count = [&](NodeRef part, int64_t factor, int64_t by) {
    std::optional<int64_t> product = checked_mul(factor, by);
    std::optional<int64_t> sum = product ? checked_add(times[part], *product) : std::nullopt;
    if (sum) times[part] = *sum;
    form.overflow |= !sum;
  };
  for (auto part = order.rbegin(); part != order.rend() && !form.overflow; ++part) {
    NodeRef node = *part;
    int64_t factor = times[node];
    if (factor == 0) continue;
    if (is_static(node)) {
      form.add({{}, static_value(node)}, factor);
    } else if (node->op == Op::Add) {
      count(node->source(0), factor, 1);
      count(node->source(1), factor, 1);
    } else if (node->op == Op::Mul && is_static(node->source(1))) {
      count(node->source(0), factor, static_value(node->source(1)));
    } else if (node->op == Op::Mul && is_static(node->source(0))) {
      count(node->source(1), factor, static_value(node->source(0)));
    } else {
      form.terms.push_back({node, factor});
    }
  }
  std::sort(form.terms.begin(), form.terms.end(),
            [](const auto& a, const auto& b) { return key_less(a.base, b.base); });
  return form;
}

NodeRef from_linear_form(const LinearForm& form) {
  // Groups of equal factors, in the order of their first term.
  constexpr size_t kFewGroups = 32;
  std::vector<std::pair<int64_t, std::vector<NodeRef>>> groups;
  std::unordered_map<int64_t, size_t> found;  // only for many groups, where a search would be slow
  for (const LinearForm::Term& term : form.terms) {
    size_t group = 0;
    if (groups.size() < kFewGroups) {
      while (group < groups.size() && groups[group].first != term.factor) ++group;
    } else {
      if (found.empty())
        for (size_t i = 0; i < groups.size(); ++i) found.emplace(groups[i].first, i);
      group = found.emplace(term.factor, groups.size()).first->second;
    }
    if (group == groups.size()) groups.push_back({term.factor, {}});
    groups[group].second.push_back(term.base);
  }
  std::vector<NodeRef> parts;
  for (const auto& [factor, bases] : groups) {
    if (factor == 1) {
      parts.insert(parts.end(), bases.begin(), bases.end());
    } else {
      parts.push_back(make(Op::Mul, {chain(Op::Add, bases), index_const(factor)}));
    }
  }
  if (form.constant != 0 || parts.empty()) parts.push_back(index_const(form.constant));
  return chain(Op::Add, parts);
}

NodeRef index_add(NodeRef a, NodeRef b) {
  LinearForm form = linear_form(a);
  form.add(linear_form(b), 1);
  return form.overflow ? opaque(Op::Add, a, b) : from_linear_form(form);
}

NodeRef index_sub(NodeRef a, NodeRef b) { return index_add(a, index_mul(b, index_const(-1))); }

NodeRef index_mul(NodeRef a, NodeRef b) {
  if (is_static(a)) std::swap(a, b);
  if (is_static(b)) {
    LinearForm form;
    form.add(linear_form(a), static_value(b));
    return form.overflow ? opaque(Op::Mul, a, b) : from_linear_form(form);
  }
  std::vector<NodeRef> factors;
  int64_t constant = 1;
  if (!collect_factors(a, factors, constant) || !collect_factors(b, factors, constant))
    return opaque(Op::Mul, a, b);
  if (factors.empty()) return index_const(constant);
  NodeRef product = chain(Op::Mul, factors);
  return constant == 1 ? product : index_mul(product, index_const(constant));
}

NodeRef index_floor_div(NodeRef a, NodeRef b) {
  if (is_static(b) && static_value(b) == 1) return a;
  if (is_static(a) && is_static(b) && static_value(b) != 0)
    return index_const(floor_div(static_value(a), static_value(b)));
  return make(Op::FloorDiv, {a, b});
}

NodeRef index_mod(NodeRef a, NodeRef b) {
  if (is_static(b) && static_value(b) == 1) return index_const(0);
  if (is_static(a) && is_static(b) && static_value(b) != 0)
    return index_const(floor_mod(static_value(a), static_value(b)));
  return make(Op::Mod, {a, b});
}

NodeRef element_count_expr(std::span<const NodeRef> dims) {
  NodeRef product = index_const(1);
  for (NodeRef dim : dims) product = index_mul(product, dim);
  return product;
}

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (NodeRef dim : shape.dims()) {
    std::optional<int64_t> product = checked_mul(count, static_value(dim));
    if (!product) throw InternalError("a static shape has more elements than 64 bits can count");
    count = *product;
  }
  return count;
}

}  // namespace anneal
