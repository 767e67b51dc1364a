// Layout: a line with the format, one with the checksum of what follows; the length of the
// identity, and it; what was measured; the plan.
#include "runtime/disk/plan_records.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "anneal_version.h"
#include "base/key.h"
#include "base/notice.h"
#include "base/os/files.h"
#include "planner_revision.h"

namespace anneal {
namespace {

constexpr std::string_view kFormat = "anneal plan 1\n";
constexpr uint64_t kFileSeed = 0x706c616e73, kChecksumSeed = 0x7265636f7264;
constexpr size_t kChecksumLength = 32;

Key key_of(std::string_view text, uint64_t seed) {
  KeyBuilder key(seed);
  key.add(text);
  return key.finish();
}

// What is before the separator, which is taken away with it; nothing where there is none.
std::optional<std::string_view> take_until(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return taken;
}

template <typename Number>
bool take_number(std::string_view& rest, char separator, Number& number) {
  const std::optional<std::string_view> text = take_until(rest, separator);
  if (!text) return false;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  return error == std::errc() && end == text->data() + text->size();
}

// Facts and choices that plans follow from, but for how many cores share the work.
std::string text_of(const Target& target) {
  const Hardware& has = target.hardware;
  const Tuning& tuning = target.tuning;
  std::string text = fmt::format("{}\n{}\n{}\n{}\n{} {} {} {} {}\n", target.name, target.triple,
                                 target.cpu, target.features, has.vector_bytes,
                                 has.vector_registers, has.l1_bytes, has.l2_bytes, has.l3_bytes);
  text += fmt::format("{} {} {} {} {} {} {} {} {}\n", has.f16, has.workgroup_bytes,
                      has.max_workgroup_threads, has.subgroup_min, has.subgroup_max,
                      has.subgroup_operations, has.max_buffers, has.max_binding_bytes,
                      has.matrix_units.size());
  return text + fmt::format("{} {} {} {} {} {} {}\n", tuning.workgroup_threads,
                            tuning.most_workgroup_threads, tuning.parallel_threads,
                            tuning.most_registers, tuning.stage_products,
                            tuning.emulate_matrix_unit, tuning.least_matrix_work);
}

}  // namespace

std::string write_record(const PlanRecord& record, std::string_view identity) {
  const std::string content =
      fmt::format("{}\n{}{:.9g} {:.9g} {}\n{}", identity.size(), identity, record.planner_seconds,
                  record.seconds, record.tried, record.plan);
  return fmt::format("{}{}\n{}", kFormat, to_text(key_of(content, kChecksumSeed)), content);
}

std::optional<PlanRecord> read_record(std::string_view file, std::string_view identity) {
  if (!file.starts_with(kFormat)) return std::nullopt;
  file.remove_prefix(kFormat.size());
  const std::optional<std::string_view> checksum = take_until(file, '\n');
  if (!checksum || checksum->size() != kChecksumLength ||
      *checksum != to_text(key_of(file, kChecksumSeed)))
    return std::nullopt;
  size_t length = 0;
  if (!take_number(file, '\n', length) || !file.starts_with(identity) || length != identity.size())
    return std::nullopt;
  file.remove_prefix(length);
  PlanRecord record;
  if (!take_number(file, ' ', record.planner_seconds) || !take_number(file, ' ', record.seconds) ||
      !take_number(file, '\n', record.tried))
    return std::nullopt;
  record.plan = file;
  return record;
}

PlanRecords::PlanRecords(std::string directory, const Target& target, std::string_view makers,
                         const KernelFolderLimits& limits)
    : identity_(fmt::format("{}\n{}\n{}\n{}", ANNEAL_VERSION, ANNEAL_PLANNER_REVISION, makers,
                            text_of(target))),
      path_(fmt::format("{}/{}", directory, kContent.folder)),
      folder_(std::move(directory), limits, kContent) {}

std::string PlanRecords::identity_of(const KernelBody& body) const {
  return identity_ + to_text(body);
}

std::optional<PlanRecord> PlanRecords::find(const KernelBody& body) {
  {
    const Lock lock(mutex_);  // nobody has ever searched
    if (known_.empty() && !folder_exists(path_)) return std::nullopt;
  }
  const std::string identity = identity_of(body);
  const Lock lock(mutex_);
  const auto [entry, fresh] = known_.try_emplace(identity);
  if (!fresh) return entry->second;
  if (const std::optional<std::string> file = folder_.read(key_of(identity, kFileSeed))) {
    entry->second = read_record(*file, identity);
    if (!entry->second && !std::exchange(told_, true))
      notice("a tuned plan on disk is damaged and is not used",
             "anneal tune finds it again, anneal cache clear removes all of them");
  }
  return entry->second;
}

void PlanRecords::keep(const KernelBody& body, PlanRecord record) {
  const std::string identity = identity_of(body);
  folder_.write(key_of(identity, kFileSeed), write_record(record, identity));
  const Lock lock(mutex_);
  known_[identity] = std::move(record);
}

}  // namespace anneal
