// What a search found, on disk: read back as it was, by every process, and never where it is
// damaged or of something else.
#include "runtime/disk/plan_records.h"

#include <fstream>
#include <iterator>
#include <thread>

#include <doctest/doctest.h>

#include <anneal/anneal.h>

#include "base/notice.h"
#include "runtime/cpu/cpu_device.h"
#include "schedule/schedule.h"
#include "temporary_folder.h"
#include "tensor/lift.h"
#include "transform/simplify.h"

using namespace anneal;
using namespace anneal::testing;

namespace {

const PlanRecord kRecord{"product (sums [3])", 2e-3, 1.5e-3, 48};

bool is_record(const std::optional<PlanRecord>& found, const PlanRecord& wanted) {
  return found && found->plan == wanted.plan && found->seconds == wanted.seconds &&
         found->planner_seconds == wanted.planner_seconds && found->tried == wanted.tried;
}

// A body to find records by, in its graph.
class Body {
 public:
  explicit Body(int64_t size)
      : scope_(graph_),
        schedule_(schedule_program(
            simplify_program(std::vector{node_of(sum(input("x", {size, 4}), {0}))}))),
        schedule_scope_(*schedule_.graph) {}
  const KernelBody& body() const { return schedule_.kernels[0].phases[0][0].body; }

 private:
  Graph graph_;
  GraphScope scope_;
  Schedule schedule_;
  GraphScope schedule_scope_;
};

// Notices, while it lives.
class Notices {
 public:
  Notices() {
    read_notices([this](std::string_view what, std::string_view) { texts.emplace_back(what); });
  }
  ~Notices() { read_notices({}); }
  std::vector<std::string> texts;
};

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("plan records: a file is read back, and no damaged one") {
  const std::string identity = "target\nbody\n";
  const std::string file = write_record(kRecord, identity);
  CHECK(is_record(read_record(file, identity), kRecord));
  CHECK_FALSE(read_record(file, "target\nother\n"));
  CHECK_FALSE(read_record(file, "target\n"));
  for (size_t i = 0; i < file.size(); ++i) {
    std::string damaged = file;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    CHECK_FALSE(read_record(damaged, identity));
    CHECK_FALSE(read_record(file.substr(0, i), identity));
  }
  CHECK_FALSE(read_record(file + " ", identity));
}

TEST_CASE("plan records: what is kept is found by what the kernel computes, and on disk") {
  const TemporaryFolder folder;
  const Target target = host_cpu_target();
  const Body body(64), other(65);
  PlanRecords records(folder.path(), target, "");
  CHECK_FALSE(records.find(body.body()));
  records.keep(body.body(), kRecord);
  CHECK(is_record(records.find(body.body()), kRecord));
  CHECK_FALSE(records.find(other.body()));

  const Body same(64);  // of another graph
  PlanRecords again(folder.path(), target, "");
  CHECK(is_record(again.find(same.body()), kRecord));
  CHECK(tuned_plan(&again, same.body()) == kRecord.plan);
  {
    const TunedPlansScope none(nullptr);
    CHECK(tuned_plan(&again, same.body()) == "");
    const TunedPlansScope others(&again);
    CHECK(tuned_plan(nullptr, same.body()) == kRecord.plan);
  }
  Target wider = target;
  wider.hardware.l2_bytes += 1 << 20;  // it may be unknown: 0
  CHECK_FALSE(PlanRecords(folder.path(), wider, "").find(same.body()));

  // Without a folder they last as long as the process.
  PlanRecords here("", target, "");
  here.keep(body.body(), kRecord);
  CHECK(is_record(here.find(body.body()), kRecord));
}

TEST_CASE("plan records: a damaged file is ignored, with one notice") {
  const TemporaryFolder folder;
  const Body first(64), second(65);
  {
    PlanRecords records(folder.path(), host_cpu_target(), "");
    records.keep(first.body(), kRecord);
    records.keep(second.body(), kRecord);
  }
  for (const std::string& path : folder.files()) {
    const std::string file = read(path);
    std::ofstream(path, std::ios::binary) << file.substr(0, file.size() - 3);
  }
  Notices notices;
  PlanRecords records(folder.path(), host_cpu_target(), "");
  CHECK_FALSE(records.find(first.body()));
  CHECK_FALSE(records.find(second.body()));
  CHECK(notices.texts ==
        std::vector<std::string>{"a tuned plan on disk is damaged and is not used"});
  records.keep(first.body(), kRecord);
  CHECK(is_record(PlanRecords(folder.path(), host_cpu_target(), "").find(first.body()), kRecord));
}

TEST_CASE("plan records: several writers leave whole files") {
  const TemporaryFolder folder;
  const Target target = host_cpu_target();
  std::vector<std::thread> writers;
  for (int64_t writer = 0; writer < 4; ++writer)
    writers.emplace_back([&, writer] {
      const Body body(64);
      PlanRecords records(folder.path(), target, "");
      for (int64_t i = 0; i < 50; ++i)
        records.keep(body.body(),
                     {std::string(static_cast<size_t>(100 * writer + i), 'x'), 1, 1, writer});
    });
  for (std::thread& writer : writers) writer.join();
  const Body body(64);
  const Notices notices;
  const std::optional<PlanRecord> found = PlanRecords(folder.path(), target, "").find(body.body());
  REQUIRE(found.has_value());
  CHECK(found->plan.size() == static_cast<size_t>(100 * found->tried + 49));
  CHECK(notices.texts.empty());
  CHECK(folder.files().size() == 1);
}
