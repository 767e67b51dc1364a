#include "tune/kernel_trial.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "base/os/huge_memory.h"
#include "ir/float_formats.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/thread_pool.h"
#include "symbolic/bounds.h"
#include "symbolic/index_program.h"

namespace anneal {
namespace {

using Clock = std::chrono::steady_clock;

// Around every buffer, and what is there: a kernel that stores beyond its end is found out.
constexpr size_t kGuardBytes = 4096;
constexpr std::byte kGuard{0xA5};

// Of a measurement.
constexpr double kLongEnough = 4e-3;  // seconds
constexpr int kFewestRuns = 3, kMostRuns = 50;

// What kernels may differ by, to the number itself or to what numbers of the buffer usually are:
// sums are added up in another order, and then rounded to the dtype.
double tolerance_of(DType dtype) {  // of a float
  switch (dtype) {
    case DType::F64: return 1e-9;
    case DType::F32: return 1e-4;
    case DType::F16: return 1e-2;
    case DType::BF16: return 4e-2;
    default: return 0.25;  // eight bits
  }
}

double number_at(DType dtype, const std::byte* at) {
  uint64_t code = 0;
  std::memcpy(&code, at, byte_size(dtype));
  return is_float(dtype) ? decode(dtype, code) : static_cast<double>(code);
}

// The same in every run: xorshift.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

 private:
  uint64_t state_;
};

}  // namespace

struct KernelTrial::Buffer {
  DType dtype;
  bool written;
  size_t bytes;
  HugeMemory memory;
  std::vector<std::byte> reference = {};
  double usual = 0;  // the root of the mean square of what is to be stored

  std::byte* data() const { return memory.data() + kGuardBytes; }

  void fill(uint64_t seed, bool positive) {
    std::fill_n(memory.data(), kGuardBytes, kGuard);
    std::fill_n(data() + bytes, kGuardBytes, kGuard);
    Numbers numbers(seed);
    const size_t each = byte_size(dtype);
    for (size_t at = 0; at < bytes; at += each) {
      const uint64_t bits = numbers.next();
      uint64_t code = bits >> 32 & 1;  // integers are 0 or 1, a position in nearly every axis
      if (is_float(dtype)) {
        const double unit = static_cast<double>(bits >> 40) / static_cast<double>(1 << 24);
        const double value = positive ? 0.0625 + unit / 16 : unit * 2 - 1;
        if (dtype == DType::F32) {
          const auto single = static_cast<float>(value);
          std::memcpy(data() + at, &single, each);
          continue;
        }
        code = encode(dtype, value);
      }
      std::memcpy(data() + at, &code, each);
    }
  }

  bool guards_hold() const {
    const auto holds = [](const std::byte* from) {
      return std::all_of(from, from + kGuardBytes, [](std::byte byte) { return byte == kGuard; });
    };
    return holds(memory.data()) && holds(data() + bytes);
  }

  // Whether all of it is finite.
  bool become_reference() {
    reference.assign(data(), data() + bytes);
    double squares = 0;
    const size_t each = byte_size(dtype), count = bytes / each;
    for (size_t i = 0; i < count; ++i) {
      const double value = number_at(dtype, reference.data() + i * each);
      if (!std::isfinite(value)) return false;
      squares += value * value;
    }
    usual = count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
    return true;
  }

  // Empty where it is what the reference stored.
  std::string difference() const {
    const size_t each = byte_size(dtype);
    const double tolerance = tolerance_of(dtype);
    for (size_t at = 0; at < bytes; at += each) {
      if (std::memcmp(data() + at, reference.data() + at, each) == 0) continue;
      const double got = number_at(dtype, data() + at);
      const double wanted = number_at(dtype, reference.data() + at);
      // NaN is never within it, and no integer is that is not the same.
      if (is_float(dtype) &&
          std::abs(got - wanted) <= tolerance * std::max(std::abs(wanted), usual))
        continue;
      return fmt::format("element {} is {:g} and should be {:g}", at / each, got, wanted);
    }
    return "";
  }
};

struct KernelTrial::Workers {
  WorkerScratch scratch;
  KernelCache cache;
};

