#include "runtime/execute/evaluator.h"

#include <algorithm>
#include <deque>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <anneal/counters.h>
#include <anneal/device.h>

#include "base/call_site.h"
#include "base/os/environment.h"
#include "base/os/mutex.h"
#include "base/traffic.h"
#include "codegen/backends.h"
#include "runtime/execute/executor.h"

namespace anneal {
namespace {

struct Entry {
  std::string name;
  std::function<std::unique_ptr<Evaluator>()> make;
  std::span<const std::string_view> settings;  // that it reads when it is made
  bool computes_f64 = true;
  std::unique_ptr<Evaluator> evaluator = nullptr;
};

// A device without f64, and another that computes what needs it: initial values and the like, which
// are made once. What is compiled stays on the device, and says so where it cannot.
class WithoutF64 : public Executor {
 public:
  WithoutF64(std::unique_ptr<Device> device, std::function<Evaluator&()> other)
      : Executor(std::move(device)), other_(std::move(other)) {}

  std::vector<std::shared_ptr<Storage>> run(const Request& request) override {
    std::vector<NodeRef> roots = request.roots;
    roots.insert(roots.end(), request.assigns.begin(), request.assigns.end());
    const bool wide = std::ranges::any_of(topological_order(roots),
                                          [](NodeRef node) { return node->dtype == DType::F64; });
    return wide ? other_().run(request) : Executor::run(request);
  }

 private:
  std::function<Evaluator&()> other_;
};

struct Registry {
  Mutex mutex;
  std::deque<Entry> entries;  // which never move
  Entry* current = nullptr;

  Registry() {
    for (const Backend* backend : backends()) add(*backend);
    entries.push_back({"interpreter", make_interpreter, {}});
  }

  void add(const Backend& backend) {
    auto make = [this, &backend]() -> std::unique_ptr<Evaluator> {
      if (backend.computes_f64) return std::make_unique<Executor>(backend.make_device());
      return std::make_unique<WithoutF64>(backend.make_device(), [this]() -> Evaluator& {
        return made(*std::ranges::find_if(entries, &Entry::computes_f64));
      });
    };
    entries.push_back({std::string(backend.name), make, backend.settings, backend.computes_f64});
  }

  static Evaluator& made(Entry& entry) {
    if (!entry.evaluator) entry.evaluator = entry.make();
    return *entry.evaluator;
  }

  std::vector<std::string> names() {
    std::vector<std::string> result;
    for (const Entry& entry : entries) result.push_back(entry.name);
    return result;
  }

  // `variable`: of the environment, that names it; empty: none does.
  Entry& find(std::string_view name, std::string_view variable) {
    for (Entry& entry : entries)
      if (entry.name == name) return entry;
    const std::string hint = fmt::format("the devices are {}", fmt::join(names(), ", "));
    if (!variable.empty())
      throw EnvironmentError(
          fmt::format("there is no device \"{}\", which {} names", name, variable), hint);
    fail(fmt::format("there is no device \"{}\"", name), hint);
  }

  Entry& chosen() {
    if (current) return *current;
    const std::string name = environment("ANNEAL_DEVICE");
    current = name.empty() ? &entries.front() : &find(name, "ANNEAL_DEVICE");
    return *current;
  }
};

Registry& registry() {
  static auto& registry = *new Registry;  // lives as long as the process: threads may outlive main
  return registry;
}

thread_local Entry* t_entry = nullptr;  // of the innermost DeviceScope

}  // namespace

Evaluator& current_evaluator() {
  Registry& devices = registry();
  const Lock lock(devices.mutex);
  Entry& entry = t_entry ? *t_entry : devices.chosen();
  return Registry::made(entry);
}

Counters counters() {
  const RuntimeCounters run = current_evaluator().counters();
  Counters all;
  all.nodes_built = static_cast<int64_t>(current_graph().nodes_made());
  all.kernels_scheduled = run.kernels_compiled;
  all.kernels_compiled = run.bodies_compiled;
  all.launches = run.launches;
  all.bytes_allocated = traffic().allocated;
  all.host_to_device_bytes = traffic().host_to_device;
  all.device_to_host_bytes = traffic().device_to_host;
  return all;
}

void add_device(std::string_view name, std::function<std::unique_ptr<Evaluator>()> make) {
  Registry& devices = registry();
  const Lock lock(devices.mutex);
  if (std::ranges::find(devices.entries, name, &Entry::name) != devices.entries.end())
    throw InternalError(fmt::format("there is a device \"{}\" already", name));
  devices.entries.push_back({std::string(name), std::move(make), {}});
}

std::vector<std::string> devices() {
  const Lock lock(registry().mutex);
  return registry().names();
}

std::vector<std::string> devices_with_setting(std::string_view setting) {
  const Lock lock(registry().mutex);
  std::vector<std::string> names;
  for (const Entry& entry : registry().entries)
    if (std::ranges::count(entry.settings, setting) > 0) names.push_back(entry.name);
  return names;
}

// Of the backend that has some; null where none was built.
static const BackendThreads* backend_threads() {
  for (const Backend* backend : backends())
    if (backend->threads) return backend->threads;
  return nullptr;
}

void set_threads(int count, std::source_location where) {
  CallScope call("set_threads", where);
  if (count < 1) fail(fmt::format("{} threads cannot compute anything", count), "use 1 or more");
  const BackendThreads* threads = backend_threads();
  if (!threads && count > 1)
    fail(fmt::format("{} threads are too many: no device of this build computes with threads",
                     count),
         "build the library with ANNEAL_CPU=ON");
  if (threads) threads->set(count);
}

int threads() {
  const BackendThreads* threads = backend_threads();
  return threads ? threads->count() : 1;
}

void set_device(std::string_view name, std::source_location where) {
  CallScope call("set_device", where);
  const Lock lock(registry().mutex);
  registry().current = &registry().find(name, "");
}

std::string device_name() {
  const Lock lock(registry().mutex);
  return t_entry ? t_entry->name : registry().chosen().name;
}

DeviceScope::DeviceScope(std::string_view name, std::source_location where) : outer_(t_entry) {
  CallScope call("DeviceScope", where);
  const Lock lock(registry().mutex);
  t_entry = &registry().find(name, "");
}

DeviceScope::~DeviceScope() { t_entry = static_cast<Entry*>(outer_); }

}  // namespace anneal
