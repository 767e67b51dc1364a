// The kernels on disk: where they lie, how many there can be, which go first, whose they are, and
// what killed processes leave.
#include "runtime/disk/kernel_folder.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/notice.h"
#include "base/os/environment.h"
#include "base/os/temporary_file.h"
#include "environment_scope.h"
#include "error_text.h"
#include "temporary_folder.h"

using namespace anneal;
using namespace anneal::testing;

namespace {

Key key_of(int number) {
  KeyBuilder builder(7);
  builder.add(static_cast<uint64_t>(number));
  return builder.finish();
}

std::string text_of(int number) { return fmt::format("{:0100}", number); }  // 100 bytes

// The notices of a test.
class Notices {
 public:
  Notices() {
    read_notices([this](std::string_view what, std::string_view) { all.emplace_back(what); });
  }
  ~Notices() { read_notices(nullptr); }
  Notices(const Notices&) = delete;
  Notices& operator=(const Notices&) = delete;

  std::vector<std::string> all;
};

void make_older(const std::string& path, int hours) {
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours));
}

std::string path_of(const TemporaryFolder& folder, int number) {
  const std::string name = to_text(key_of(number));
  return fmt::format("{}/kernels/{}/{}.kernel", folder.path(), name.substr(0, 2), name);
}

