// Kernels are compiled once: in memory, on disk, by several threads and by several processes; and
// nothing on disk can do harm.
#include "runtime/cpu/kernel_cache.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <anneal/error.h>

#include "base/os/files.h"
#include "program_builder.h"
#include "runtime/cpu/image_file.h"
#include "temporary_folder.h"

using namespace anneal;
using namespace anneal::testing;

namespace {

// Adds `number` to 16 floats; erf makes it call the library.
Program adds(double number, bool calls_library = false) {
  ProgramBuilder b("adds");
  const uint64_t memory = b.buffer(DType::F32, true);
  const ValueId place = b.compute(Op::Mul, {b.cell(), b.index(16)});
  ValueId value = b.load(memory, place, 16);
  if (calls_library) value = b.compute(Op::Erf, {value});
  b.store(memory, place,
          b.compute(Op::Add, {value, b.constant(Scalar::of(DType::F32, number), 16)}));
  return b.program;
}

bool works(KernelFunction function, float number) {
  std::vector<float> values(32, 1.0f);
  void* const buffers[] = {values.data()};
  function(buffers, nullptr, 0, 2, nullptr);
  return values == std::vector<float>(32, 1.0f + number);
}

std::string read(const std::string& path) { return *read_file(path, UINT64_MAX); }
void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("kernel cache: what does the same is compiled once, whatever its name") {
  KernelCache cache;
  const Program first = adds(1), other = adds(2);
  Program renamed = first;
  renamed.name = "another_name";
  const Program* const programs[] = {&first, &renamed, &other, &first};
  const std::vector<CompiledKernel> functions = cache.compile_all(programs);
  CHECK((functions[0] == functions[1]));
  CHECK((functions[0] == functions[3]));
  CHECK(works(functions[0], 1));
  CHECK(works(functions[2], 2));
  CHECK(cache.statistics().compiled == 2);
  CHECK(cache.statistics().reused == 2);
  CHECK((cache.compile(renamed) == functions[0]));
  CHECK(cache.statistics().compiled == 2);
}

TEST_CASE("kernel cache: a program that does not verify is our mistake") {
  KernelCache cache;
  Program program = adds(1);
  program.code[0].lanes = 3;
  CHECK_THROWS_WITH_AS(cache.compile(program),
                       "internal error: program adds is not valid: instruction 0: the result is "
                       "indexx3, wanted index",
                       InternalError);
}

TEST_CASE("kernel cache: the next process finds kernels on disk") {
  const TemporaryFolder folder;
  const Program plain = adds(3), library = adds(4, true);
  const Program* const programs[] = {&plain, &library};
  {
    KernelCache cache({.directory = folder.path()});
    cache.compile_all(programs);
    CHECK(cache.statistics().compiled == 2);
  }
  CHECK(folder.files().size() == 2);
  KernelCache cache({.directory = folder.path()});
  const std::vector<CompiledKernel> functions = cache.compile_all(programs);
  CHECK(cache.statistics().compiled == 0);
  CHECK(cache.statistics().loaded == 2);
  CHECK(works(functions[0], 3));
  std::vector<float> values(16, 0.5f);
  void* const buffers[] = {values.data()};
  functions[1](buffers, nullptr, 0, 1, nullptr);
  CHECK(values[7] == static_cast<float>(std::erf(0.5)) + 4.0f);
}

TEST_CASE("kernel cache: damaged and foreign files are replaced") {
  const TemporaryFolder folder;
  const Program program = adds(5);
  KernelCache({.directory = folder.path()}).compile(program);
  REQUIRE(folder.files().size() == 1);
  const std::string path = folder.files()[0];
  const std::string good = read(path);

  std::vector<std::string> bad{"",
                               "short",
                               std::string(good.size(), '\0'),
                               good + "more",
                               good.substr(0, good.size() - 1),
                               good.substr(0, 20)};
  std::mt19937_64 random(3);
  for (int i = 0; i < 40; ++i) {
    std::string flipped = good;
    flipped[random() % flipped.size()] ^= static_cast<char>(1 << random() % 8);
    bad.push_back(flipped);
  }
  {  // a sound file of another program under this name
    const TemporaryFolder other;
    KernelCache({.directory = other.path()}).compile(adds(6));
    bad.push_back(read(other.files()[0]));
  }
  for (const std::string& bytes : bad) {
    write(path, bytes);
    KernelCache cache({.directory = folder.path()});
    CHECK(works(cache.compile(program), 5));
    CHECK(cache.statistics().compiled == 1);
    CHECK(read(path) == good);
    CHECK(folder.files().size() == 1);
  }
}

TEST_CASE("kernel cache: images that could not be run are refused") {
  CodeImage image{{std::byte{0xc3}}, {{"kernel", 0}}, {}};
  auto accepted = [&] { return read_image(write_image(image, "me"), "me").has_value(); };
  CHECK(accepted());
  CHECK(!read_image(write_image(image, "me"), "you"));
  image.functions[0].offset = 1;
  CHECK(!accepted());
  image.functions = {};
  CHECK(!accepted());
  image = {std::vector<std::byte>(16), {{"kernel", 0}}, {{"exp", 8}}};
  CHECK(accepted());
  CHECK(can_import(image));
  image.imports[0].offset = 9;
  CHECK(!accepted());
  image.imports[0] = {"system", 8};
  CHECK(!can_import(image));
}

TEST_CASE("kernel cache: another target has kernels of its own") {
  const TemporaryFolder folder;
  const Program program = adds(7);
  KernelCache({.directory = folder.path()}).compile(program);
  CpuTarget other = host_target();
  other.features += ",-avx512vnni";
  KernelCache cache({.target = other, .directory = folder.path()});
  CHECK(works(cache.compile(program), 7));
  CHECK(cache.statistics().compiled == 1);
  CHECK(folder.files().size() == 2);
}

TEST_CASE("kernel cache: a folder that cannot be written to does no harm") {
  const TemporaryFolder folder;
  write(folder.path(), "a file where a folder should be");
  for (const std::string& directory : {folder.path(), std::string("/proc/nowhere/at/all")}) {
    KernelCache cache({.directory = directory});
    CHECK(works(cache.compile(adds(8)), 8));
  }
  const TemporaryFolder locked;
  std::filesystem::create_directories(locked.path());
  std::filesystem::permissions(locked.path(), std::filesystem::perms::owner_read);
  KernelCache cache({.directory = locked.path()});
  CHECK(works(cache.compile(adds(8)), 8));
}

TEST_CASE("kernel cache: the oldest kernels go when the disk share is full") {
  const TemporaryFolder folder;
  KernelCache({.directory = folder.path()}).compile(adds(0));
  const auto one = static_cast<int64_t>(std::filesystem::file_size(folder.files()[0]));
  // Room for four of them.
  for (int i = 1; i < 12; ++i) {
    KernelCache({.directory = folder.path(), .limits = {.bytes = 4 * one + one / 2}})
        .compile(adds(i));
    CHECK(folder.files().size() <= 4);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  KernelCache cache({.directory = folder.path()});
  cache.compile(adds(11));
  CHECK(cache.statistics().loaded == 1);
  cache.compile(adds(1));
  CHECK(cache.statistics().compiled == 1);

  // The same within one process.
  KernelCache long_lived({.directory = folder.path(), .limits = {.bytes = 4 * one + one / 2}});
  for (int i = 20; i < 30; ++i) long_lived.compile(adds(i));
  CHECK(folder.files().size() <= 4);
}

TEST_CASE("kernel cache: threads that want the same get the same") {
  const TemporaryFolder folder;
  KernelCache cache({.directory = folder.path()});
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 8; ++i) right += works(cache.compile(adds(i)), static_cast<float>(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 32);
}

TEST_CASE("kernel cache: two processes share a folder") {
  const TemporaryFolder folder;
  std::vector<pid_t> children;
  for (int child = 0; child < 2; ++child) {
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      bool right = true;
      for (int round = 0; round < 3; ++round) {
        KernelCache cache({.threads = 1, .directory = folder.path()});
        for (int i = 0; i < 10; ++i) {
          right &= works(cache.compile(adds(i)), static_cast<float>(i));
          if (round == 1) std::filesystem::remove(folder.files().front());
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
  for (const std::string& path : folder.files()) CHECK(path.ends_with(".kernel"));
}

TEST_CASE("kernel cache: what is in memory is bounded, and what is held stays") {
  KernelCache cache({.most_kernels = 4});
  const CompiledKernel held = cache.compile(adds(1));
  for (int i = 2; i < 12; ++i) CHECK(works(cache.compile(adds(i)), static_cast<float>(i)));
  CHECK(cache.size() == 4);
  CHECK(works(held, 1));
  CHECK(cache.statistics().compiled == 11);
  cache.compile(adds(11));
  CHECK(cache.statistics().compiled == 11);
  CHECK(works(cache.compile(adds(2)), 2));  // forgotten meanwhile
  CHECK(cache.statistics().compiled == 12);
  // More at a time than are kept.
  std::vector<Program> programs;
  std::vector<const Program*> pointers;
  for (int i = 20; i < 30; ++i) programs.push_back(adds(i));
  for (const Program& program : programs) pointers.push_back(&program);
  const std::vector<CompiledKernel> all = cache.compile_all(pointers);
  for (int i = 0; i < 10; ++i)
    CHECK(works(all[static_cast<size_t>(i)], static_cast<float>(20 + i)));
}

TEST_CASE("kernel cache: code that others could have written is not run") {
  const TemporaryFolder folder;
  KernelCache({.directory = folder.path()}).compile(adds(3));
  REQUIRE(folder.files().size() == 1);
  const std::string path = folder.files()[0];
  std::filesystem::permissions(path, std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  for (int compiled : {1, 0}) {  // it is replaced by one of our own
    KernelCache cache({.directory = folder.path()});
    CHECK(works(cache.compile(adds(3)), 3));
    CHECK(cache.statistics().compiled == compiled);
  }
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  KernelCache cache({.directory = folder.path()});
  CHECK(works(cache.compile(adds(3)), 3));
  CHECK(cache.statistics().compiled == 1);
}
