#include "base/notice.h"

#include <utility>

#include "base/os/mutex.h"

namespace anneal {
namespace {

struct Channel {
  Mutex mutex;
  NoticeReader reader;
};

Channel& channel() {
  static auto& channel = *new Channel;  // lives as long as the process: threads may outlive main
  return channel;
}

}  // namespace

void read_notices(NoticeReader reader) {
  const Lock lock(channel().mutex);
  channel().reader = std::move(reader);
}

void notice(std::string_view what, std::string_view hint) {
  const Lock lock(channel().mutex);
  if (channel().reader) channel().reader(what, hint);
}

}  // namespace anneal