unsigned mode_of(const std::string& path) {
  struct stat status = {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

int run_child(const std::function<void()>& work) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace

TEST_CASE("kernel folder: kernels lie in folders of their own that nobody else can enter") {
  const mode_t mask = umask(0);  // even where new files are everybody's
  const TemporaryFolder folder;
  KernelFolder kernels(folder.path() + "/deep/cache", {});
  kernels.write(key_of(1), text_of(1));
  umask(mask);
  REQUIRE(folder.files().size() == 1);
  const std::string path = folder.files()[0], name = to_text(key_of(1));
  CHECK(path ==
        fmt::format("{}/deep/cache/kernels/{}/{}.kernel", folder.path(), name.substr(0, 2), name));
  CHECK(mode_of(path) == 0600);
  const std::filesystem::path part = std::filesystem::path(path).parent_path();
  for (const std::filesystem::path& each :
       {part, part.parent_path(), part.parent_path().parent_path()})
    CHECK(mode_of(each.string()) == 0700);
  CHECK(kernels.read(key_of(1)) == text_of(1));
  CHECK_FALSE(kernels.read(key_of(2)));
  CHECK(kernels.not_own().empty());
}

TEST_CASE("kernel folder: the one that was not used for longest goes first") {
  const TemporaryFolder folder;
  {
    KernelFolder all(folder.path(), {});
    for (int i = 0; i < 10; ++i) {
      all.write(key_of(i), text_of(i));
      make_older(path_of(folder, i), 100 - i);
    }
    CHECK(all.contents().files == 10);
    CHECK(all.contents().bytes == 1000);
    CHECK(all.contents().oldest == doctest::Approx(100 * 3600).epsilon(0.01));
    CHECK(all.contents().newest == doctest::Approx(91 * 3600).epsilon(0.01));
    CHECK(all.read(key_of(0)) == text_of(0));  // a use
    CHECK(all.contents().newest < 3600);
  }
  for (const KernelFolderLimits& limits :
       {KernelFolderLimits{.bytes = 1000}, KernelFolderLimits{.files = 9}}) {
    const TemporaryFolder copy;
    std::filesystem::copy(folder.path(), copy.path(), std::filesystem::copy_options::recursive);
    for (int i = 0; i < 10; ++i)
      std::filesystem::last_write_time(path_of(copy, i),
                                       std::filesystem::last_write_time(path_of(folder, i)));
    std::filesystem::permissions(copy.path(), std::filesystem::perms::owner_all);
    KernelFolder kernels(copy.path(), limits);
    kernels.write(key_of(10), text_of(10));
    // Three quarters of what is allowed stay.
    CHECK(kernels.contents().files == 7);
    for (int i : {0, 10, 9, 8, 7, 6, 5}) CHECK(kernels.read(key_of(i)));
    for (int i : {1, 2, 3, 4}) CHECK_FALSE(kernels.read(key_of(i)));
  }
}

TEST_CASE("kernel folder: many kernels in one process and in several stay within the limits") {
  const TemporaryFolder folder;
  const KernelFolderLimits limits{.bytes = 4000, .files = 20};
  {
    KernelFolder kernels(folder.path(), limits);
    for (int i = 0; i < 500; ++i) {
      kernels.write(key_of(i), text_of(i));
      if (i % 50 == 0) CHECK(kernels.contents().files <= 20);
    }
  }
  std::vector<pid_t> children;
  for (int child = 0; child < 3; ++child) {
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      bool right = true;
      for (int round = 0; round < 10; ++round) {
        KernelFolder kernels(folder.path(), limits);
        for (int i = 0; i < 30; ++i) {
          const int number = 100 * child + i;
          kernels.write(key_of(number), text_of(number));
          const std::optional<std::string> read = kernels.read(key_of(number));
          right &= !read || *read == text_of(number);
        }
      }
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
  KernelFolder(folder.path(), limits).make_room();
  CHECK(folder.files().size() <= 20);
}

TEST_CASE("kernel folder: kernels of earlier versions go with the first save") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() + "/mnist");
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  for (const char* name : {"/0a.kernel", "/0b.kernel", "/mnist/images", "/notes"})
    std::ofstream(folder.path() + name) << "something";
  KernelFolder kernels(folder.path(), {});
  kernels.write(key_of(1), text_of(1));
  CHECK(folder.files() == std::vector<std::string>{path_of(folder, 1),
                                                   folder.path() + "/mnist/images",
                                                   folder.path() + "/notes"});
  // Clearing leaves what is not a kernel, and the limit.
  REQUIRE(keep_cache_limit(folder.path(), 12345));
  const KernelFolder::Contents removed = kernels.clear();
  CHECK(removed.files == 1);
  CHECK(removed.bytes == 100);
  CHECK(folder.files().size() == 3);
  CHECK(cache_limits(folder.path()).bytes == 12345);
}

TEST_CASE("kernel folder: what others could have written is not read, and one notice says so") {
  const TemporaryFolder folder;
  KernelFolder(folder.path(), {}).write(key_of(1), text_of(1));
  const std::string file = path_of(folder, 1);
  const std::string part = std::filesystem::path(file).parent_path().string();
  const std::string kernels_path = folder.path() + "/kernels";
  for (const std::string& path : {file, part, kernels_path, folder.path()}) {
    CAPTURE(path);
    const unsigned mode = mode_of(path);
    for (unsigned bit : {0020u, 0002u}) {
      Notices notices;
      REQUIRE(::chmod(path.c_str(), static_cast<mode_t>(mode | bit)) == 0);
      KernelFolder kernels(folder.path(), {});
      CHECK_FALSE(kernels.read(key_of(1)));
      CHECK_FALSE(kernels.read(key_of(1)));
      CHECK(kernels.not_own().empty() == (path == file || path == part));
      REQUIRE(notices.all.size() == 1);
      CHECK(contains(notices.all[0], path + " can be written to by others"));
      REQUIRE(::chmod(path.c_str(), static_cast<mode_t>(mode)) == 0);
    }
    if (::geteuid() == 0) {  // who else can give files away?
      Notices notices;
      REQUIRE(::chown(path.c_str(), 12345, 12345) == 0);
      KernelFolder kernels(folder.path(), {});
      CHECK_FALSE(kernels.read(key_of(1)));
      REQUIRE(notices.all.size() == 1);
      CHECK(contains(notices.all[0], path + " belongs to user 12345"));
      REQUIRE(::chown(path.c_str(), 0, 0) == 0);
    }
    CHECK(KernelFolder(folder.path(), {}).read(key_of(1)) == text_of(1));
  }
}

TEST_CASE("kernel folder: nothing is kept in a folder of others") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path());
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  Notices notices;
  KernelFolder kernels(folder.path(), {});
  for (int i = 0; i < 3; ++i) kernels.write(key_of(i), text_of(i));
  CHECK(folder.files().empty());
  CHECK(notices.all.size() == 1);
}

