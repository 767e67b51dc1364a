// Programs on devices: what is remembered, what memory is used, and that results are the
// interpreter's whatever came before.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include <doctest/doctest.h>

#include <anneal/anneal.h>
#include <anneal/device.h>

#include "codegen/target_kernels.h"
#include "error_text.h"
#include "ir/interpreter.h"
#include "reference_device.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/execute/executor.h"
#include "runtime/program/compiled_program.h"
#include "tensor/lift.h"
#include "transform/simplify.h"

using namespace anneal;

namespace {

// An executor of a test's own, driven without the public calls.
struct Bench {
  explicit Bench(const ExecutorOptions& options = {}, const ReferenceOptions& device = {})
      : log(std::make_shared<ReferenceLog>()),
        executor(make_reference_device(device, log), options) {}

  std::vector<std::shared_ptr<Storage>> run(const std::vector<Tensor>& roots,
                                            const Bindings& bindings = {}) {
    return run_with(roots, {}, bindings);
  }
  std::vector<std::shared_ptr<Storage>> run_with(const std::vector<Tensor>& roots,
                                                 const std::vector<Tensor>& assigns,
                                                 const Bindings& bindings = {}) {
    CallScope call("evaluate", Location::current());
    const Contents contents(bindings);
    Request request;
    for (const Tensor& root : roots) request.roots.push_back(node_of(root));
    for (const Tensor& assign : assigns) request.assigns.push_back(node_of(assign));
    request.contents = &contents;
    return executor.run(request);
  }
  std::vector<float> floats(const Tensor& tensor, const Bindings& bindings = {}) {
    const Value value = to_value(*run({tensor}, bindings)[0]);
    std::vector<float> result;
    for (int64_t i = 0; i < value.size(); ++i)
      result.push_back(static_cast<float>(value.as_double(i)));
    return result;
  }
  RuntimeCounters counters() const { return executor.counters(); }

  std::shared_ptr<ReferenceLog> log;
  Executor executor;
};

std::vector<float> on_interpreter(const Tensor& tensor, const Bindings& bindings = {}) {
  DeviceScope scope("interpreter");
  return tensor.to_vector(bindings);
}

// Several kernels with temporaries between them.
Tensor layered(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < 4; ++i) {
    y = contiguous(y * 2 + 1);
    y = y - contiguous(sum(y, {0}, true)) * 0.01f;
  }
  return y;
}

int64_t resident_kib() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4;
}

}  // namespace

TEST_CASE("runtime: devices have names") {
  const std::string before = device_name();
  CHECK(devices().front() == "cpu");
  CHECK(contains(error_of([] { set_device("gpu"); }), "there is no device \"gpu\""));
  CHECK(contains(error_of([] { DeviceScope scope("gpu"); }), "cpu, webgpu, interpreter"));
  {
    DeviceScope outer("interpreter");
    CHECK(device_name() == "interpreter");
    {
      DeviceScope inner("reference");
      CHECK(device_name() == "reference");
      CHECK((tensor({1.0f, 2.0f}) * 3).to_vector() == std::vector<float>{3, 6});
    }
    CHECK(device_name() == "interpreter");
    std::string elsewhere;
    std::thread([&] { elsewhere = device_name(); }).join();
    CHECK(elsewhere == before);
  }
  set_device("interpreter");
  CHECK(device_name() == "interpreter");
  set_device(before);
  CHECK(device_name() == before);
}

TEST_CASE("runtime: no result depends on the number of threads") {
  DeviceScope scope("cpu");
  const int before = threads();
  Generator random(3);
  Tensor a = random.normal({70, 90}).realize(), b = random.normal({90, 50}).realize();
  std::vector<std::vector<float>> results;
  for (int count : {1, 2, 5, 16}) {
    set_threads(count);
    CHECK(threads() == count);
    results.push_back(softmax(matmul(a, b) + sum(a)).to_vector());
  }
  for (const std::vector<float>& result : results) CHECK(result == results[0]);
  set_threads(before);
  CHECK(contains(error_of([] { set_threads(0); }), "0 threads"));
}

