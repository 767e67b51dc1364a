// What is being done, for people who wait: shown on standard error once it has taken two seconds. A
// terminal sees the seconds go by and nothing of it in the end, others get one line.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace anneal::cli {

class Busy {
 public:
  explicit Busy(std::string what);
  ~Busy();
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

  // How far it is, shown behind what the newest one does; false where nothing is being done. Any
  // thread may call it.
  static bool set_detail(const std::string& detail);

 private:
  void watch();

  std::string what_, detail_;
  Busy* outer_ = nullptr;
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace anneal::cli
