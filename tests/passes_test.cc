// The runner of passes, and the tables it runs: every pass can be named, timed, shown, verified.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/anneal.h>

#include "cli_runner.h"
#include "codegen/pipeline.h"
#include "codegen/target_kernels.h"
#include "error_text.h"
#include "models/program.h"
#include "requests_scope.h"
#include "rewrite/pass_trace.h"
#include "tensor/lift.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

struct WordOptions {
  std::vector<std::string> disabled = {};
};
using Word = std::string;

const PassTable<Word, WordOptions>& word_passes() {
  static const PassTable<Word, WordOptions> table{
      "words",
      "letters",
      {
          {"a", [](Word& word, const WordOptions&) { word += 'a'; }, nullptr, {}, true},
          {"b", [](Word& word, const WordOptions&) { word += 'b'; }},
          {"same", [](Word&, const WordOptions&) {}, nullptr, "rest"},
          {"c", [](Word& word, const WordOptions&) { word += 'c'; },
           [](const Word& word, const WordOptions&) { return word.size() < 4; }, "rest"},
          {"bad", [](Word& word, const WordOptions&) { word += '!'; },
           [](const Word& word, const WordOptions&) { return word.starts_with("bad"); }},
      },
      [](const Word& word) { return word + "\n"; },
      [](const Word& word) { return word.ends_with('!') ? "it shouts" : std::string(); },
      [](const Word& word) { return static_cast<uint64_t>(word.size()); },
      [](const Word& word) { return StateSize{1, static_cast<int64_t>(word.size())}; }};
  return table;
}

Word run(Word word, std::vector<std::string> disabled = {}) {
  run_passes(word_passes(), word, WordOptions{std::move(disabled)});
  return word;
}

// Everything that a target's kernels go through.
void make_kernels(std::string_view program, const Target& target) {
  Graph graph;
  GraphScope scope(graph);
  const models::Program built = models::find_program(program)->build();
  std::vector<NodeRef> roots{node_of(built.loss)};
  for (const Tensor& update : built.updates) roots.push_back(node_of(update));
  const Capabilities capabilities = capabilities_of(target);
  const Schedule schedule = schedule_for(simplify_program(roots), capabilities);
  GraphScope inside(*schedule.graph);
  for (const Kernel& kernel : schedule.kernels)
    for (const KernelPhase& phase : kernel.phases)
      for (const KernelPart& part : phase)
        CHECK(verify(lower_for(part.body, {.capabilities = capabilities}).program) == "");
}

}  // namespace

TEST_CASE("passes: run in order, and are left out by name or family") {
  CHECK(run("") == "abc");
  CHECK(run("", {"b"}) == "ac");
  CHECK(run("", {"rest"}) == "ab");
  CHECK(run("", {"a", "nothing"}) == "abc");  // a is required
  CHECK(run("long") == "longab");             // c has nothing to do
  const RequestsScope asking({.disabled = {"c"}});
  CHECK(run("") == "ab");
}

TEST_CASE("passes: what one makes is shown where it changed something") {
  std::string shown;
  auto show = [&](std::string_view stage, std::string_view pass, std::string_view text) {
    shown += fmt::format("{}/{}: {}", stage, pass, text.empty() ? "-\n" : text);
  };
  {
    const RequestsScope asking({.dump_after = "b", .dump = show});
    run("");
  }
  CHECK(shown == "words/b: ab\n");
  shown.clear();
  const RequestsScope asking({.dump_after = "all", .dump = show});
  run("");
  CHECK(shown == "words/a: a\nwords/b: ab\nwords/same: -\nwords/c: abc\n");
}

TEST_CASE("passes: are counted and timed where it is asked for") {
  auto row_of = [](std::string_view pass) {
    for (const PassTime& row : pass_times())
      if (row.stage == "words" && row.pass == pass) return row;
    return PassTime{};
  };
  run("");
  const PassTime before = row_of("same");
  const RequestsScope asking({.time = true});
  run("");
  run("");
  CHECK(row_of("same").runs == before.runs + 2);
  CHECK(row_of("same").changes == before.changes);
  CHECK(row_of("b").changes == row_of("b").runs);
  CHECK(row_of("b").seconds > 0);
}

