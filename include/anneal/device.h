// Where programs run. "cpu" compiles them; "interpreter" computes what every op means, slowly.
#pragma once

#include <source_location>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace anneal
