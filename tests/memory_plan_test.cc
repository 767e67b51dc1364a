// Where temporaries live: no two that are alive at once overlap, and the peak is what is used.
#include "schedule/memory/memory_plan.h"

#include <algorithm>
#include <chrono>
#include <random>

#include <doctest/doctest.h>

#include <anneal/error.h>

#include "ir/build.h"
#include "ir/index.h"

using namespace anneal;

namespace {

// Schedules by hand: kernels that read some buffers and store one.
class Builder {
 public:
  Builder() { schedule.graph = std::make_unique<Graph>(); }

  int symbolic(NodeRef elements, DType dtype = DType::F32) {
    ScheduleBuffer buffer;
    buffer.dtype = dtype;
    buffer.elements = elements;
    schedule.buffers.push_back(buffer);
    return static_cast<int>(schedule.buffers.size()) - 1;
  }
  int buffer(int64_t elements, DType dtype = DType::F32) {
    GraphScope scope(*schedule.graph);
    return symbolic(index_const(elements), dtype);
  }
  int output(int64_t elements) {
    int number = buffer(elements);
    schedule.buffers.back().output = 0;
    return number;
  }

  // target = some function of the first element of each source
  KernelPart part(int target, const std::vector<int>& sources) {
    GraphScope scope(*schedule.graph);
    KernelPart part;
    NodeRef zero = index_const(0), always = make_const(Scalar::of_int(DType::Bool, 1));
    auto parameter = [&](int number) {
      const ScheduleBuffer& buffer = schedule.buffers[static_cast<size_t>(number)];
      auto slot = static_cast<int64_t>(part.body.buffers.size());
      part.body.buffers.push_back(make_buffer("", slot, buffer.dtype, {{buffer.elements}}));
      part.arguments.push_back(number);
      return part.body.buffers.back();
    };
    NodeRef place = parameter(target), value = make_const(place->dtype, 1);
    for (int source : sources)
      value =
          make(Op::Add,
               {value, make_cast(make(Op::Load, {parameter(source), zero, always}), place->dtype)});
    part.body.stores = {make(Op::Store, {place, zero, always, value}, Arg(int64_t{0}))};
    return part;
  }
  void kernel(int target, const std::vector<int>& sources) {
    schedule.kernels.push_back({{{part(target, sources)}}, {}});
  }

  Schedule schedule;
};

void check_plan(const Schedule& schedule, const MemoryPlan& plan) {
  const std::vector<Lifetime> lives = lifetimes(schedule);
  int64_t end = 0;
  for (size_t i = 0; i < schedule.buffers.size(); ++i) {
    if (!schedule.buffers[i].is_temporary()) {
      CHECK(plan.offsets[i] == -1);
      continue;
    }
    CHECK(plan.offsets[i] >= 0);
    CHECK(plan.offsets[i] % kArenaAlignment == 0);
    if (lives[i].first < 0 || plan.bytes[i] == 0) continue;
    end = std::max(end, plan.offsets[i] + plan.bytes[i]);
    for (size_t k = 0; k < i; ++k) {
      if (!schedule.buffers[k].is_temporary() || lives[k].first < 0) continue;
      const bool apart = !lives[i].overlaps(lives[k]) ||
                         plan.offsets[i] >= plan.offsets[k] + plan.bytes[k] ||
                         plan.offsets[k] >= plan.offsets[i] + plan.bytes[i];
      CHECK(apart);
    }
  }
  CHECK(end <= plan.arena_bytes);
  CHECK(plan.arena_bytes - end < kArenaAlignment);
  CHECK(plan.lower_bound <= plan.arena_bytes);
}

}  // namespace

TEST_CASE("memory plan: a chain needs two places") {
  Builder builder;
  int previous = builder.buffer(1000);
  builder.kernel(previous, {});
  for (int i = 0; i < 20; ++i) {
    int next = builder.buffer(1000);
    builder.kernel(next, {previous});
    previous = next;
  }
  builder.kernel(builder.output(1), {previous});
  const MemoryPlan plan = plan_memory(builder.schedule);
  check_plan(builder.schedule, plan);
  CHECK(plan.bytes[0] == 4000);
  CHECK(plan.arena_bytes == 2 * 4096);
  CHECK(plan.lower_bound == plan.arena_bytes);
}

// So many that each is placed in what is free at its time.
TEST_CASE("memory plan: thousands of buffers of all sizes") {
  Builder builder;
  std::mt19937 random(5);
  auto below = [&](uint32_t bound) { return random() % bound; };
  std::vector<int> alive;
  for (int i = 0; i < 4200; ++i) {
    const int next = builder.buffer(16 * (1 + below(40)));
    std::vector<int> sources;
    if (alive.size() > 3) {
      const auto chosen = alive.begin() + static_cast<std::ptrdiff_t>(below(4));
      sources.push_back(*chosen);
      alive.erase(chosen);
    }
    builder.kernel(next, sources);
    alive.push_back(next);
  }
  builder.kernel(builder.output(1), alive);
  const MemoryPlan plan = plan_memory(builder.schedule);
  check_plan(builder.schedule, plan);
  CHECK(plan.arena_bytes <= 2 * plan.lower_bound);
}

