// Matrix products and convolutions by oneDNN. Layouts of convolutions are those it likes best; what
// it would cost to bring plain tensors into them is left out, in its favour.
#include <memory>

#include <dnnl.hpp>

#include "peer.h"

namespace anneal::peers {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kF32 = memory::data_type::f32;

struct Library {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

Library& library() {
  static Library instance;
  return instance;
}

memory filled(const memory::desc& layout, size_t period) {
  memory result(layout, library().engine);
  fill({static_cast<float*>(result.get_data_handle()), layout.get_size() / sizeof(float)}, period);
  return result;
}

// A contender that executes a primitive on what its arguments hold.
Contender executing(std::string name, const dnnl::primitive& primitive,
                    std::unordered_map<int, memory> arguments) {
  return {std::move(name), [primitive, arguments = std::move(arguments)] {
            primitive.execute(library().stream, arguments);
            library().stream.wait();
          }};
}

// ---- descriptions: version 3 of the library took a step out of making them

template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc describe(Arguments&&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {library().engine, std::forward<Arguments>(arguments)...};
#else
  return {typename Primitive::desc(std::forward<Arguments>(arguments)...), library().engine};
#endif
}

// Gradients also want to know how the forward pass was done.
template <typename Primitive, typename Forward, typename... Arguments>
typename Primitive::primitive_desc describe_gradient(const Forward& forward,
                                                     Arguments&&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {library().engine, std::forward<Arguments>(arguments)..., forward};
#else
  return {typename Primitive::desc(std::forward<Arguments>(arguments)...), library().engine,
          forward};
#endif
}

// ---- matrix products

struct Matrices {
  std::vector<float> a, b, c;
};

std::vector<Contender> products(const Case& wanted) {
  const int64_t m = wanted.sizes[0], n = wanted.sizes[1], k = wanted.sizes[2];
  const bool a_turned = wanted.variant == "tn", b_turned = wanted.variant == "nt";
  if (!a_turned && !b_turned && wanted.variant != "nn") return {};

  auto matrices = std::make_shared<Matrices>();
  matrices->a.resize(static_cast<size_t>(m * k));
  matrices->b.resize(static_cast<size_t>(k * n));
  matrices->c.resize(static_cast<size_t>(m * n));
  fill(matrices->a, 13);
  fill(matrices->b, 7);
  const auto call = [=] {
    dnnl_sgemm(a_turned ? 'T' : 'N', b_turned ? 'T' : 'N', m, n, k, 1.0F, matrices->a.data(),
               a_turned ? m : k, matrices->b.data(), b_turned ? k : n, 0.0F, matrices->c.data(), n);
  };

  const memory::desc a({m, k}, kF32, a_turned ? Tag::ba : Tag::ab);
  const memory::desc b({k, n}, kF32, b_turned ? Tag::ba : Tag::ab);
  const memory::desc c({m, n}, kF32, Tag::ab);
  return {{"oneDNN sgemm", call},
          executing("oneDNN matmul", dnnl::matmul(describe<dnnl::matmul>(a, b, c)),
                    {{DNNL_ARG_SRC, filled(a, 13)},
                     {DNNL_ARG_WEIGHTS, filled(b, 7)},
                     {DNNL_ARG_DST, filled(c, 2)}})};
}

// ---- convolutions

std::vector<Contender> convolutions(const Case& wanted) {
  using dnnl::convolution_backward_data, dnnl::convolution_backward_weights,
      dnnl::convolution_forward;
  const auto& s = wanted.sizes;
  const int64_t images = s[0], channels = s[1], height = s[2], width = s[3], outputs = s[4],
                kernel = s[5], stride = s[6], padding = s[7];
  if (stride == 0) return {};
  const auto steps = [&](int64_t size) { return (size + 2 * padding - kernel) / stride + 1; };

  const memory::desc image({images, channels, height, width}, kF32, Tag::any);
  const memory::desc weights({outputs, channels, kernel, kernel}, kF32, Tag::any);
  const memory::desc result({images, outputs, steps(height), steps(width)}, kF32, Tag::any);
  const memory::dims strides{stride, stride}, border{padding, padding};
  constexpr std::string_view kAny = "-any";
  const bool any = wanted.variant.ends_with(kAny);
  const std::string what =
      wanted.variant.substr(0, wanted.variant.size() - (any ? kAny.size() : 0));
  const auto algorithm =
      any ? dnnl::algorithm::convolution_auto : dnnl::algorithm::convolution_direct;
  const std::string name = any ? "oneDNN convolution, any" : "oneDNN convolution, direct";
  const auto forward =
      describe<convolution_forward>(dnnl::prop_kind::forward_training, algorithm, image, weights,
                                    result, strides, border, border);
  if (what == "forward")
    return {executing(name, convolution_forward(forward),
                      {{DNNL_ARG_SRC, filled(forward.src_desc(), 13)},
                       {DNNL_ARG_WEIGHTS, filled(forward.weights_desc(), 7)},
                       {DNNL_ARG_DST, filled(forward.dst_desc(), 2)}})};
  if (what == "input") {
    const auto gradient = describe_gradient<convolution_backward_data>(
        forward, algorithm, image, weights, result, strides, border, border);
    return {executing(name, convolution_backward_data(gradient),
                      {{DNNL_ARG_DIFF_SRC, filled(gradient.diff_src_desc(), 2)},
                       {DNNL_ARG_WEIGHTS, filled(gradient.weights_desc(), 7)},
                       {DNNL_ARG_DIFF_DST, filled(gradient.diff_dst_desc(), 13)}})};
  }
  if (what == "weights") {
    const auto gradient = describe_gradient<convolution_backward_weights>(
        forward, algorithm, image, weights, result, strides, border, border);
    return {executing(name, convolution_backward_weights(gradient),
                      {{DNNL_ARG_SRC, filled(gradient.src_desc(), 13)},
                       {DNNL_ARG_DIFF_WEIGHTS, filled(gradient.diff_weights_desc(), 2)},
                       {DNNL_ARG_DIFF_DST, filled(gradient.diff_dst_desc(), 7)}})};
  }
  return {};
}

std::vector<Contender> offer(Words words) {
  Case wanted;
  if (parse_case(words, "gemm", 3, wanted)) return products(wanted);
  if (parse_case(words, "conv", 8, wanted)) return convolutions(wanted);
  return {};
}

const Registration kRegistration(offer);

}  // namespace
}  // namespace anneal::peers