TEST_CASE("runtime: programs that do the same are compiled once") {
  Bench bench;
  for (int i = 0; i < 5; ++i) {
    Tensor x = tensor({1.0f * static_cast<float>(i), 2.0f, 3.0f});
    Tensor y = parameter("p" + std::to_string(i), tensor({1.0f, 1.0f, 1.0f}));
    CHECK(bench.floats(exp(x) * y + x) == on_interpreter(exp(x) * y + x));
  }
  CHECK(bench.counters().misses == 1);
  CHECK(bench.counters().hits == 4);
  CHECK(bench.log->compiled == 1);
  // Which buffers are the same matters; their order of creation does not.
  Tensor x = tensor({1.0f, 2.0f, 3.0f}), y = tensor({4.0f, 5.0f, 6.0f});
  bench.run({x * y});
  CHECK(bench.counters().misses == 2);
  bench.run({y * x});
  CHECK(bench.counters().misses == 2);
  bench.run({x * x});
  CHECK(bench.counters().misses == 3);
  // So do dtypes, shapes, constants and axes.
  bench.run({x.cast(DType::F64) * x.cast(DType::F64)});
  bench.run({x.reshape({3, 1}) * x.reshape({3, 1})});
  bench.run({x * 2});
  bench.run({x * 3});
  Tensor square = tensor({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2});
  bench.run({sum(square, {0})});
  bench.run({sum(square, {1})});
  CHECK(bench.counters().misses == 9);
  // A result that is known is a buffer.
  Tensor known = exp(x);
  known.realize();
  bench.run({known * known});
  CHECK(bench.counters().misses == 9);
  CHECK(bench.counters().runs == 5 + 3 + 6 + 1);
}

TEST_CASE("runtime: drawing again is the same program with other numbers") {
  Bench bench;
  Generator random(42), same(42);
  for (int i = 0; i < 4; ++i)
    CHECK(bench.floats(random.uniform({3, 5})) == on_interpreter(same.uniform({3, 5})));
  Tensor two = random.uniform({7}) + random.uniform({7});
  CHECK(bench.floats(two) == on_interpreter(same.uniform({7}) + same.uniform({7})));
  Generator other(uint64_t{1} << 40, 42);  // whose words are equal here and there
  CHECK(bench.floats(other.uniform({3, 5})) ==
        on_interpreter(Generator(uint64_t{1} << 40, 42).uniform({3, 5})));
  CHECK(bench.counters().misses == 2);
}

TEST_CASE("runtime: the words of a program are the same in any history") {
  auto words = [](bool first) {
    std::vector<uint32_t> result;
    std::thread([&] {
      Tensor noise = first ? exp(tensor({1.0f, 5.0f})).realize() : Tensor();
      Tensor b = first ? tensor({3.0f, 4.0f}) : Tensor();
      Tensor a = tensor({1.0f, 2.0f});
      if (!first) b = tensor({5.0f, 6.0f});
      Variable n("n", 1, 9);
      Tensor root = sum(a * b - a) * from_dim(n, DType::F32);
      Contents contents({.sizes = {{n, 3}}, .inputs = {}});
      result = CanonicalProgram({{node_of(root)}, {}, &contents}).words();
    }).join();
    return result;
  };
  CHECK(words(false) == words(true));
}

TEST_CASE("runtime: what is remembered is bounded, and the oldest is forgotten") {
  Bench bench({.most_programs = 3});
  Tensor x = tensor({1.0f, 2.0f});
  auto program = [&](int i) { return sum(expand(x.reshape({1, 2}), {i, 2}), {0}) + 1; };
  for (int i = 2; i < 8; ++i) bench.run({program(i)});
  CHECK(bench.executor.program_count() == 3);
  CHECK(bench.counters().evicted == 3);
  bench.run({program(5)});
  CHECK(bench.counters().hits == 1);
  bench.run({program(9)});  // 6 goes, for 5 was used since
  bench.run({program(5)});
  CHECK(bench.counters().hits == 2);
  bench.run({program(6)});
  CHECK(bench.counters().hits == 2);
  CHECK(bench.floats(program(6)) == std::vector<float>{7, 13});
}

