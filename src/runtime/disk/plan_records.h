// What a search recorded, kept on disk for every process of this user. Must not measure anything.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/os/mutex.h"
#include "runtime/device/tuned_plans.h"
#include "runtime/disk/kernel_folder.h"
#include "target/target.h"

namespace anneal {

// The bytes of a file, checked on the way back in: one that is cut off, damaged, of another format
// or of another kernel is none. `identity` says whose it is, in every respect that matters.
std::string write_record(const PlanRecord& record, std::string_view identity);
std::optional<PlanRecord> read_record(std::string_view file, std::string_view identity);

// A record is found by what the kernel computes, the target, and the version of the planner and of
// what makes and runs the code; and not by how many threads or cores run it, because results must
// not depend on them.
class PlanRecords : public TunedPlans {
 public:
  // Nothing is kept on disk where `directory` is empty. `makers`: the code generator, the driver,
  // and all else that a target does not name.
  PlanRecords(std::string directory, const Target& target, std::string_view makers,
              const KernelFolderLimits& limits = kLimits);

  // A file that is damaged is no record, and one notice says so.
  std::optional<PlanRecord> find(const KernelBody& body) override;
  void keep(const KernelBody& body, PlanRecord record) override;

  static constexpr KernelFolderLimits kLimits{int64_t{16} << 20, 4000};
  static constexpr FolderContent kContent{"plans", ".plan", "tuned plans"};

 private:
  std::string identity_of(const KernelBody& body) const;

  std::string identity_, path_;
  KernelFolder folder_;
  Mutex mutex_;                                             // of what follows
  std::map<std::string, std::optional<PlanRecord>> known_;  // by identity
  bool told_ = false;
};

}  // namespace anneal
