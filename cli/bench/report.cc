#include "cli/bench/report.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/output.h"

namespace anneal::cli {
namespace {

// Three or four digits that count, whatever the size.
std::string number_text(double value) {
  if (value >= 1e6) return fmt::format("{:.4g}", value);
  return fmt::format("{:.{}f}", value, value >= 1000 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3);
}

// Painted after padding, as colours have a length too.
std::string ratio_text(const BenchRow& row) {
  const std::optional<double> ratio = row.ratio();
  if (!ratio) return "";
  constexpr double kNearlyEven = 0.95;
  return paint(*ratio >= 1             ? Colour::Teal
               : *ratio >= kNearlyEven ? Colour::Gold
                                       : Colour::Ember,
               fmt::format("{:>7.2f}", *ratio));
}

Json row_json(const BenchRow& row) {
  const std::optional<double> ratio = row.ratio();
  Json json = Json::object()
                  .set("bench", row.bench)
                  .set("case", row.name)
                  .set("device", row.device)
                  .set("threads", row.threads)
                  .set("ours", row.ours)
                  .set("unit", row.unit)
                  .set("peer", row.peer_value ? Json(row.peer) : Json())
                  .set("peer_value", row.peer_value ? Json(*row.peer_value) : Json())
                  .set("ratio", ratio ? Json(*ratio) : Json());
  if (!row.note.empty()) json.set("note", row.note);
  if (row.of_halves) json.set("matmul_precision", "high");
  return json;
}

}  // namespace

std::optional<double> BenchRow::ratio() const {
  if (!peer_value || *peer_value <= 0 || ours <= 0) return {};
  return more_is_better ? ours / *peer_value : *peer_value / ours;
}

void BenchReport::add(BenchRow row) {
  clear_line();
  if (!json_) {
    if (rows_.empty() || rows_.back().bench != row.bench)
      write(fmt::format("{}{} {:>7} {:>10} {:<8} {:>10} {:>7}\n", rows_.empty() ? "" : "\n",
                        paint(Colour::Bold, fmt::format("{:<44}", row.bench)), "threads", "ours",
                        "", "peer", "ratio"));
    std::string line = fmt::format("{:<44} {:>7} {:>10} {}", row.name, row.threads,
                                   number_text(row.ours), row.unit);
    if (row.peer_value)
      line = fmt::format("{} {:>{}} {}  {}", line, number_text(*row.peer_value),
                         19 - std::min<size_t>(row.unit.size(), 8), ratio_text(row),
                         paint(Colour::Dim, row.peer));
    write(line + "\n");
    flush();
  }
  rows_.push_back(std::move(row));
}

void BenchReport::finish() {
  clear_line();
  if (json_) {
    Json rows = Json::array();
    for (const BenchRow& row : rows_) rows.add(row_json(row));
    return write(Json::object().set("rows", rows).text() + "\n");
  }
  std::vector<std::string_view> notes;
  for (const BenchRow& row : rows_)
    if (!row.note.empty() && std::ranges::find(notes, row.note) == notes.end())
      notes.push_back(row.note);
  if (std::ranges::any_of(rows_, &BenchRow::of_halves))
    notes.emplace_back("large products of f32 were made of f16 halves (--matmul-precision high)");
  if (!notes.empty()) write("\n");
  for (std::string_view note : notes) write(fmt::format("{}\n", note));
}

// On a terminal one line that is written over; else a line each.
void BenchReport::measuring(std::string_view what) {
  constexpr double kPatience = 2;
  const double passed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (isatty(fileno(stderr)) != 0) {
    fmt::print(stderr, "\r\x1b[Kmeasuring {} ...", what);
    line_shown_ = true;
  } else if (passed >= kPatience) {
    fmt::print(stderr, "measuring {} ...\n", what);
  }
}

void BenchReport::clear_line() {
  if (std::exchange(line_shown_, false)) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace anneal::cli