TEST_CASE("runtime: the predicted peak is what is allocated") {
  for (bool shares : {true, false}) {
    Bench bench({}, {.capabilities = {}, .shares_host_memory = shares});
    Tensor x = rand({37, 11}).realize();
    const Tensor program = layered(x);
    CHECK(bench.floats(program) == on_interpreter(program));
    Contents contents({});
    CompiledProgram compiled(CanonicalProgram({{node_of(program)}, {}, &contents}),
                             bench.executor.device());
    bool fresh = false;
    const MemoryPlan plan = compiled.sized({}, &fresh)->memory;
    CHECK(plan.arena_bytes > 0);
    CHECK(bench.counters().arena_bytes == plan.arena_bytes);
    CHECK(bench.counters().arena_allocations == 1);
    const int64_t tensors = shares ? 0 : 2 * 37 * 11 * 4;  // one in, one out
    CHECK(bench.log->most_allocated_bytes == plan.arena_bytes + tensors);
    CHECK(bench.log->allocated_bytes == plan.arena_bytes + tensors / 2);  // what was read stays
    // The arena is kept: another run allocates nothing.
    bench.run({program});
    CHECK(bench.counters().arena_allocations == 1);
    CHECK(bench.counters().launches == 2 * compiled.phases());
  }
}

TEST_CASE("runtime: poison in dead memory changes nothing") {
  const ExecutorOptions poisoned{.poison = true};
  Bench plain, bench(poisoned);
  Executor cpu(make_cpu_device(), poisoned);
  Generator random(7);
  Tensor x = random.normal({33, 17}).realize(), w = random.normal({17, 17}).realize();
  for (const Tensor& program : {layered(x), softmax(matmul(layered(x), w)),
                                grad(sum(square(layered(matmul(x, w)))), {w})[0],
                                cumsum(layered(x), 0), sort(layered(x)).values}) {
    const std::vector<float> want = plain.floats(program);
    CHECK(bench.floats(program) == want);
    CallScope call("evaluate", Location::current());
    Contents contents({});
    const std::shared_ptr<Storage> got = cpu.run({{node_of(program)}, {}, &contents})[0];
    const Value value = to_value(*got);
    for (int64_t i = 0; i < value.size(); ++i)
      CHECK(value.as_double(i) ==
            doctest::Approx(want[static_cast<size_t>(i)]).epsilon(1e-3).scale(10));
  }
  CHECK(bench.counters().launches > 10);
}

TEST_CASE("runtime: poison is everywhere in memory that is dead") {
  Bench bench({.poison = true});
  Tensor x = rand({37, 11}).realize();
  bench.run({layered(x)});
  const int64_t bytes = bench.counters().arena_bytes;
  REQUIRE(bench.log->newest_memory != nullptr);
  // All of it, but for what lies between a buffer and the next aligned place.
  const auto* memory = static_cast<const std::byte*>(bench.log->newest_memory);
  const auto poisoned = std::count(memory, memory + bytes, std::byte{0xff});
  CHECK(poisoned > bytes - kArenaAlignment * 4);
  CHECK(poisoned <= bytes);
}

TEST_CASE("runtime: assignments and swaps") {
  for (const char* device : {"cpu", "interpreter", "reference"}) {
    CAPTURE(device);
    DeviceScope scope(device);
    Tensor a = parameter("a", tensor({1.0f, 2.0f})), b = parameter("b", tensor({3.0f, 4.0f}));
    evaluate({a.assign(b), b.assign(a)});
    CHECK(a.to_vector() == std::vector<float>{3, 4});
    CHECK(b.to_vector() == std::vector<float>{1, 2});
    // Reads are of what was there before, also where they move elements.
    evaluate({a.assign(flip(a)), b.assign(a + b)});
    CHECK(a.to_vector() == std::vector<float>{4, 3});
    CHECK(b.to_vector() == std::vector<float>{4, 6});
    // The value of an assignment is a copy of its own.
    std::vector<Tensor> results = evaluate({a.assign(a * 2), a, a.assign(a * 2) + 1});
    CHECK(results[0].to_vector() == std::vector<float>{8, 6});
    CHECK(results[1].to_vector() == std::vector<float>{4, 3});
    CHECK(results[2].to_vector() == std::vector<float>{9, 7});
    a.assign(a * 0).realize();
    CHECK(results[0].to_vector() == std::vector<float>{8, 6});
    CHECK(results[1].to_vector() == std::vector<float>{4, 3});
    // A copy of a parameter is not the parameter.
    Tensor copy = evaluate({b})[0];
    b.assign(b + 1).realize();
    CHECK(copy.to_vector() == std::vector<float>{4, 6});
    CHECK(b.to_vector() == std::vector<float>{5, 7});
    Tensor same = contiguous(b);
    same.realize();
    b.assign(b + 1).realize();
    CHECK(same.to_vector() == std::vector<float>{5, 7});
    // Of two assignments to one parameter one counts, and all devices agree which.
    evaluate({b.assign(b + 1), b.assign(b + 2)});
    CHECK(b.to_vector() == std::vector<float>{8, 10});
    // Inputs may be bound to a parameter that changes, and parameters to something else.
    Tensor x = input("x", {2});
    Tensor read = evaluate({b.assign(flip(x) + b)}, {.sizes = {}, .inputs = {{x, b}}})[0];
    CHECK(read.to_vector() == std::vector<float>{18, 18});
    Tensor other = tensor({100.0f, 200.0f});
    Tensor late = evaluate({b.assign(b + 1)}, {.sizes = {}, .inputs = {{b, other}}})[0];
    CHECK(b.to_vector() == std::vector<float>{101, 201});
    CHECK(late.to_vector() == std::vector<float>{101, 201});
    CHECK(other.to_vector() == std::vector<float>{100, 200});
    evaluate({a.assign(a), b.assign(b)}, {.sizes = {}, .inputs = {{a, b}, {b, a}}});
    CHECK(a.to_vector() == std::vector<float>{101, 201});
    CHECK(b.to_vector() == std::vector<float>{0, 0});
  }
}

