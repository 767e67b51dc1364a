// Every elementwise op and every cast as machine code, for several instruction sets and lane
// counts, against semantics.h.
#include <cmath>
#include <deque>
#include <random>

#include <fmt/format.h>

#include "ir/infer.h"
#include "ir/semantics.h"
#include "kernel_runner.h"
#include "program_builder.h"
#include "runtime/cpu/kernel_cache.h"

using namespace anneal;
using namespace anneal::testing;

namespace {

constexpr uint16_t kLaneCounts[] = {1, 4, 16, 32};

// The host's own instructions, and older ones of the same machine, whose code takes other ways.
std::vector<CpuTarget> targets() {
  const CpuTarget host = host_target();
  std::vector<CpuTarget> all{host};
  if (host.triple.find("x86_64") == std::string::npos) return all;
  all.push_back({host.triple, "x86-64", "", 16});
  if (host.features.find("+avx2") != std::string::npos) {
    all.push_back({host.triple, "x86-64-v3", "+avx2,+fma,+f16c", 32});
  }
  return all;
}

std::vector<DType> arithmetic_dtypes() {
  std::vector<DType> dtypes;
  for (DType dtype : kAllDTypes) {
    const bool narrow = is_float(dtype) && byte_size(dtype) <= 2;
    if (!narrow && !is_index(dtype)) dtypes.push_back(dtype);
  }
  return dtypes;
}

// Any bits, read as the dtype: every exponent is as likely as another.
Scalar random_scalar(DType dtype, std::mt19937_64& random) {
  const uint64_t bits = random() >> (random() % 64);
  if (!is_float(dtype)) {
    return Scalar::of_int(dtype, static_cast<int64_t>(random() % 2 ? bits : 0 - bits));
  }
  const uint64_t code = random() >> (64 - 8 * byte_size(dtype));
  return Scalar::of(dtype, decode(dtype, code));
}

std::vector<Scalar> corners(DType dtype) {
  std::vector<Scalar> values;
  if (is_float(dtype)) {
    const FloatFormat& format = format_of(dtype);
    const double least = std::ldexp(1.0, format.min_exponent() - format.mantissa_bits);
    const double step = std::ldexp(1.0, -format.mantissa_bits);
    values = {Scalar::of(dtype, std::nan("")), lowest(dtype), highest(dtype)};
    for (double value :
         {0.0, least, std::ldexp(1.0, format.min_exponent()), 0.3, 0.5, 1 - step / 2, 1.0, 1 + step,
          1.5, 2.5, 3.5, 127.5, 1e5, 1e9, 3e9, 1e19, 2e19, 1e38, largest_finite(dtype)}) {
      values.push_back(Scalar::of(dtype, value));
      values.push_back(Scalar::of(dtype, -value));
    }
    return values;
  }
  for (int bit = 0; bit < 64; bit += bit < 9 ? 1 : 11) {
    for (int64_t near : {-1, 0, 1}) {
      const int64_t value = static_cast<int64_t>(uint64_t{1} << bit) + near;
      values.push_back(Scalar::of_int(dtype, value));
      values.push_back(Scalar::of_int(dtype, -value));
    }
  }
  values.push_back(lowest(dtype));
  values.push_back(highest(dtype));
  return values;
}

// Pairs of corners and of random values, filled up to a multiple of 32.
struct Pairs {
  std::vector<Scalar> a, b;
};

Pairs pairs(DType dtype, std::mt19937_64& random) {
  Pairs result;
  // Quotients that are neither huge nor 0, so that whole vectors of them take short ways; some are
  // whole numbers but for the last digit.
  for (int i = 0; is_float(dtype) && i < 1024; ++i) {
    const double b = std::ldexp(1 + std::ldexp(static_cast<double>(random() >> 12), -52),
                                static_cast<int>(random() % 40) - 20);
    const Scalar divisor = Scalar::of(dtype, random() % 2 ? b : -b);
    const double quotient = std::ldexp(static_cast<double>(random() >> 40), -(i % 25));
    const double near = divisor.as_double() * (i % 3 ? quotient : std::floor(quotient));
    result.a.push_back(Scalar::of(dtype, i % 5 ? near : std::nextafter(near, 0)));
    result.b.push_back(divisor);
  }
  const std::vector<Scalar> values = corners(dtype);
  for (Scalar a : values) {
    for (Scalar b : values) {
      result.a.push_back(a);
      result.b.push_back(b);
    }
  }
  while (result.a.size() < 4096 || result.a.size() % 32 != 0) {
    result.a.push_back(random_scalar(dtype, random));
    result.b.push_back(random_scalar(dtype, random));
  }
  return result;
}

std::vector<Op> ops_of(DType dtype) {
  std::vector<Op> ops;
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (!is_elementwise(op) || op == Op::Cast || op == Op::Bitcast) continue;
    if (op == Op::Scale && dtype != DType::F32) continue;
    if (op == Op::Threefry ? dtype == DType::U32 : accepts(info(op), dtype)) ops.push_back(op);
  }
  return ops;
}

