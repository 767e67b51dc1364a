#include "index_text.h"

#include <cctype>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ir/build.h"
#include "ir/index.h"
#include "ir/op.h"

namespace anneal {

NodeRef variable(std::string_view name) {
  struct Row {
    std::string_view name;
    int64_t min, max;
  };
  static const Row kRows[] = {
      {"a", 0, 7},    {"b", 0, 3},
      {"c", 0, 2},    {"x", 0, 99},
      {"y", 0, 99},   {"z", -50, 49},
      {"w", -50, 49}, {"n", 1, 64},
      {"m", 1, 16},   {"p", 0, 63},
      {"q", 0, 15},   {"r", 0, 1023},
      {"five", 5, 5}, {"huge", -(int64_t{1} << 62), int64_t{1} << 62},
  };
  for (const Row& row : kRows)
    if (row.name == name) return make_variable(row.name, row.min, row.max);
  FAIL("no variable " << name);
  return nullptr;
}

namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  NodeRef run() {
    NodeRef node = comparison();
    skip();
    if (at_ != text_.size()) FAIL("cannot read " << text_ << " at " << at_);
    return node;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  NodeRef comparison() {
    NodeRef left = sum();
    if (take("<=")) return make(Op::Le, {left, sum()});
    if (take("<")) return make(Op::Lt, {left, sum()});
    if (take("==")) return make(Op::Eq, {left, sum()});
    return left;
  }
  NodeRef sum() {
    NodeRef left = product();
    while (true) {
      if (take("+")) {
        left = make(Op::Add, {left, product()});
      } else if (take("-")) {
        left = make(Op::Add, {left, make(Op::Mul, {product(), index_const(-1)})});
      } else {
        return left;
      }
    }
  }
  NodeRef product() {
    NodeRef left = item();
    while (true) {
      if (take("*")) {
        left = make(Op::Mul, {left, item()});
      } else if (take("//")) {
        left = make(Op::FloorDiv, {left, item()});
      } else if (take("%")) {
        left = make(Op::Mod, {left, item()});
      } else {
        return left;
      }
    }
  }
  NodeRef item() {
    if (take("(")) {
      NodeRef inner = comparison();
      take(")");
      return inner;
    }
    skip();
    size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_]))) ++at_;
    std::string word(text_.substr(begin, at_ - begin));
    if (word.empty()) FAIL("cannot read " << text_ << " at " << at_);
    if (word[0] == '-' || std::isdigit(static_cast<unsigned char>(word[0])))
      return index_const(std::stoll(word));
    if (word == "true" || word == "false") return make_const(DType::Bool, word == "true");
    if (!take("(")) return variable(word);
    std::vector<NodeRef> parts{comparison()};
    while (take(",")) parts.push_back(comparison());
    take(")");
    if (word == "not") return make(Op::Xor, {parts[0], make_const(DType::Bool, 1)});
    return make(*parse_op(word), parts);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

NodeRef read(std::string_view text) { return Reader(text).run(); }

}  // namespace anneal