TEST_CASE("runtime: results that are inputs, equal, constant or empty") {
  Bench bench;
  Tensor x = tensor({1.0f, 2.0f}), p = parameter("p", tensor({5.0f}));
  std::vector<std::shared_ptr<Storage>> results =
      bench.run({x * 1, x + 1, x + 1, zeros({3}), contiguous(p), zeros({0, 4}) + 1});
  CHECK(to_value(*results[0]).as_double(1) == 2);
  CHECK(results[1] == results[2]);
  CHECK(to_value(*results[3]).payload == std::vector<uint64_t>{0, 0, 0});
  CHECK(to_value(*results[4]).as_double(0) == 5);
  CHECK(results[5]->shape == std::vector<int64_t>{0, 4});
  CHECK(results[5]->size() == 0);
}

TEST_CASE("runtime: one program serves every binding") {
  Bench bench;
  Variable n("n", 0, 100), m("m", 1, 9);
  Tensor x = input("x", {n, m});
  Tensor y = layered(x) + from_dim(n, DType::F32);
  for (int round = 0; round < 2; ++round)
    for (int64_t size : {0, 1, 5, 100, 7})
      for (int64_t width : {1, 9}) {
        Tensor data = (arange(Dim(size * width), DType::F32) / 7).reshape({size, width});
        Bindings bindings{.sizes = {{n, size}, {m, width}}, .inputs = {{x, data}}};
        CHECK(bench.floats(y, bindings) == on_interpreter(y, bindings));
      }
  CHECK(bench.counters().misses == 1);
  CHECK(bench.counters().hits == 19);
  // The last eight are remembered, of the ten that there are in turn.
  CHECK(bench.counters().plans == 20);
  CHECK(bench.counters().arena_bytes > 0);
  Bindings last{.sizes = {{n, 7}, {m, 9}}, .inputs = {{x, zeros({7, 9})}}};
  bench.floats(y, last);
  CHECK(bench.counters().plans == 20);
}

TEST_CASE("runtime: sizes that do not go together") {
  for (const char* device : {"cpu", "interpreter", "reference"}) {
    CAPTURE(device);
    DeviceScope scope(device);
    Variable n("n", 1, 10), m("m", 1, 10);
    Tensor x = input("x", {n});
    Tensor seven = zeros({7});
    auto with = [&](int64_t size, int64_t other) {
      return Bindings{.sizes = {{n, size}, {m, other}}, .inputs = {{x, zeros({size})}}};
    };
    CHECK(contains(error_of([&] { (x + 1).to_vector(); }), "n has no value"));
    CHECK(contains(error_of([&] { (x + 1).to_vector(with(11, 1)); }), "n is 11"));
    CHECK(contains(error_of([&] { (x + 1).to_vector({.sizes = {{n, 7}}, .inputs = {}}); }),
                   "input \"x\" has no contents"));
    CHECK((x + 1).to_vector({.sizes = {{n, 7}}, .inputs = {{x, seven}}}) ==
          std::vector<float>(7, 1));
  }
}