TEST_CASE("passes: a trace has what ran while it lives, and its sizes") {
  const PassTrace outer;
  {
    const PassTrace trace;
    run("");
    run("long");
    REQUIRE(trace.rows().size() == 4);
    const PassTrace::Row& b = trace.rows()[1];
    CHECK(b.stage == "words");
    CHECK(b.pass == "b");
    CHECK(b.runs == 2);
    CHECK(b.changes == 2);
    CHECK(b.before == StateSize{2, 1 + 5});
    CHECK(b.after == StateSize{2, 2 + 6});
    CHECK(change_text(b.before, b.after, b.parts) == "2 nodes, 6 -> 8 letters");
    CHECK(trace.rows()[2].changes == 0);
    CHECK(trace.rows()[3].runs == 1);
  }
  CHECK(outer.rows().empty());
}

TEST_CASE("passes: a wrong result is an internal error that names the pass") {
  CHECK(run("bad", {"bad"}) == "badab");
  const RequestsScope asking({.verify = true});
  CHECK_THROWS_WITH_AS(run("bad"), "internal error: after pass bad of words: it shouts",
                       InternalError);
}

TEST_CASE("passes: every stage verifies after every pass, on every named target") {
  const RequestsScope asking({.verify = true});
  for (const Target& target : named_targets())
    for (const char* program : {"mlp", "conv", "attention"}) {
      CAPTURE(target.name);
      CAPTURE(program);
      make_kernels(program, target);
    }
}

TEST_CASE("passes: rules report what they did, wherever they run") {
  const PassTrace trace(1);
  make_kernels("attention", *find_target("cpu-avx2"));
  std::set<std::string_view> sets;
  for (const RewriteLog::Hit& hit : trace.hits()) sets.insert(hit.set);
  for (const char* set : {"movement", "math", "index-division", "index-sums"}) {
    CAPTURE(set);
    CHECK(sets.contains(set));
  }
  // By pass, with texts.
  auto row = std::ranges::find(trace.rows(), "math", &PassTrace::Row::pass);
  REQUIRE(row != trace.rows().end());
  CHECK(std::ranges::count(row->rules.hits(), "math", &RewriteLog::Hit::set) > 0);
  REQUIRE(row->rules.events().size() == 1);
  CHECK(!row->rules.events()[0].before.empty());
  CHECK(row->runs > 1);
}

TEST_CASE("pipeline: every pass has one name in its stage, and what can be left out is listed") {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const PassRow& row : pipeline()) {
    CAPTURE(row.name);
    CHECK(seen.emplace(row.stage, row.name).second);
  }
  const std::vector<std::string> names = names_to_disable();
  for (const char* name : {"tile", "stage", "merge", "online-reduction", "identities/mul-one"})
    CHECK(std::ranges::count(names, name) == 1);
  for (const char* name : {"strip", "rangeify", "math"})
    CHECK(std::ranges::count(names, name) == 0);
}

TEST_CASE("passes of the program: left out, shown and timed by options") {
  const Run plain = with_errors("kernels mlp --forward");
  REQUIRE(plain.code == 0);
  CHECK(with_errors("kernels mlp --forward --disable-pass inline").output != plain.output);
  const Run dumped = with_errors("kernels mlp --forward --dump-after merge-axes");
  CHECK(contains(dumped.output, "// after kernel body, merge-axes"));
  const Run timed = with_errors("kernels mlp --forward --time-passes");
  for (const char* pass : {"rangeify", "fuse-rows", "online-reduction", "math"})
    CHECK(contains(timed.output, pass));
  CHECK(!contains(plain.output, "online-reduction"));
  const Run trained = with_errors("train mlp --steps 1 --data digits --time-passes");
  CHECK(trained.code == 0);
  CHECK(contains(trained.output, "rangeify"));
  CHECK(with_errors("explain mlp --disable-pass movement").output !=
        with_errors("explain mlp").output);
}

TEST_CASE("passes of the program: names that make no sense are usage errors") {
  for (const char* command : {"kernels mlp", "train mlp --steps 1", "explain mlp"}) {
    CAPTURE(command);
    const Run unknown = with_errors(fmt::format("{} --disable-pass rangefy", command));
    CHECK(unknown.code == 2);
    CHECK(contains(unknown.output, "there is no pass 'rangefy'"));
    const Run required = with_errors(fmt::format("{} --disable-pass rangeify", command));
    CHECK(required.code == 2);
    CHECK(contains(required.output, "pass 'rangeify' cannot be left out"));
    CHECK(with_errors(fmt::format("{} --dump-after nothing", command)).code == 2);
  }
}
