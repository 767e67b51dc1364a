#include "cli/doctor/fma_speed.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include "ir/scalar.h"
#include "kernel/program/program.h"
#include "runtime/cpu/kernel_cache.h"

namespace anneal::cli {
namespace {

constexpr int64_t kRounds = 2'000'000;
constexpr int kChains = 16;  // enough to hide the latency of one; as many registers as AVX2 has

struct Writer {
  Program program;

  ValueId add(Code code, DType dtype, uint16_t lanes, std::initializer_list<ValueId> operands,
              Op op = Op::Add) {
    Instruction instruction{code};
    instruction.op = op;
    instruction.dtype = dtype;
    instruction.lanes = lanes;
    std::ranges::copy(operands, instruction.operands.begin());
    program.code.push_back(instruction);
    return static_cast<ValueId>(program.code.size()) - 1;
  }
  ValueId constant(const Scalar& value, uint16_t lanes) {
    const ValueId id = add(Code::Constant, value.dtype(), lanes, {});
    program.code.back().bits = value.bits();
    return id;
  }
  ValueId number(int64_t value) { return constant(Scalar::of_int(DType::Index, value), 1); }
};

// In each round every chain becomes chain * x + y; in the end they are added up and stored.
Program multiply_adds(uint16_t lanes) {
  Writer code;
  code.program.name = "multiply_adds";
  code.program.buffers = {{DType::F32, true}};
  const auto value = [&](double number) {
    return code.constant(Scalar::of(DType::F32, number), lanes);
  };
  const ValueId cell = code.add(Code::Cell, DType::Index, 1, {});
  const ValueId begin = code.number(0), end = code.number(kRounds), step = code.number(1);
  const ValueId x = value(0.999), y = value(0.001);
  std::vector<ValueId> starts, chains, next;
  for (int i = 0; i < kChains; ++i) starts.push_back(value(1.0 + i));
  code.add(Code::Loop, DType::Index, 1, {begin, end, step});
  for (ValueId start : starts) chains.push_back(code.add(Code::Carry, DType::F32, lanes, {start}));
  for (ValueId chain : chains)
    next.push_back(code.add(Code::Compute, DType::F32, lanes, {chain, x, y}, Op::MulAdd));
  for (size_t i = 0; i < chains.size(); ++i)
    code.add(Code::Next, DType::F32, lanes, {chains[i], next[i]});
  code.add(Code::EndLoop, DType::F32, 1, {});
  ValueId sum = chains[0];
  for (size_t i = 1; i < chains.size(); ++i)
    sum = code.add(Code::Compute, DType::F32, lanes, {sum, chains[i]});
  const ValueId all = lanes == 1 ? sum : code.add(Code::Combine, DType::F32, 1, {sum});
  code.add(Code::Store, DType::F32, 1, {cell, kNoValue, all});
  return std::move(code.program);
}

}  // namespace

double fma_speed(int threads) {
  using Clock = std::chrono::steady_clock;
  KernelCacheOptions options;
  const auto lanes = static_cast<uint16_t>(options.target.vector_bytes / 4);
  KernelCache cache(options);
  const KernelFunction kernel = cache.compile(multiply_adds(lanes));

  const auto count = static_cast<size_t>(threads);
  std::vector<float> results(count);
  std::vector<Clock::time_point> begins(count), ends(count);
  std::barrier everyone(threads);
  const auto work = [&](size_t i) {
    void* const buffer = results.data();
    everyone.arrive_and_wait();
    begins[i] = Clock::now();
    kernel(&buffer, nullptr, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1, nullptr);
    ends[i] = Clock::now();
  };
  double least = 0;
  constexpr int kRuns = 3;
  for (int run = 0; run < kRuns; ++run) {
    {
      std::vector<std::jthread> others;
      for (size_t i = 1; i < count; ++i) others.emplace_back(work, i);
      work(0);
    }
    const double seconds = std::chrono::duration<double>(*std::ranges::max_element(ends) -
                                                         *std::ranges::min_element(begins))
                               .count();
    least = run == 0 ? seconds : std::min(least, seconds);
  }
  return 2e-9 * kRounds * kChains * lanes * threads / least;
}

}  // namespace anneal::cli