TEST_CASE("runtime: programs that do not fit say so before they run") {
  Variable n("n", 1, 1 << 30);
  Tensor x = tensor({1.0f, 2.0f, 3.0f, 4.0f});
  {
    Bench bench({.memory_limit = 100});
    CHECK(bench.floats(x + 1) == std::vector<float>{2, 3, 4, 5});
    Tensor large = contiguous(expand(x.reshape({4, 1}), {4, 50}) + 1);
    std::string text = error_of([&] { bench.run({exp(sum(flip(large) * large, {0}))}); });
    CHECK(contains(text, "evaluate: the program needs 1"));
    CHECK(contains(text, "the limit is 100 bytes on \"reference\""));
    CHECK(contains(text, "a temporary"));
    CHECK(contains(text, "runtime_test.cc:"));
    CHECK(contains(text, "hint: use smaller sizes"));
    CHECK(bench.log->allocated_bytes == 0);
    CHECK(bench.log->phases == 1);
  }
  {
    Bench bench({}, {.capabilities = {}, .available_bytes = int64_t{1} << 27});
    Tensor y = expand(from_dim(n, DType::F32).reshape({1}), {n}) + 1;
    std::string text =
        error_of([&] { bench.run({y}, {.sizes = {{n, int64_t{1} << 28}}, .inputs = {}}); });
    CHECK(contains(text, "the program needs 1024.0 MiB"));
    CHECK(contains(text, "there are 128.0 MiB"));
    CHECK(contains(text, "a result"));
    CHECK_FALSE(contains(text, "ANNEAL_MEMORY_BUDGET"));
    CHECK(bench.floats(y, {.sizes = {{n, 2}}, .inputs = {}}) == std::vector<float>{3, 3});
  }
  {
    // Where more is stored while the budget has room, a smaller budget helps.
    ReferenceOptions options{.available_bytes = int64_t{1} << 27};
    options.capabilities.large_elements_with_room = options.capabilities.large_elements + 1;
    Bench bench({}, options);
    Tensor y = expand(from_dim(n, DType::F32).reshape({1}), {n}) + 1;
    CHECK(contains(
        error_of([&] { bench.run({y}, {.sizes = {{n, int64_t{1} << 28}}, .inputs = {}}); }),
        "hint: set ANNEAL_MEMORY_BUDGET to what is free, use smaller sizes"));
  }
  {
    Capabilities small;
    small.max_buffer_bytes = 64;
    Bench bench({}, {.capabilities = small});
    CHECK(contains(error_of([&] { bench.run({zeros({17}) + x[0]}); }),
                   "takes 68 bytes, device \"reference\" allows 64 a buffer"));
    CHECK(bench.floats(x + 1).size() == 4);
  }
}

TEST_CASE("runtime: what is faster to store is stored where there is room") {
  ReferenceOptions options;
  options.capabilities.tiles = true;
  options.capabilities.large_elements = 1 << 10;
  options.capabilities.large_elements_with_room = 1 << 20;
  const Tensor q = input("q", {128, 16}), k = input("k", {128, 16}), v = input("v", {128, 16});
  const NodeRef attention[] = {simplify_program(
      std::vector<NodeRef>{matmul(softmax(matmul(q, transpose(k)), 1), v).node()})[0]};
  auto keeps_tiles = [&](int64_t arena_bytes, int64_t most_of_a_buffer) {
    options.capabilities.arena_bytes = arena_bytes;
    options.capabilities.max_buffer_bytes = most_of_a_buffer;
    const Schedule schedule = schedule_for(attention, options.capabilities);
    return std::ranges::any_of(schedule.buffers, &ScheduleBuffer::tile);
  };
  constexpr int64_t kScores = 4 * 128 * 128;
  CHECK_FALSE(keeps_tiles(1 << 20, 1 << 20));
  CHECK(keeps_tiles(kScores / 2, 1 << 20));
  CHECK(keeps_tiles(1 << 20, kScores / 2));

  // Scores that live in tiles take no buffer, however large one would be.
  Bench bench({}, options);
  const Tensor x = parameter("x", reshape(arange(128 * 16, DType::F32), {128, 16}) / 2048.0);
  const Tensor attended = matmul(softmax(matmul(x, transpose(x)), 1), x);
  const std::vector<float> got = bench.floats(attended), expected = attended.to_vector();
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - expected[i]) < 1e-5f);
}

