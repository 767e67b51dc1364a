#include "tune/kernel_trial.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "ir/float_formats.h"
#include "symbolic/bounds.h"

namespace anneal {
namespace {

// Around every buffer, and what is there: a kernel that stores beyond its end is found out. A
// buffer begins where every device lets one begin.
constexpr int64_t kGuardBytes = 4096;
constexpr std::byte kGuard{0xA5};
// What goes to the device and comes from it at once.
constexpr int64_t kPieceBytes = int64_t{16} << 20;

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
  if (dtype == DType::F32) {  // of most, and there are many
    float single = 0;
    std::memcpy(&single, at, sizeof(float));
    return static_cast<double>(single);
  }
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
  Device& device;
  DType dtype;
  bool written;
  int64_t bytes;
  std::unique_ptr<DeviceMemory> memory;
  std::vector<std::byte> reference = {};
  double usual = 0;  // the root of the mean square of what is to be stored

  Buffer(Device& on, DType type, bool is_written, int64_t size)
      : device(on),
        dtype(type),
        written(is_written),
        bytes(size),
        memory(on.allocate(kGuardBytes + padded() + kGuardBytes)) {}

  BufferRef place(int64_t offset = 0) const { return {memory->handle(), kGuardBytes + offset}; }
  // Devices that do not share the host's memory take and store whole words.
  int64_t padded() const { return (bytes + 15) / 16 * 16; }
  int64_t end() const { return device.shares_host_memory() ? bytes : (bytes + 3) / 4 * 4; }

  void fill(uint64_t seed, bool positive) {
    const std::vector<std::byte> guard(kGuardBytes, kGuard);
    device.copy_in(guard, {memory->handle(), 0});
    Numbers numbers(seed);
    std::vector<std::byte> piece;
    for (int64_t begin = 0; begin < bytes; begin += kPieceBytes) {
      piece.resize(static_cast<size_t>(std::min(kPieceBytes, bytes - begin)));
      write_numbers(piece, numbers, positive);
      if (begin + kPieceBytes >= bytes) piece.resize(static_cast<size_t>(padded() - begin), kGuard);
      device.copy_in(piece, place(begin));
    }
    device.copy_in(guard, place(padded()));
  }

  void write_numbers(std::span<std::byte> to, Numbers& numbers, bool positive) const {
    const size_t each = byte_size(dtype);
    for (size_t at = 0; at < to.size(); at += each) {
      const uint64_t bits = numbers.next();
      uint64_t code = bits >> 32 & 1;  // integers are 0 or 1, a position in nearly every axis
      if (is_float(dtype)) {
        const double unit = static_cast<double>(bits >> 40) / static_cast<double>(1 << 24);
        const double value = positive ? 0.0625 + unit / 16 : unit * 2 - 1;
        if (dtype == DType::F32) {
          const auto single = static_cast<float>(value);
          std::memcpy(to.data() + at, &single, each);
          continue;
        }
        code = encode(dtype, value);
      }
      std::memcpy(to.data() + at, &code, each);
    }
  }

  bool guards_hold() const {
    const auto holds = [&](BufferRef from, int64_t skipped, int64_t count) {
      std::vector<std::byte> is(static_cast<size_t>(count));
      device.copy_out(from, is);
      return std::all_of(is.begin() + static_cast<std::ptrdiff_t>(skipped), is.end(),
                         [](std::byte byte) { return byte == kGuard; });
    };
    const int64_t last = padded() - (bytes > 0 ? 16 : 0);
    return holds({memory->handle(), 0}, 0, kGuardBytes) &&
           holds(place(last), end() - last, padded() - last + kGuardBytes);
  }

  // Whether all of it is finite.
  bool become_reference() {
    reference.resize(static_cast<size_t>(bytes));
    device.copy_out(place(), reference);
    double squares = 0;
    const size_t each = byte_size(dtype), count = reference.size() / each;
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
    std::vector<std::byte> piece;
    for (int64_t begin = 0; begin < bytes; begin += kPieceBytes) {
      piece.resize(static_cast<size_t>(std::min(kPieceBytes, bytes - begin)));
      device.copy_out(place(begin), piece);
      if (std::string why = difference(piece, static_cast<size_t>(begin)); !why.empty()) return why;
    }
    return "";
  }
  std::string difference(std::span<const std::byte> is, size_t begin) const {
    const std::byte* wanted_bytes = reference.data() + begin;
    if (std::memcmp(is.data(), wanted_bytes, is.size()) == 0) return "";
    const size_t each = byte_size(dtype);
    const double tolerance = tolerance_of(dtype);
    for (size_t at = 0; at < is.size(); at += each) {
      if (std::memcmp(is.data() + at, wanted_bytes + at, each) == 0) continue;
      const double got = number_at(dtype, is.data() + at);
      const double wanted = number_at(dtype, wanted_bytes + at);
      // NaN is never within it, and no integer is that is not the same.
      if (is_float(dtype) &&
          std::abs(got - wanted) <= tolerance * std::max(std::abs(wanted), usual))
        continue;
      return fmt::format("element {} is {:g} and should be {:g}", (begin + at) / each, got, wanted);
    }
    return "";
  }
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

KernelTrial::KernelTrial(const KernelBody& body, Device& device, KernelBench& bench)
    : body_(body), device_(device), bench_(bench) {
  for (NodeRef buffer : body.buffers) {
    const bool written =
        std::ranges::any_of(body.stores, [&](NodeRef store) { return store->source(0) == buffer; });
    const int64_t bytes =
        bounds(buffer->dim(0)).max * static_cast<int64_t>(byte_size(buffer->dtype));
    buffers_.emplace_back(device_, buffer->dtype, written, bytes);
  }
  for (const Buffer& buffer : buffers_) places_.push_back(buffer.place());
  fill(false);
}

KernelTrial::~KernelTrial() = default;

void KernelTrial::fill(bool positive) {
  positive_ = positive;
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].fill(i + 1, positive);
}

double KernelTrial::run(const TrialKernel& kernel, int times) {
  return bench_.run(*kernel, places_, times);
}

bool KernelTrial::set_reference(const TrialKernel& kernel) {
  if (!kernel) return false;
  for (const bool positive : {false, true}) {
    fill(positive);
    run(kernel, 1);
    const bool finite = std::ranges::all_of(buffers_, [](Buffer& buffer) {
      return !buffer.written || (buffer.guards_hold() && buffer.become_reference());
    });
    if (finite) return true;
  }
  return false;
}

std::string KernelTrial::why_wrong(const TrialKernel& kernel) {
  if (!kernel) return "it does not compile";
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i].written) buffers_[i].fill(i + 1, positive_);
  run(kernel, 1);
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (!buffers_[i].guards_hold()) return fmt::format("it stores outside of buffer {}", i);
    if (!buffers_[i].written) continue;
    if (std::string why = buffers_[i].difference(); !why.empty())
      return fmt::format("buffer {}: {}", i, why);
  }
  return "";
}

double KernelTrial::seconds(const TrialKernel& kernel, double most) {
  double least = run(kernel, 1), all = least;
  // Several in a row where one is over at once.
  const double wanted = kLongEnough / kFewestRuns / std::max(least, 1e-9);
  const int times =
      static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(bench_.most_times())));
  for (int i = 1; i < kMostRuns && least <= most && (i < kFewestRuns || all < kLongEnough); ++i) {
    const double taken = run(kernel, times);
    least = std::min(least, taken);
    all += taken * times;
  }
  return least;
}

}  // namespace anneal
