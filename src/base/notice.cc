#include "base/notice.h"

#include <mutex>
#include <utility>

namespace anneal {
namespace {

struct Channel {
  std::mutex mutex;
  NoticeReader reader;
};

Channel& channel() {
  static auto& channel = *new Channel;  // lives as long as the process: threads may outlive main
  return channel;
}

}  // namespace

void read_notices(NoticeReader reader) {
  std::lock_guard lock(channel().mutex);
  channel().reader = std::move(reader);
}

void notice(std::string_view what, std::string_view hint) {
  std::lock_guard lock(channel().mutex);
  if (channel().reader) channel().reader(what, hint);
}

}  // namespace anneal
