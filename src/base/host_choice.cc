#include "base/host_choice.h"

#include <algorithm>

namespace anneal {
namespace {

thread_local ChoicesSeen* t_seen = nullptr;  // the innermost

}  // namespace

ChoicesSeen::ChoicesSeen() : outer_(t_seen) { t_seen = this; }
ChoicesSeen::~ChoicesSeen() { t_seen = outer_; }

int64_t look_at(const HostChoice& choice) {
  if (t_seen && std::ranges::count(t_seen->chosen_, choice) == 0 &&
      std::ranges::count(t_seen->seen_, std::pair(choice, *choice)) == 0)
    t_seen->seen_.emplace_back(choice, *choice);
  return *choice;
}

void choose(const HostChoice& choice, int64_t value) {
  if (t_seen && std::ranges::count(t_seen->chosen_, choice) == 0) t_seen->chosen_.push_back(choice);
  *choice = value;
}

bool unchanged(const ChoicesSeen::List& seen) {
  return std::ranges::all_of(seen,
                             [](const auto& choice) { return *choice.first == choice.second; });
}

}  // namespace anneal
