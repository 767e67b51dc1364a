// Where programs run. "cpu" compiles them; "interpreter" computes what every op means, slowly.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <anneal/location.h>

namespace anneal {

// The devices there are, by name.
std::vector<std::string> devices();

// What programs run on from now on, on every thread. At first it is what the environment variable
// ANNEAL_DEVICE names, else the first of devices().
void set_device(std::string_view name,
                std::source_location where = std::source_location::current());
std::string device_name();  // of this thread, now

// Another device for this thread while it lives.
class DeviceScope {
 public:
  explicit DeviceScope(std::string_view name,
                       std::source_location where = std::source_location::current());
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  void* outer_;
};

// How many threads of the CPU compute. At first it is what ANNEAL_THREADS says, else one for each
// core this process may use. No result depends on it.
void set_threads(int count, std::source_location where = std::source_location::current());
int threads();

}  // namespace anneal
