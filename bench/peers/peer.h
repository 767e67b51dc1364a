// Other people's libraries, which `anneal bench` compares with: each file here gives one of them.
// Nothing of this is linked into anneal or its program.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace anneal::peers {

// One way to do what a case asks for; `run` does it once.
struct Contender {
  std::string name;  // of the library and its function
  std::function<void()> run;
};

// The words of a case, and what they mean; all matrices and images hold f32, row-major:
//   gemm LAYOUT M N K            C[M,N] = A.B; nn: A[M,K] B[K,N], nt: B is [N,K], tn: A is [K,M]
//   conv WHAT N C H W O K S P    image [N,C,H,W], weights [O,C,K,K], stride S, padding P;
//                                WHAT: forward, input or weights (gradients of them); with "-any"
//                                behind it the library may use an algorithm that rounds otherwise
using Words = std::span<const std::string>;

// Words that are a case of this kind, else none: conv with eight numbers.
struct Case {
  std::string variant;  // the word after the kind
  std::vector<int64_t> sizes;
};
bool parse_case(Words words, std::string_view kind, size_t sizes, Case& result);

// Values that keep sums of products small and no denormals.
void fill(std::span<float> values, size_t period);

// A library adds itself by a static Registration.
using Offer = std::vector<Contender> (*)(Words);
struct Registration {
  explicit Registration(Offer offer);
};
std::vector<Contender> contenders(Words words);

}  // namespace anneal::peers
