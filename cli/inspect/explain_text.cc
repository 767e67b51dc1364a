#include "cli/inspect/explain_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/output.h"
#include "codegen/pipeline.h"
#include "transform/simplify.h"

namespace anneal::cli {

Json hits_json(const Hits& hits) {
  Json list = Json::array();
  for (const RewriteLog::Hit& hit : hits)
    list.add(Json::object().set("set", hit.set).set("rule", hit.rule).set("count", hit.count));
  return list;
}

Hits ordered_hits(const RewriteLog& log) {
  Hits hits;
  for (const RuleSet* set : rule_sets())
    for (const Rule& rule : set->rules())
      for (const RewriteLog::Hit& hit : log.hits())
        if (hit.set == set->name() && hit.rule == rule.name) hits.push_back(hit);
  return hits;
}

void write_hits(const Hits& hits) {
  int64_t total = 0;
  for (const RewriteLog::Hit& hit : hits) {
    write(fmt::format("  {:<17} {:<24} {:>7}\n", hit.set, hit.rule, hit.count));
    total += hit.count;
  }
  write(fmt::format("  {:<42} {:>7}\n", "all", total));
}

void write_fact(std::string_view title, std::string_view text) {
  write(fmt::format("  {} {}\n", paint(Colour::Dim, fmt::format("{:<9}", title)), text));
}

}  // namespace anneal::cli
