// Choices of the host that decide what a function builds, such as the mode of a module. Whoever
// captures a function learns which ones it looked at, so that a plan is not used after one changed.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace anneal {

// A number that its owner shares with those who looked at it.
using HostChoice = std::shared_ptr<int64_t>;

// Noted by the innermost ChoicesSeen of this thread.
int64_t look_at(const HostChoice& choice);
// A function that chooses for itself depends on nothing: what it chose is not noted from then on.
void choose(const HostChoice& choice, int64_t value);

// Open from its construction to its end.
class ChoicesSeen {
 public:
  ChoicesSeen();
  ~ChoicesSeen();
  ChoicesSeen(const ChoicesSeen&) = delete;
  ChoicesSeen& operator=(const ChoicesSeen&) = delete;

  // With the value each had.
  using List = std::vector<std::pair<HostChoice, int64_t>>;
  List take() { return std::move(seen_); }

 private:
  friend int64_t look_at(const HostChoice& choice);
  friend void choose(const HostChoice& choice, int64_t value);

  List seen_;
  std::vector<HostChoice> chosen_;  // by the function itself
  ChoicesSeen* outer_;
};

// Whether all of them are what they were.
bool unchanged(const ChoicesSeen::List& seen);

}  // namespace anneal