std::string KernelTrial::why_not(const KernelBody& body, int64_t most_bytes) {
  if (!body.variables.empty()) return "its sizes are not known before it runs";
  double bytes = 0;
  for (NodeRef buffer : body.buffers) {
    const double copies =
        std::ranges::any_of(body.stores, [&](NodeRef store) { return store->source(0) == buffer; })
            ? 2
            : 1;
    bytes += copies * static_cast<double>(bounds(buffer->dim(0)).max) *
             static_cast<double>(byte_size(buffer->dtype));
  }
  if (bytes > static_cast<double>(most_bytes))
    return fmt::format("it takes {:.0f} MB by itself", bytes * 1e-6);
  return "";
}

KernelTrial::KernelTrial(const KernelBody& body) : workers_(std::make_unique<Workers>()) {
  for (NodeRef buffer : body.buffers) {
    const bool written =
        std::ranges::any_of(body.stores, [&](NodeRef store) { return store->source(0) == buffer; });
    const auto bytes = static_cast<size_t>(bounds(buffer->dim(0)).max) * byte_size(buffer->dtype);
    buffers_.push_back({buffer->dtype, written, bytes, HugeMemory(bytes + 2 * kGuardBytes)});
  }
  fill(false);
}

KernelTrial::~KernelTrial() = default;

void KernelTrial::fill(bool positive) {
  positive_ = positive;
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].fill(i + 1, positive);
}

std::vector<TrialKernel> KernelTrial::compile(std::span<const LoweredBody> lowered) {
  std::vector<const Program*> programs;
  for (const LoweredBody& each : lowered) programs.push_back(&each.program);
  std::vector<TrialKernel> kernels;
  for (CompiledKernel& code : workers_->cache.compile_all(programs)) {
    const LoweredBody& body = lowered[kernels.size()];
    kernels.push_back({std::move(code), IndexProgram(std::span(&body.cells, 1), {}).evaluate({})[0],
                       local_bytes(body.program)});
  }
  return kernels;
}

void KernelTrial::reserve(const TrialKernel& kernel) {
  workers_->scratch.reserve(thread_pool().threads(), std::max(kernel.local_bytes, kLocalAlignment));
}

void KernelTrial::run(const TrialKernel& kernel) {
  std::vector<void*> pointers;
  for (const Buffer& buffer : buffers_) pointers.push_back(buffer.data());
  auto stretch = [&](int64_t begin, int64_t end, int worker) {
    kernel.code.function(pointers.data(), nullptr, begin, end, workers_->scratch.of(worker));
  };
  if (kernel.cells == 1) return stretch(0, 1, 0);
  thread_pool().run(kernel.cells, stretch);
}

bool KernelTrial::set_reference(const TrialKernel& kernel) {
  reserve(kernel);
  for (const bool positive : {false, true}) {
    fill(positive);
    run(kernel);
    const bool finite = std::ranges::all_of(buffers_, [](Buffer& buffer) {
      return !buffer.written || (buffer.guards_hold() && buffer.become_reference());
    });
    if (finite) return true;
  }
  return false;
}

std::string KernelTrial::why_wrong(const TrialKernel& kernel) {
  reserve(kernel);
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i].written) buffers_[i].fill(i + 1, positive_);
  run(kernel);
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (!buffers_[i].guards_hold()) return fmt::format("it stores outside of buffer {}", i);
    if (!buffers_[i].written) continue;
    if (std::string why = buffers_[i].difference(); !why.empty())
      return fmt::format("buffer {}: {}", i, why);
  }
  return "";
}

double KernelTrial::seconds(const TrialKernel& kernel, double most) {
  reserve(kernel);
  double least = 1e300, all = 0;
  for (int i = 0; i < kMostRuns && (i < kFewestRuns || all < kLongEnough); ++i) {
    const Clock::time_point begin = Clock::now();
    run(kernel);
    const double taken = std::chrono::duration<double>(Clock::now() - begin).count();
    least = std::min(least, taken);
    all += taken;
    if (least > most) break;
  }
  return least;
}

}  // namespace anneal