TEST_CASE("kernel folder: links, pipes and folders are no kernels") {
  const TemporaryFolder folder, other;
  KernelFolder kernels(folder.path(), {}), elsewhere(other.path(), {});
  kernels.write(key_of(1), text_of(1));
  elsewhere.write(key_of(1), text_of(1));
  const std::string file = path_of(folder, 1);
  std::filesystem::remove(file);
  std::filesystem::create_symlink(path_of(other, 1), file);
  CHECK_FALSE(kernels.read(key_of(1)));
  kernels.write(key_of(1), text_of(2));  // takes the link's place, not that of what it names
  CHECK(kernels.read(key_of(1)) == text_of(2));
  CHECK(elsewhere.read(key_of(1)) == text_of(1));
  std::filesystem::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  CHECK_FALSE(kernels.read(key_of(1)));
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  CHECK_FALSE(kernels.read(key_of(1)));
  std::filesystem::remove(file);
  const std::string part = std::filesystem::path(file).parent_path().string();
  std::filesystem::remove_all(part);
  std::filesystem::create_symlink(std::filesystem::path(path_of(other, 1)).parent_path(), part);
  CHECK_FALSE(kernels.read(key_of(1)));
  // The folder itself may be one: the user made it.
  const TemporaryFolder link;
  std::filesystem::create_symlink(other.path(), link.path());
  CHECK(KernelFolder(link.path(), {}).read(key_of(1)) == text_of(1));
}

TEST_CASE("kernel folder: the next process removes what a killed one was writing") {
  const TemporaryFolder folder;
  KernelFolder(folder.path(), {}).write(key_of(1), text_of(1));
  const std::string path = path_of(folder, 1);
  run_child([&] {
    const TemporaryFile file(path);
    _exit(0);  // without its end
  });
  const TemporaryFile living(path);
  CHECK(folder.files().size() == 3);
  KernelFolder(folder.path(), {}).write(key_of(2), text_of(2));
  CHECK(folder.files().size() == 3);  // two kernels, and what is being written
  CHECK(KernelFolder(folder.path(), {}).contents().files == 2);
}

TEST_CASE("kernel folder: limits are numbers of bytes") {
  struct Row {
    const char* text;
    std::optional<int64_t> bytes;
  };
  for (const Row& row :
       {Row{"0", 0}, Row{"123", 123}, Row{"4K", 4096}, Row{"512M", 512 << 20},
        Row{"2g", int64_t{2} << 30}, Row{"2 GiB", int64_t{2} << 30}, Row{"1TB", int64_t{1} << 40},
        Row{"7b", 7}, Row{"", {}}, Row{"M", {}}, Row{"-1", {}}, Row{"1.5G", {}}, Row{"3X", {}},
        Row{"12 34", {}}, Row{"9999999999999G", {}}, Row{"99999999999999999999", {}}}) {
    CAPTURE(row.text);
    CHECK(parse_bytes(row.text) == row.bytes);
  }
  const TemporaryFolder folder;
  const KernelFolderLimits standard;
  const EnvironmentScope none("ANNEAL_CACHE_LIMIT", "");
  CHECK(cache_limits(folder.path()).bytes == standard.bytes);
  CHECK(cache_limits("").bytes == standard.bytes);
  CHECK(keep_cache_limit(folder.path(), 77));
  CHECK(cache_limits(folder.path()).bytes == 77);
  const EnvironmentScope first("ANNEAL_CACHE_LIMIT", "1M");
  CHECK(cache_limits(folder.path()).bytes == 1 << 20);
  const EnvironmentScope bad("ANNEAL_CACHE_LIMIT", "lots");
  CHECK(contains(error_of([&] { cache_limits(folder.path()); }),
                 "ANNEAL_CACHE_LIMIT is \"lots\", which is no number of bytes"));
}

TEST_CASE("kernel folder: the environment chooses it") {
  std::vector<std::unique_ptr<EnvironmentScope>> scopes;
  auto set = [&](const char* name, const char* value) {
    scopes.push_back(std::make_unique<EnvironmentScope>(name, value));
  };
  for (const char* name : {"ANNEAL_CACHE", "ANNEAL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"})
    set(name, "");
  CHECK(default_cache_directory().empty());
  set("HOME", "/home/me");
  CHECK(default_cache_directory() == "/home/me/.cache/anneal");
  set("XDG_CACHE_HOME", "/caches");
  CHECK(default_cache_directory() == "/caches/anneal");
  set("ANNEAL_CACHE_DIR", "/mine");
  CHECK(default_cache_directory() == "/mine");
  set("ANNEAL_CACHE", "1");
  CHECK(default_cache_directory() == "/mine");
  set("ANNEAL_CACHE", "0");
  CHECK(default_cache_directory().empty());
  while (!scopes.empty()) scopes.pop_back();  // as they were, the last one first
}
