// Plans that were measured to do better than the planner's own, for kernels of this CPU: kept on
// disk for every process of this user. Must not measure anything.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "body/kernel_body.h"
#include "runtime/cpu/kernel_folder.h"
#include "runtime/device/device.h"
#include "target/target.h"

namespace anneal {

struct PlanRecord {
  std::string plan;  // as LowerOptions takes it; empty: the planner's own does best
  double planner_seconds = 0, seconds = 0;  // of a run with the planner's own, and with this one
  int64_t tried = 0;                        // candidates
};

// The bytes of a file, checked on the way back in: one that is cut off, damaged, of another format
// or of another kernel is none. `identity` says whose it is, in every respect that matters.
std::string write_record(const PlanRecord& record, std::string_view identity);
std::optional<PlanRecord> read_record(std::string_view file, std::string_view identity);

// Any thread may call. A record is found by what the kernel computes, the target, and the version
// of the planner and of the code generator; and not by how many threads or cores run it, because
// results must not depend on them.
class PlanRecords {
 public:
  // Nothing is kept on disk where `directory` is empty.
  PlanRecords(std::string directory, const Target& target,
              const KernelFolderLimits& limits = kLimits);

  // In the graph of the body. A file that is damaged is no record, and one notice says so.
  std::optional<PlanRecord> find(const KernelBody& body);
  void keep(const KernelBody& body, PlanRecord record);

  static constexpr KernelFolderLimits kLimits{int64_t{16} << 20, 4000};
  static constexpr FolderContent kContent{"plans", ".plan", "tuned plans"};

 private:
  std::string identity_of(const KernelBody& body) const;

  std::string identity_, path_;
  KernelFolder folder_;
  std::mutex mutex_;                                        // of what follows
  std::map<std::string, std::optional<PlanRecord>> known_;  // by identity
  bool told_ = false;
};

// Those of this process.
PlanRecords& plan_records();

// Called before a schedule is compiled for this CPU, by the thread that does so, and not for what
// it compiles itself; it may keep records. An empty one ends that.
using PlanSearch = std::function<void(const Schedule& schedule, Device& device)>;
void search_plans(PlanSearch search);
void run_plan_search(const Schedule& schedule, Device& device);

// While one lives, this thread compiles with the planner's own plans.
class WithoutRecords {
 public:
  WithoutRecords();
  ~WithoutRecords();
  WithoutRecords(const WithoutRecords&) = delete;
  WithoutRecords& operator=(const WithoutRecords&) = delete;

  static bool active();
};

}  // namespace anneal
