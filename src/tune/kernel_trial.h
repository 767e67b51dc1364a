// One kernel by itself, on memory of its own: whether a candidate computes what another one does,
// and how long it takes. Must not choose candidates.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "body/kernel_body.h"
#include "kernel/lower.h"
#include "runtime/device/kernel_bench.h"

namespace anneal {

using TrialKernel = std::shared_ptr<const BenchKernel>;  // null: its code cannot be made

class KernelTrial {
 public:
  // Why such a body cannot be tried: sizes that are not known, or more memory than `most_bytes`;
  // empty: it can.
  static std::string why_not(const KernelBody& body, int64_t most_bytes);
  // In the graph of the body. The device takes tuned plans, and the bench is its own.
  KernelTrial(const KernelBody& body, Device& device, KernelBench& bench);
  ~KernelTrial();
  KernelTrial(const KernelTrial&) = delete;
  KernelTrial& operator=(const KernelTrial&) = delete;

  std::vector<TrialKernel> compile(std::span<const LoweredBody> lowered) {
    return bench_.compile(body_, lowered);
  }
  TrialKernel compile(const LoweredBody& lowered) { return compile({&lowered, 1})[0]; }

  // What it stores is what others have to store. False where that cannot be compared: it is not
  // finite, whatever numbers it is given.
  bool set_reference(const TrialKernel& kernel);
  // Why a kernel is not as good as the reference: it stores other numbers, or outside of its
  // memory; empty: it is.
  std::string why_wrong(const TrialKernel& kernel);

  // Of the shortest of several runs. Less than all of them where the first one takes longer than
  // `most`.
  double seconds(const TrialKernel& kernel, double most);

 private:
  struct Buffer;
  void fill(bool positive);
  double run(const TrialKernel& kernel, int times);

  const KernelBody& body_;
  Device& device_;
  KernelBench& bench_;
  std::vector<Buffer> buffers_;
  std::vector<BufferRef> places_;
  bool positive_ = false;
};

}  // namespace anneal
