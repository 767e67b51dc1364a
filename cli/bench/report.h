// What a benchmark found, as a table that grows while it runs or as JSON at the end; and how far it
// is, for whoever waits.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace anneal::cli {

// One figure of ours beside that of a peer, both measured in this run.
struct BenchRow {
  std::string bench, name, device;
  int threads = 1;
  double ours = 0;
  std::string unit;
  bool more_is_better = true;        // a rate; else a time or an amount
  std::string peer;                  // who it is compared with; empty: nobody
  std::optional<double> peer_value;  // none: the peer is missing
  std::string note;
  bool of_halves = false;  // products of f32 were made of f16 halves: --matmul-precision high

  std::optional<double> ratio() const;  // above 1: ours is better
};

class BenchReport {
 public:
  explicit BenchReport(bool json) : json_(json) {}
  ~BenchReport() { clear_line(); }
  BenchReport(const BenchReport&) = delete;
  BenchReport& operator=(const BenchReport&) = delete;

  // Says on stderr what comes next, once someone has waited for two seconds.
  void measuring(std::string_view what);
  // In a table, at once.
  void add(BenchRow row);
  bool empty() const { return rows_.empty(); }
  // JSON, if that is wanted, or the notes of the rows.
  void finish();

 private:
  void clear_line();

  bool json_, line_shown_ = false;
  std::vector<BenchRow> rows_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace anneal::cli
