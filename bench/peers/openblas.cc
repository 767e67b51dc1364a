// Matrix products by OpenBLAS.
#include <memory>

#include <cblas.h>

#include "peer.h"

namespace anneal::peers {
namespace {

struct Matrices {
  std::vector<float> a, b, c;
};

std::vector<Contender> offer(Words words) {
  Case wanted;
  if (!parse_case(words, "gemm", 3, wanted)) return {};
  const auto m = static_cast<int>(wanted.sizes[0]), n = static_cast<int>(wanted.sizes[1]),
             k = static_cast<int>(wanted.sizes[2]);
  const bool a_turned = wanted.variant == "tn", b_turned = wanted.variant == "nt";
  if (!a_turned && !b_turned && wanted.variant != "nn") return {};

  auto memory = std::make_shared<Matrices>();
  memory->a.resize(static_cast<size_t>(m) * static_cast<size_t>(k));
  memory->b.resize(static_cast<size_t>(k) * static_cast<size_t>(n));
  memory->c.resize(static_cast<size_t>(m) * static_cast<size_t>(n));
  fill(memory->a, 13);
  fill(memory->b, 7);
  return {{"OpenBLAS sgemm", [=] {
             cblas_sgemm(CblasRowMajor, a_turned ? CblasTrans : CblasNoTrans,
                         b_turned ? CblasTrans : CblasNoTrans, m, n, k, 1.0F, memory->a.data(),
                         a_turned ? m : k, memory->b.data(), b_turned ? k : n, 0.0F,
                         memory->c.data(), n);
           }}};
}

const Registration kRegistration(offer);

}  // namespace
}  // namespace anneal::peers
