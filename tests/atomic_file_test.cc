// Files appear whole or not at all, and what killed processes left goes with the next save.
#include "base/os/atomic_file.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/files.h"
#include "temporary_folder.h"

using namespace anneal;
using namespace anneal::testing;

namespace {

// A process that is killed while it writes.
void leave_half(const std::string& path) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    AtomicFile file(path);
    file.write("half of");
    std::raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
}

bool save(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  return file.commit();
}

}  // namespace

TEST_CASE("atomic file: a save removes what was left of those before it") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path());
  const std::string path = folder.path() + "/model.safetensors";
  CHECK(save(path, "old"));
  leave_half(path);
  CHECK(folder.files().size() == 2);
  CHECK(read_file(path, 100) == "old");
  CHECK(save(path, "new"));
  CHECK(folder.files() == std::vector<std::string>{path});
  CHECK(read_file(path, 100) == "new");
}

TEST_CASE("atomic file: what is being written, and what is another's, stays") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path());
  const std::string path = folder.path() + "/model", other = folder.path() + "/model.old";
  leave_half(other);
  for (const char* name : {"/model.tmp", "/model.notes.tmp", "/model.0123456789ABCDEF.tmp"})
    std::ofstream(folder.path() + name) << "the user's";
  AtomicFile open(path);
  open.write("first");
  CHECK(folder.files().size() == 5);
  CHECK(save(path, "second"));
  CHECK(folder.files().size() == 6);
  CHECK(open.commit());
  CHECK(read_file(path, 100) == "first");
  CHECK(save(other, "third"));
  CHECK(folder.files().size() == 5);
}

TEST_CASE("atomic file: without commit nothing remains") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path());
  {
    AtomicFile file(folder.path() + "/a");
    file.write("text");
  }
  CHECK(folder.files().empty());
  CHECK(AtomicFile(folder.path()).error() == "it is a directory");
  AtomicFile nowhere(folder.path() + "/no/such/folder");
  CHECK(nowhere.error() == "No such file or directory");
  CHECK_FALSE(nowhere.commit());
}

TEST_CASE("atomic file: many writers of one path never remove each other's") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path());
  const std::string path = folder.path() + "/shared";
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      bool right = true;
      for (int i = 0; i < 100; ++i) right &= save(path, std::string(1000, 'a'));
      _exit(right ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  CHECK(folder.files() == std::vector<std::string>{path});
  CHECK(read_file(path, 2000) == std::string(1000, 'a'));
}
