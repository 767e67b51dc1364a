// The thread pool and the memory of the CPU runtime.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <anneal/error.h>

#include "base/os/environment.h"
#include "environment_scope.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/thread_pool.h"
#include "runtime/disk/kernel_folder.h"
#include "runtime/execute/executor.h"

using namespace anneal;

TEST_CASE("thread pool: every cell runs once, whatever the number of threads") {
  for (int threads : {1, 2, 5}) {
    CAPTURE(threads);
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    for (int64_t cells : {0, 1, 2, 3, 31, 1000, 100'000}) {
      std::vector<std::atomic<int>> count(static_cast<size_t>(cells));
      pool.run(cells, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) ++count[static_cast<size_t>(i)];
      });
      CHECK(std::all_of(count.begin(), count.end(), [](const auto& n) { return n == 1; }));
    }
  }
}

TEST_CASE("thread pool: a worker's number is its own while it runs") {
  ThreadPool pool(5);
  std::array<std::atomic<int>, 5> busy{};
  std::atomic<int> clashes = 0;
  for (int round = 0; round < 200; ++round) {
    pool.run(100, [&](int64_t, int64_t, int worker) {
      if (busy[static_cast<size_t>(worker)]++ != 0) ++clashes;
      --busy[static_cast<size_t>(worker)];
    });
  }
  CHECK(clashes == 0);
}

TEST_CASE("thread pool: several threads do take part") {
  ThreadPool pool(2);
  // Both cells wait for each other.
  std::atomic<int> inside = 0;
  pool.run(2, [&](int64_t, int64_t, int) {
    ++inside;
    while (inside < 2) std::this_thread::yield();
  });
  CHECK(inside == 2);
}

TEST_CASE("thread pool: after a sleep workers come back") {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> inside = 0;
    pool.run(2, [&](int64_t, int64_t, int) {
      ++inside;
      while (inside < 2) std::this_thread::yield();
    });
    CHECK(inside == 2);
  }
}

TEST_CASE("thread pool: one cell runs on the caller") {
  ThreadPool pool(3);
  std::thread::id ran;
  pool.run(1, [&](int64_t, int64_t, int) { ran = std::this_thread::get_id(); });
  CHECK(ran == std::this_thread::get_id());
}

TEST_CASE("thread pool: the number of threads can be changed") {
  ThreadPool pool(1);
  for (int threads : {4, 2, 1, 3}) {
    pool.set_threads(threads);
    CHECK(pool.threads() == threads);
    std::atomic<int64_t> sum = 0;
    pool.run(1000, [&](int64_t begin, int64_t end, int worker) {
      if (worker >= threads) sum = -1'000'000;
      for (int64_t i = begin; i < end; ++i) sum += i;
    });
    CHECK(sum == 999 * 500);
  }
  pool.set_threads(-3);
  CHECK(pool.threads() == 1);
}

TEST_CASE("thread pool: a run inside a run stays on its thread") {
  ThreadPool pool(3);
  std::atomic<int64_t> cells = 0;
  std::atomic<int> strays = 0;
  pool.run(50, [&](int64_t begin, int64_t end, int outer) {
    const std::thread::id thread = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i) {
      pool.run(10, [&](int64_t first, int64_t last, int inner) {
        cells += last - first;
        if (inner != outer || std::this_thread::get_id() != thread) ++strays;
      });
    }
  });
  CHECK(cells == 500);
  CHECK(strays == 0);
}

