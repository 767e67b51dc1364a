// Named rules, and named sets of them. A rule is data: a pattern and what to put in its place.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "rewrite/pattern.h"

namespace anneal {

// A rule that decides not to fire answers this.
inline constexpr NodeRef unchanged = nullptr;

struct Rule {
  using Action = NodeRef (*)(const Match&);

  std::string_view name;
  Pattern pattern;
  Action action;
};

class RuleSet {
 public:
  RuleSet(std::string_view name, std::vector<Rule> rules) : name_(name), rules_(std::move(rules)) {}

  std::string_view name() const { return name_; }
  const std::vector<Rule>& rules() const { return rules_; }

 private:
  std::string_view name_;
  std::vector<Rule> rules_;
};

}  // namespace anneal