TEST_CASE("runtime: a device with memory of its own") {
  Bench bench({}, {.capabilities = {}, .shares_host_memory = false});
  Tensor p = parameter("p", tensor({1.0f, 2.0f})), x = tensor({3.0f, 4.0f});
  Tensor sum_of = p + x;
  std::vector<std::shared_ptr<Storage>> results = bench.run_with({sum_of}, {p.assign(p * x)});
  CHECK(to_value(*results[0]).as_double(0) == 4);
  CHECK(p.to_vector() == std::vector<float>{3, 8});
  // Tensors stay on the device: two came in, and what was assigned is there already.
  CHECK(bench.log->allocated_bytes == bench.counters().arena_bytes + 3 * 8);
  CHECK(bench.counters().copied_bytes == 2 * 8);
  bench.run_with({sum_of}, {p.assign(p * x)});
  CHECK(bench.counters().copied_bytes == 2 * 8);
  CHECK(p.to_vector() == std::vector<float>{9, 32});
  // What the host writes is copied once, and whoever reads elsewhere sees what the device made.
  const std::vector<float> fresh{1, 1};
  p.write(std::as_bytes(std::span(fresh)));
  bench.run_with({sum_of}, {p.assign(p * x)});
  CHECK(bench.counters().copied_bytes == 3 * 8);
  CHECK((p + 1).to_vector() == std::vector<float>{4, 5});
}

TEST_CASE("runtime: threads with graphs of their own share what is compiled") {
  DeviceScope scope("cpu");
  std::vector<std::vector<float>> results(4);
  std::vector<std::thread> crowd;
  for (size_t i = 0; i < results.size(); ++i)
    crowd.emplace_back([&results, i] {
      DeviceScope inner("cpu");
      Generator random(5);
      Tensor w = parameter("w", random.normal({20, 20}));
      Tensor x = random.normal({8, 20}).realize();
      for (int step = 0; step < 20; ++step) {
        Tensor loss = sum(square(matmul(x, w) - 1));
        evaluate({w.assign(w - grad(loss, {w})[0] * 0.001f)});
      }
      results[i] = w.to_vector();
    });
  for (std::thread& thread : crowd) thread.join();
  for (const std::vector<float>& result : results) CHECK(result == results[0]);
  CHECK(std::isfinite(results[0][0]));
}

TEST_CASE("runtime: memory stays flat over 5,000 different programs") {
  constexpr int kPrograms = 5000, kWarm = 1000;
  Bench bench({.most_programs = 32});
  Tensor x = arange(kPrograms + 4).cast(DType::F32).realize();
  int64_t before = 0;
  for (int i = 0; i < kPrograms; ++i) {
    if (i == kWarm) before = resident_kib();
    const Tensor program = sum(slice(x, {{i, i + 4}}) * 0.5);
    if (i % 100 == 0)
      CHECK(bench.floats(program) == on_interpreter(program));
    else
      bench.run({program});
    current_graph().collect_if_worthwhile();
  }
  CHECK(bench.counters().misses == kPrograms);
  CHECK(bench.executor.program_count() == 32);
  const int64_t after = resident_kib();
  MESSAGE("resident: " << before / 1024 << " MiB before, " << after / 1024 << " MiB after");
  CHECK(after - before < 16 * 1024);
}

TEST_CASE("runtime: memory stays flat over 10,000 rounds") {
  DeviceScope scope("cpu");
  Tensor w = parameter("w", zeros({256, 16}));
  Tensor total = zeros({256, 16});
  auto round = [&](int i) {
    Tensor x = full({256, 16}, i % 7);
    total = total * 0.5f + x;
    total.realize();
    if (i % 3 == 0) evaluate({w.assign(w + total), sum(total)});
  };
  for (int i = 0; i < 2000; ++i) round(i);
  const int64_t before = resident_kib();
  for (int i = 2000; i < 12'000; ++i) round(i);
  const int64_t after = resident_kib();
  MESSAGE("resident: ", before / 1024, " MiB before, ", after / 1024, " MiB after");
  CHECK(after - before < 90 * 1024);  // the graph may hold 64 MiB of results until it is collected
  CHECK(std::isfinite(w.to_vector()[0]));
}