TEST_CASE("thread pool: callers on several threads wait for each other") {
  ThreadPool pool(2);
  std::atomic<int64_t> cells = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        pool.run(20, [&](int64_t begin, int64_t end, int) { cells += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(cells == 4 * 50 * 20);
}

TEST_CASE("thread pool: exceptions reach the caller, and the pool stays usable") {
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    auto fails = [&] {
      pool.run(100, [](int64_t begin, int64_t, int) {
        if (begin >= 0) throw std::runtime_error("stop");
      });
    };
    CHECK_THROWS_WITH_AS(fails(), "stop", std::runtime_error);
    std::atomic<int64_t> cells = 0;
    pool.run(100, [&](int64_t begin, int64_t end, int) { cells += end - begin; });
    CHECK(cells == 100);
  }
}

TEST_CASE("thread pool: ANNEAL_THREADS chooses the number") {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  for (const auto& [text, threads] : {std::pair{"7", 7}, {"1024", 1024}, {"", cores}}) {
    const EnvironmentScope scope("ANNEAL_THREADS", text);
    CHECK(default_threads() == threads);
  }
  for (const char* nonsense : {"0", "-2", "many", "2x", "1025", "1e3", "99999999999999999999"}) {
    CAPTURE(nonsense);
    const EnvironmentScope scope("ANNEAL_THREADS", nonsense);
    CHECK_THROWS_WITH_AS(default_threads(),
                         fmt::format("error: ANNEAL_THREADS must be a whole number from 1 to 1024, "
                                     "got \"{}\"\n  hint: set it to such a number, or unset it",
                                     nonsense)
                             .c_str(),
                         EnvironmentError);
  }
}

TEST_CASE("environment: a word that means nothing is an error") {
  const EnvironmentScope scope("ANNEAL_CACHE", "off");
  CHECK_THROWS_WITH_AS(default_cache_directory(),
                       "error: ANNEAL_CACHE must be 0 or 1, got \"off\"\n  hint: set it so, or "
                       "unset it",
                       EnvironmentError);
  const EnvironmentScope poison("ANNEAL_POISON", "yes");
  CHECK_THROWS_AS(ExecutorOptions::from_environment(), EnvironmentError);
}

TEST_CASE("memory: blocks are aligned and usable to the last byte") {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{100'000}, kHugePageBytes,
                       3 * kHugePageBytes + 5}) {
    HugeMemory block(bytes);
    CHECK(block.size() == bytes);
    const size_t alignment = bytes >= kHugePageBytes ? kHugePageBytes : kMemoryAlignment;
    CHECK(reinterpret_cast<uintptr_t>(block.data()) % alignment == 0);
    std::memset(block.data(), 1, bytes);
  }
}

TEST_CASE("memory: a block given back is used again") {
  release_kept_memory();
  CHECK(kept_memory_bytes() == 0);
  std::byte* first = nullptr;
  {
    HugeMemory block(5 * kHugePageBytes - 100);
    first = block.data();
  }
  CHECK(kept_memory_bytes() == 5 * kHugePageBytes);
  HugeMemory again(5 * kHugePageBytes - 200);
  CHECK(again.data() == first);
  CHECK(kept_memory_bytes() == 0);
  HugeMemory moved = std::move(again);
  CHECK(moved.data() == first);
  moved = HugeMemory();
  release_kept_memory();
  CHECK(kept_memory_bytes() == 0);
}

TEST_CASE("memory: too much is an error that says how much") {
  const size_t bytes = size_t{1} << 60;
  try {
    HugeMemory block(bytes);
    FAIL("an exabyte was found");
  } catch (const UserError& error) {
    CHECK(error.message().find("1152921504606846976 bytes") != std::string::npos);
    CHECK(!error.hint().empty());
  }
  CHECK_THROWS_AS(HugeMemory(~size_t{0}), UserError);
}

TEST_CASE("memory: each worker has scratch of its own") {
  WorkerScratch scratch;
  scratch.reserve(3, 1000);
  for (int worker = 0; worker < 3; ++worker) std::memset(scratch.of(worker), worker, 1000);
  for (int worker = 0; worker < 3; ++worker) {
    const auto* bytes = static_cast<const unsigned char*>(scratch.of(worker));
    CHECK(std::all_of(bytes, bytes + 1000, [&](unsigned char b) { return b == worker; }));
  }
  const void* before = scratch.of(0);
  scratch.reserve(2, 500);
  CHECK(scratch.of(0) == before);
  scratch.reserve(4, 5000);
  std::memset(scratch.of(3), 0, 5000);
}