TEST_CASE("memory plan: dtypes, unused and empty buffers, scratch between phases") {
  Builder builder;
  int wide = builder.buffer(10, DType::F64), narrow = builder.buffer(100, DType::U8);
  int empty = builder.buffer(0), unused = builder.buffer(1 << 20), result = builder.output(1);
  Kernel kernel;
  kernel.phases = {{builder.part(wide, {}), builder.part(narrow, {})},
                   {builder.part(empty, {})},
                   {builder.part(result, {wide, empty})}};
  builder.schedule.kernels.push_back(std::move(kernel));
  const std::vector<Lifetime> lives = lifetimes(builder.schedule);
  CHECK(lives[static_cast<size_t>(wide)].last == 2);
  CHECK(lives[static_cast<size_t>(narrow)].last == 0);
  CHECK(lives[static_cast<size_t>(unused)].first == -1);
  const MemoryPlan plan = plan_memory(builder.schedule);
  check_plan(builder.schedule, plan);
  CHECK(plan.bytes[static_cast<size_t>(wide)] == 80);
  CHECK(plan.bytes[static_cast<size_t>(narrow)] == 100);
  CHECK(plan.arena_bytes == 2 * kArenaAlignment);
}

TEST_CASE("memory plan: symbolic sizes give a plan for every binding") {
  Builder builder;
  int first, second;
  NodeRef n;
  {
    GraphScope scope(*builder.schedule.graph);
    n = make_variable("n", 1, 1 << 20);
    first = builder.symbolic(index_mul(n, index_const(16)));
    second = builder.symbolic(index_floor_div(index_add(n, index_const(1)), index_const(2)));
  }
  builder.kernel(first, {});
  builder.kernel(second, {first});
  builder.kernel(builder.output(1), {second});
  MemoryPlanner planner(builder.schedule, {{n}});
  CHECK(!planner.is_static());
  for (int64_t size : {1, 7, 1000}) {
    const MemoryPlan plan = planner.plan({{size}});
    check_plan(builder.schedule, plan);
    CHECK(plan.bytes[0] == 64 * size);
    CHECK(plan.bytes[1] == (size + 1) / 2 * 4);
    const MemoryPlan same = plan_memory(builder.schedule, [&](NodeRef) { return size; });
    CHECK(same.offsets == plan.offsets);
  }
  CHECK_THROWS_AS(plan_memory(builder.schedule), UserError);
  CHECK_THROWS_AS(planner.plan({{int64_t{1} << 60}}), UserError);
}

TEST_CASE("memory plan: reading what was never stored is a mistake of ours") {
  Builder builder;
  int temporary = builder.buffer(4);
  builder.kernel(builder.output(1), {temporary});
  builder.kernel(temporary, {});
  CHECK_THROWS_AS(plan_memory(builder.schedule), InternalError);
}

TEST_CASE("memory plan: random programs, close to the lower bound and always the same") {
  double worst = 1;
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    Builder builder;
    std::vector<int> made;
    const int count = 5 + static_cast<int>(random() % 60);
    for (int i = 0; i < count; ++i) {
      std::vector<int> sources;
      for (unsigned k = 0; k < random() % 3 && !made.empty(); ++k) {
        const size_t back = std::min<size_t>(made.size(), 1 + random() % (k ? 30 : 4));
        sources.push_back(made[made.size() - back]);
      }
      std::ranges::sort(sources);
      sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
      const int64_t elements = int64_t{1} << (random() % 12);
      made.push_back(builder.buffer(elements + static_cast<int64_t>(random() % 50)));
      builder.kernel(made.back(), sources);
    }
    const MemoryPlan plan = plan_memory(builder.schedule);
    check_plan(builder.schedule, plan);
    CHECK(plan_memory(builder.schedule).offsets == plan.offsets);
    worst = std::max(worst,
                     static_cast<double>(plan.arena_bytes) / static_cast<double>(plan.lower_bound));
  }
  CHECK(worst < 1.35);
}

TEST_CASE("memory plan: a thousand kernels are planned in milliseconds") {
  std::mt19937 random(1);
  Builder builder;
  std::vector<int> made;
  for (int i = 0; i < 1000; ++i) {
    std::vector<int> sources;
    if (i > 0) sources.push_back(made.back());
    if (i > 300) sources.push_back(made[static_cast<size_t>(i - 300)]);
    made.push_back(builder.buffer(static_cast<int64_t>(1 + random() % 100'000)));
    builder.kernel(made.back(), sources);
  }
  MemoryPlanner planner(builder.schedule, {});
  auto best = std::chrono::nanoseconds::max();
  MemoryPlan plan;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    plan = planner.plan({});
    best = std::min<std::chrono::nanoseconds>(best, std::chrono::steady_clock::now() - start);
  }
  check_plan(builder.schedule, plan);
  MESSAGE("planned in ", static_cast<double>(best.count()) * 1e-6, " ms, ",
          static_cast<double>(plan.arena_bytes) / static_cast<double>(plan.lower_bound),
          " times the lower bound");
#ifdef NDEBUG  // with assertions and sanitizers it is ten times slower
  CHECK(best < std::chrono::milliseconds(50));  // 5 on a machine that is not shared
#endif
}
