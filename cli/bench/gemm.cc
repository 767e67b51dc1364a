// Matrix products against OpenBLAS and oneDNN, or PyTorch on a GPU, and what an epilogue and
// two-byte storage cost.
#include <fmt/format.h>

#include <anneal/functional.h>

#include "cli/bench/cases.h"

namespace anneal::cli {
namespace {

constexpr std::string_view kBench = "gemm", kUnit = "GFLOP/s";

struct Product {
  std::string_view layout;  // nn; nt: the second is transposed; tn: the first
  int64_t m, n, k;

  std::string name() const {
    const std::string_view mark = layout == "nt" ? " A.B^T" : layout == "tn" ? " A^T.B" : "";
    return fmt::format("{} x {} x {}{}", m, n, k, mark);
  }
  double flops() const {
    return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
  Tensor build(DType dtype = DType::F32) const {
    const Tensor a =
        layout == "tn" ? transpose(filled({k, m}, 13, dtype)) : filled({m, k}, 13, dtype);
    const Tensor b =
        layout == "nt" ? transpose(filled({n, k}, 7, dtype)) : filled({k, n}, 7, dtype);
    return matmul(a, b);
  }
};

constexpr Product kProducts[] = {
    {"nn", 256, 256, 256},    {"nn", 512, 512, 512},    {"nn", 1024, 1024, 1024},
    {"nn", 2048, 2048, 2048}, {"nn", 1000, 1000, 1000}, {"nn", 1023, 1023, 1023},
    {"nn", 128, 768, 3072},   {"nt", 1024, 1024, 1024}, {"tn", 1024, 1024, 1024},
};
constexpr Product kLarge{"nn", 4096, 4096, 4096};  // a CPU would take too long
constexpr Product kPlain{"nn", 1024, 1024, 1024};

void against_peers(const BenchContext& context, const Product& product) {
  const std::string name = product.name();
  if (!context.begin(kBench, name)) return;
  Prepared ours(context.device, {product.build()});
  const Timing timing = time_against(
      context, [&] { return ours.run(); },
      context.device.runs_beside_host() ? PeerKind::PyTorch : PeerKind::Libraries,
      fmt::format("gemm {} {} {} {}", product.layout, product.m, product.n, product.k));
  add_rates(context, context.row(kBench, name, kUnit), timing, product.flops() * 1e-9);
}

// The plain product of ours is what the other one is compared with.
template <typename Build>
void against_plain(const BenchContext& context, std::string_view what, Build other) {
  const std::string name = fmt::format("{} {}", kPlain.name(), what);
  if (!context.begin(kBench, name)) return;
  Prepared plain(context.device, {kPlain.build()}), changed(context.device, {other()});
  const TimingOfTwo timing =
      time_both(context, [&] { return plain.run(); }, [&] { return changed.run(); });
  BenchRow row = context.row(kBench, name, kUnit);
  row.ours = kPlain.flops() / timing.second * 1e-9;
  row.peer = "ours, plain f32";
  row.peer_value = kPlain.flops() / timing.first * 1e-9;
  context.report.add(std::move(row));
}

}  // namespace

void bench_gemm(const BenchContext& context) {
  for (const Product& product : kProducts) against_peers(context, product);
  if (context.device.takes_thousands_of_threads()) against_peers(context, kLarge);
  against_plain(context, "+ bias, gelu",
                [] { return gelu(kPlain.build() + filled({kPlain.n}, 5)); });
  against_plain(context, "of bf16", [] { return kPlain.build(DType::BF16); });
}

}  // namespace anneal::cli
