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
#include "runtime/cpu/kernel_cache.h"

namespace anneal {

// Ready to run.
struct TrialKernel {
  CompiledKernel code;
  int64_t cells = 0, local_bytes = 0;
};

class KernelTrial {
 public:
  // Why such a body cannot be tried: sizes that are not known, or more memory than `most_bytes`;
  // empty: it can.
  static std::string why_not(const KernelBody& body, int64_t most_bytes);
  // In the graph of the body.
  explicit KernelTrial(const KernelBody& body);
  ~KernelTrial();
  KernelTrial(const KernelTrial&) = delete;
  KernelTrial& operator=(const KernelTrial&) = delete;

  // On several threads; nothing is kept on disk.
  std::vector<TrialKernel> compile(std::span<const LoweredBody> lowered);
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
  void run(const TrialKernel& kernel);
  void reserve(const TrialKernel& kernel);

  std::vector<Buffer> buffers_;
  bool positive_ = false;
  struct Workers;
  std::unique_ptr<Workers> workers_;
};

}  // namespace anneal
