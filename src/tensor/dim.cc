// Sizes as users write them.
#include <fmt/format.h>

#include <anneal/dim.h>

#include "symbolic/bounds.h"
#include "symbolic/prove.h"
#include "symbolic/simplify.h"
#include "tensor/lift.h"

namespace anneal {

Dim Dim::number(int64_t value) { return Dim(index_const(value)); }
bool Dim::is_static() const { return anneal::is_static(node()); }
int64_t Dim::value() const {
  if (!is_static())
    fail(fmt::format("the size {} is symbolic", text()),
         "bind its variables, or use min() and max()");
  return static_value(node());
}
int64_t Dim::min() const { return bounds(node()).min; }
int64_t Dim::max() const { return bounds(node()).max; }
std::string Dim::text() const { return to_text(node()); }

Dim operator+(const Dim& a, const Dim& b) {
  return Dim(simplify(index_add(node_of(a), node_of(b))));
}
Dim operator-(const Dim& a, const Dim& b) {
  return Dim(simplify(index_sub(node_of(a), node_of(b))));
}
Dim operator*(const Dim& a, const Dim& b) {
  return Dim(simplify(index_mul(node_of(a), node_of(b))));
}

static NodeRef divisor(const Dim& b) {
  Interval range = bounds(node_of(b));
  if (range.min <= 0 && range.max >= 0)
    fail(fmt::format("division by {}, which can be 0", b.text()),
         "give the variable bounds above 0");
  return node_of(b);
}
Dim operator/(const Dim& a, const Dim& b) {
  return Dim(simplify(index_floor_div(node_of(a), divisor(b))));
}
Dim operator%(const Dim& a, const Dim& b) {
  return Dim(simplify(index_mod(node_of(a), divisor(b))));
}
bool operator==(const Dim& a, const Dim& b) { return prove_equal(node_of(a), node_of(b)); }

static NodeRef checked_variable(std::string_view name, int64_t min, int64_t max) {
  bool letters = !name.empty() && name.size() <= 64;
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    letters = letters && (letter || (i > 0 && c >= '0' && c <= '9'));
  }
  if (!letters)
    fail(fmt::format("\"{}\" cannot name a variable", name), "use letters, digits and _");
  if (min > max)
    fail(fmt::format("variable {} has bounds {} and {}", name, min, max),
         "the smaller comes first");
  return make_variable(name, min, max);
}
Variable::Variable(std::string_view name, int64_t min, int64_t max)
    : Dim(checked_variable(name, min, max)) {}

std::string to_text(const Sizes& sizes) { return text_of(nodes_of(sizes)); }

}  // namespace anneal
