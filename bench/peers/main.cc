// anneal_bench_peers: times other libraries for `anneal bench`, which runs it as a process of its
// own. Reads lines "SECONDS CASE", answers each with one line:
//   time SECONDS NAME   the fastest run of any library in about that time, and which it was
//   none REASON         nothing here does that
#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <limits>
#include <sstream>

#include "peer.h"

namespace anneal::peers {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double timed(const Contender& contender) {
  const double start = now();
  contender.run();
  return now() - start;
}

// Memory and code of the last case stay, as the same one is asked for again and again.
class Peers {
 public:
  std::string answer(const std::string& line) {
    std::istringstream in(line);
    double seconds = 0;
    if (!(in >> seconds)) return "none the line does not begin with a number";
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    if (words != words_) {
      contenders_.clear();
      contenders_ = contenders(words);
      words_ = words;
      for (const Contender& contender : contenders_) contender.run();  // to warm up
    }
    if (contenders_.empty()) return "none no library does that";
    return measure(seconds / static_cast<double>(contenders_.size()));
  }

 private:
  std::string measure(double seconds) const {
    double least = std::numeric_limits<double>::infinity();
    const Contender* best = nullptr;
    for (const Contender& contender : contenders_) {
      const double end = now() + seconds;
      do {
        const double time = timed(contender);
        if (time < least) best = &contender;
        least = std::min(least, time);
      } while (now() < end);
    }
    std::ostringstream out;
    out.precision(17);
    out << "time " << least << ' ' << best->name;
    return out.str();
  }

  std::vector<std::string> words_;
  std::vector<Contender> contenders_;
};

}  // namespace
}  // namespace anneal::peers

int main() {
  anneal::peers::Peers peers;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << peers.answer(line) << std::endl;
    } catch (const std::exception& error) {
      std::cout << "none " << error.what() << std::endl;
    }
  }
  return 0;
}