DType result_of(Op op, DType dtype) {
  return info(op).type == TypeRule::Bool ? DType::Bool : dtype;
}

// The operands of an op from a and b: (a), (a, b), (a, b, a), (a, b, a, b); of a where (a < b, ..).
template <typename T>
std::vector<T> operands_of(Op op, T a, T b, T less) {
  std::vector<T> all{a, b, a, b};
  if (op == Op::Where) all = {less, a, b};
  all.resize(info(op).sources);
  return all;
}

// Every op on `lanes` elements of two buffers, each result to a buffer of its own.
Program program_of_ops(DType dtype, uint16_t lanes, const std::vector<Op>& ops) {
  ProgramBuilder b;
  const uint64_t first = b.buffer(dtype), second = b.buffer(dtype);
  for (Op op : ops) b.buffer(result_of(op, dtype), true);
  const ValueId place = b.compute(Op::Mul, {b.cell(), b.index(lanes)});
  const ValueId x = b.load(first, place, lanes), y = b.load(second, place, lanes);
  const ValueId less = b.compute(Op::Lt, DType::Bool, {x, y});
  for (size_t i = 0; i < ops.size(); ++i) {
    Instruction instruction{.code = Code::Compute, .op = ops[i], .dtype = result_of(ops[i], dtype)};
    instruction.lanes = lanes;
    const std::vector<ValueId> operands = operands_of(ops[i], x, y, less);
    std::copy(operands.begin(), operands.end(), instruction.operands.begin());
    b.store(2 + i, place, b.add(instruction));
  }
  return b.program;
}

// A fused product is rounded once, where evaluate() of f32 rounds the f64 again.
Scalar expected(Op op, DType dtype, std::span<const Scalar> operands) {
  if (op == Op::MulAdd && dtype == DType::F32) {
    const float value = std::fma(static_cast<float>(operands[0].as_double()),
                                 static_cast<float>(operands[1].as_double()),
                                 static_cast<float>(operands[2].as_double()));
    return Scalar::of(dtype, static_cast<double>(value));
  }
  return evaluate(op, result_of(op, dtype), operands);
}

void run_all(KernelFunction function, std::vector<Memory>& memory, int64_t cells) {
  std::vector<void*> pointers;
  for (Memory& one : memory) pointers.push_back(one.bytes.data());
  function(pointers.data(), nullptr, 0, cells, nullptr);
}

// ---- casts

// Values of `from` that casts find hard: those next to and between neighbours of each narrow
// format, ends of the integers, random ones; of small formats every code.
std::vector<Scalar> cast_sources(DType from, std::mt19937_64& random) {
  std::vector<Scalar> values = corners(from);
  if (is_float(from) && byte_size(from) <= 2) {
    for (uint64_t code = 0; code < uint64_t{1} << (8 * byte_size(from)); ++code) {
      values.push_back(Scalar::of(from, decode(from, code)));
    }
  } else if (is_float(from)) {
    for (DType to : {DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16, DType::F32}) {
      const uint64_t codes = format_of(to).overflow_code();
      for (int i = 0; i < 2000; ++i) {
        const uint64_t code = codes < 256 ? static_cast<uint64_t>(i) % codes : random() % codes;
        const double low = decode(to, code);
        const double high =
            code + 1 == codes ? 2 * low - decode(to, code - 1) : decode(to, code + 1);
        const double middle = low + (high - low) / 2;
        for (double value :
             {low, middle, std::nextafter(middle, low), std::nextafter(middle, high)}) {
          values.push_back(Scalar::of(from, random() % 2 ? value : -value));
        }
        const auto near = static_cast<float>(middle);
        values.push_back(Scalar::of(from, static_cast<double>(std::nextafter(near, 0.0f))));
        values.push_back(Scalar::of(from, static_cast<double>(std::nextafter(near, 1e38f))));
      }
    }
  } else {
    // Integers next to the midpoints of bf16 and f32.
    for (int i = 0; i < 2000; ++i) {
      const int top = static_cast<int>(random() % 64), kept = random() % 2 ? 8 : 24;
      uint64_t value = (uint64_t{1} << top) | (random() & ((uint64_t{1} << top) - 1));
      if (top >= kept) {
        const uint64_t half = uint64_t{1} << (top - kept);
        value = (value & ~(2 * half - 1)) | half;
        value += random() % 3 - 1;
      }
      values.push_back(Scalar::of_int(from, static_cast<int64_t>(value)));
      values.push_back(Scalar::of_int(from, -static_cast<int64_t>(value)));
    }
  }
  for (int i = 0; i < 2000; ++i) values.push_back(random_scalar(from, random));
  while (values.size() % 32 != 0) values.push_back(values.front());
  return values;
}

