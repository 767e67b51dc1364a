// Reads what Linux offers under /proc and /sys; elsewhere most of it stays unknown.
#include "base/os/machine.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>
#include <thread>

namespace anneal {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "model name	: AMD EPYC" gives what follows the colon of the first line that starts so.
std::string entry(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

int64_t kilobytes(const std::string& name) {
  std::istringstream text(entry("/proc/meminfo", name));
  int64_t value = 0;
  text >> value;
  return value * 1024;
}

// "32K", "1024K", "32M".
int64_t size_of(const std::string& text) {
  std::istringstream in(text);
  int64_t value = 0;
  char unit = ' ';
  in >> value >> unit;
  return unit == 'K' ? value << 10 : unit == 'M' ? value << 20 : unit == 'G' ? value << 30 : value;
}

// "0-3,8" names five.
int count_of_list(const std::string& text) {
  std::istringstream in(text);
  int count = 0;
  for (std::string part; std::getline(in, part, ',');) {
    std::istringstream range(part);
    int begin = 0, end = 0;
    char dash = ' ';
    if (!(range >> begin)) continue;
    count += range >> dash >> end ? end - begin + 1 : 1;
  }
  return std::max(count, 1);
}

std::vector<CacheLevel> read_caches() {
  std::vector<CacheLevel> caches;
  for (int i = 0;; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string level = first_line(folder + "level");
    if (level.empty()) return caches;
    std::string kind = first_line(folder + "type");
    std::ranges::transform(kind, kind.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    caches.push_back({level[0] - '0', kind, size_of(first_line(folder + "size")),
                      count_of_list(first_line(folder + "shared_cpu_list"))});
  }
}

// "always [madvise] never" gives madvise.
std::string chosen(const std::string& text) {
  const size_t begin = text.find('['), end = text.find(']');
  return begin == std::string::npos || end == std::string::npos
             ? ""
             : text.substr(begin + 1, end - begin - 1);
}

struct Feature {
  std::string_view name;  // as Linux spells it
  int vector_bits;        // that it brings
};
constexpr std::array kFeatures{
    Feature{"sse4_2", 128},    Feature{"avx", 256},       Feature{"avx2", 256},
    Feature{"fma", 0},         Feature{"f16c", 0},        Feature{"avx512f", 512},
    Feature{"avx512bw", 512},  Feature{"avx512vl", 0},    Feature{"avx512_vnni", 0},
    Feature{"avx512_bf16", 0}, Feature{"avx512_fp16", 0}, Feature{"amx_tile", 0},
    Feature{"asimd", 128},     Feature{"asimdhp", 0},     Feature{"sve", 0},
    Feature{"bf16", 0},        Feature{"i8mm", 0},
};

void read_features(Machine& machine) {
  std::string list = entry("/proc/cpuinfo", "flags");
  if (list.empty()) list = entry("/proc/cpuinfo", "Features");  // on Arm
  std::istringstream in(list);
  const std::set<std::string, std::less<>> present{std::istream_iterator<std::string>(in), {}};
  for (const Feature& feature : kFeatures) {
    if (!present.contains(feature.name)) continue;
    machine.features.emplace_back(feature.name);
    machine.vector_bits = std::max(machine.vector_bits, feature.vector_bits);
  }
}

}  // namespace

Machine describe_machine() {
  Machine machine;
  machine.cpu = entry("/proc/cpuinfo", "model name");
  machine.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  read_features(machine);
  machine.caches = read_caches();
  machine.memory_bytes = kilobytes("MemTotal");
  machine.free_bytes = kilobytes("MemAvailable");
  machine.huge_pages = chosen(first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
  std::istringstream(first_line("/proc/loadavg")) >> machine.load;
  return machine;
}

int64_t available_memory_bytes() {
  constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
  const int64_t free = kilobytes("MemAvailable");
  int64_t limit = 0, used = 0;
  const bool limited = std::istringstream(first_line("/sys/fs/cgroup/memory.max")) >> limit &&
                       std::istringstream(first_line("/sys/fs/cgroup/memory.current")) >> used;
  const int64_t left = limited ? std::max<int64_t>(0, limit - used) : kUnknown;
  return std::min(free > 0 ? free : kUnknown, left);
}

}  // namespace anneal