Program program_of_casts(Op op, DType from, const std::vector<DType>& to, uint16_t lanes) {
  ProgramBuilder b;
  const uint64_t source = b.buffer(from);
  for (DType dtype : to) b.buffer(dtype, true);
  const ValueId place = b.compute(Op::Mul, {b.cell(), b.index(lanes)});
  const ValueId value = b.load(source, place, lanes);
  for (size_t i = 0; i < to.size(); ++i) b.store(1 + i, place, b.compute(op, to[i], {value}));
  return b.program;
}

// Casts from `from` to every dtype `to`, as code for every target, against evaluate().
void check_casts(Op op, DType from, const std::vector<DType>& to, std::deque<KernelCache>& caches,
                 std::mt19937_64& random, Comparison& comparison) {
  const std::vector<Scalar> values = cast_sources(from, random);
  std::vector<std::vector<Scalar>> wanted;
  for (DType dtype : to) {
    wanted.emplace_back();
    for (Scalar value : values) wanted.back().push_back(evaluate(op, dtype, std::span(&value, 1)));
  }
  for (uint16_t lanes : kLaneCounts) {
    const Program program = program_of_casts(op, from, to, lanes);
    REQUIRE(verify(program) == "");
    for (size_t target = 0; target < caches.size(); ++target) {
      std::vector<Memory> memory{Memory(from, values)};
      for (DType dtype : to) memory.emplace_back(dtype, values.size());
      const KernelFunction function = caches[target].compile(program);
      run_all(function, memory, static_cast<int64_t>(values.size() / lanes));
      for (size_t k = 0; k < to.size(); ++k) {
        for (size_t i = 0; i < values.size(); ++i) {
          comparison.expect(memory[1 + k].at(i), wanted[k][i], [&] {
            return fmt::format("{} of {} {} to {} in {} lanes for {}", name(op), name(from),
                               to_text(values[i]), name(to[k]), lanes, targets()[target].cpu);
          });
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("cpu codegen: every elementwise op on every dtype it accepts") {
  std::deque<KernelCache> caches;
  for (const CpuTarget& target : targets())
    caches.emplace_back(KernelCacheOptions{.target = target});
  std::mt19937_64 random(1);
  Comparison comparison;
  for (DType dtype : arithmetic_dtypes()) {
    const Pairs values = pairs(dtype, random);
    const std::vector<Op> ops = ops_of(dtype);
    std::vector<std::vector<Scalar>> wanted;
    for (Op op : ops) {
      wanted.emplace_back();
      for (size_t i = 0; i < values.a.size(); ++i) {
        const Scalar both[] = {values.a[i], values.b[i]};
        const Scalar less = evaluate(Op::Lt, DType::Bool, both);
        wanted.back().push_back(expected(op, dtype, operands_of(op, both[0], both[1], less)));
      }
    }
    for (uint16_t lanes : kLaneCounts) {
      const Program program = program_of_ops(dtype, lanes, ops);
      REQUIRE(verify(program) == "");
      for (size_t target = 0; target < caches.size(); ++target) {
        std::vector<Memory> memory{Memory(dtype, values.a), Memory(dtype, values.b)};
        for (Op op : ops) memory.emplace_back(result_of(op, dtype), values.a.size());
        const KernelFunction function = caches[target].compile(program);
        run_all(function, memory, static_cast<int64_t>(values.a.size() / lanes));
        for (size_t k = 0; k < ops.size(); ++k) {
          for (size_t i = 0; i < values.a.size(); ++i) {
            comparison.expect(memory[2 + k].at(i), wanted[k][i], [&] {
              return fmt::format("{} of {} {} and {} in {} lanes for {}", name(ops[k]), name(dtype),
                                 to_text(values.a[i]), to_text(values.b[i]), lanes,
                                 targets()[target].cpu);
            });
          }
        }
      }
    }
  }
  comparison.finish(2'000'000);
}

TEST_CASE("cpu codegen: casts between all dtypes are exact") {
  std::deque<KernelCache> caches;
  for (const CpuTarget& target : targets())
    caches.emplace_back(KernelCacheOptions{.target = target});
  std::mt19937_64 random(2);
  Comparison comparison;
  for (DType from : storable_dtypes()) {
    check_casts(Op::Cast, from, storable_dtypes(), caches, random, comparison);
  }
  comparison.finish(4'000'000);
}

TEST_CASE("cpu codegen: bitcasts keep the bits") {
  std::deque<KernelCache> caches(1);
  std::mt19937_64 random(3);
  Comparison comparison;
  for (DType from : storable_dtypes()) {
    std::vector<DType> to;
    for (DType dtype : storable_dtypes()) {
      if (byte_size(dtype) == byte_size(from)) to.push_back(dtype);
    }
    check_casts(Op::Bitcast, from, to, caches, random, comparison);
  }
  comparison.finish(100'000);
}
