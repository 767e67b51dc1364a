// Op cases: losses of elements, and attention with masks.
// Rows only; the order of a row is name, inputs, program, options.
#include "op_cases.h"

namespace anneal {
namespace {

const CaseOptions kLoss{.widens_floats = true};

InputSpec numbers(double low = -4, double high = 4) { return reals({3, 4}, low, high).symbolic(0); }
InputSpec signs() { return listed({2, 4}, {1, -1, -1, 1, -1, 1, 1, -1}); }
InputSpec tokens(std::vector<int64_t> shape) { return reals(std::move(shape), -2, 2).symbolic(2); }

}  // namespace

std::vector<OpCase> loss_cases() {
  return {
      {"l1_loss", {numbers(), numbers()}, [](Args x) { return l1_loss(x[0], x[1]); }, kLoss},
      {"l1_loss_sum",
       {numbers(), numbers()},
       [](Args x) { return l1_loss(x[0], x[1], Reduction::Sum); },
       kLoss},
      {"l1_loss_none",
       {numbers(), numbers()},
       [](Args x) { return l1_loss(x[0], x[1], Reduction::None); },
       kLoss},
      {"huber_loss", {numbers(), numbers()}, [](Args x) { return huber_loss(x[0], x[1]); }, kLoss},
      {"huber_loss_delta",
       {numbers(), numbers()},
       [](Args x) { return huber_loss(x[0], x[1], Reduction::None, 2.5); },
       kLoss},
      {"smooth_l1_loss",
       {numbers(), numbers()},
       [](Args x) { return smooth_l1_loss(x[0], x[1], Reduction::Sum); },
       kLoss},
      {"smooth_l1_loss_beta",
       {numbers(), numbers()},
       [](Args x) { return smooth_l1_loss(x[0], x[1], Reduction::None, 2.5); },
       kLoss},
      {"smooth_l1_loss_straight",
       {numbers(), numbers()},
       [](Args x) { return smooth_l1_loss(x[0], x[1], Reduction::Mean, 0); },
       kLoss},
      {"kl_div",
       {numbers(-4, -0.5), numbers(0.125, 1)},
       [](Args x) { return kl_div(x[0], x[1]); },
       kLoss},
      {"kl_div_sum",
       {numbers(-4, -0.5), numbers(0.125, 1)},
       [](Args x) { return kl_div(x[0], x[1], Reduction::Sum); },
       kLoss},
      {"kl_div_logarithms",
       {numbers(-4, -0.5), numbers(-4, -0.5)},
       [](Args x) { return kl_div(x[0], x[1], Reduction::None, true); },
       kLoss},
      {"kl_div_zeros",
       {reals({3, 4}, -4, -0.5), listed({3, 4}, {0, 1, 0.5, 0, 0.25, 0, 0, 1, 0.5, 0.5, 0, 0})},
       [](Args x) { return kl_div(x[0], stop_gradient(x[1]), Reduction::None); },
       {.differentiable = false, .widens_floats = true}},
      {"hinge_loss",
       {reals({2, 4}, -2, 2), signs()},
       [](Args x) { return hinge_loss(x[0], x[1]); },
       kLoss},
      {"hinge_loss_margin",
       {reals({2, 4}, -2, 2), signs()},
       [](Args x) { return hinge_loss(x[0], x[1], Reduction::None, 0.5); },
       kLoss},
      {"hinge_embedding_loss",
       {reals({2, 4}, 0, 2), signs()},
       [](Args x) { return hinge_embedding_loss(x[0], x[1]); },
       kLoss},
      {"hinge_embedding_loss_margin",
       {reals({2, 4}, 0, 2), signs()},
       [](Args x) { return hinge_embedding_loss(x[0], x[1], Reduction::None, 0.5); },
       kLoss},

      // ---- attention
      {"attention_mask",
       {reals({2, 2, 3, 4}, -2, 2), reals({2, 2, 3, 4}, -2, 2), reals({2, 2, 3, 4}, -2, 2),
        listed({2, 1, 1, 3}, {1, 1, 0, 1, 0, 1}, DType::Bool)},
       [](Args x) { return nn::attention(x[0], x[1], x[2], false, x[3]); }},
      {"attention_bias",
       {tokens({2, 2, 3, 4}), tokens({2, 2, 3, 4}), tokens({2, 2, 3, 4}),
        reals({2, 1, 1, 3}, -1, 1).symbolic(3)},
       [](Args x) { return nn::attention(x[0], x[1], x[2], false, x[3]); }},
      {"attention_bias_heads",
       {reals({2, 2, 3, 4}, -2, 2), reals({2, 2, 3, 4}, -2, 2), reals({2, 2, 3, 4}, -2, 2),
        reals({2, 3, 3}, -1, 1)},
       [](Args x) { return nn::attention(x[0], x[1], x[2], false, x[3]); }},
      {"attention_mask_causal",
       {reals({1, 2, 4, 2}, -2, 2), reals({1, 2, 4, 2}, -2, 2), reals({1, 2, 4, 2}, -2, 2),
        listed({4}, {1, 1, 0, 1}, DType::Bool)},
       [](Args x) { return nn::attention(x[0], x[1], x[2], true, x[3]); }},
      {"attention_grouped_bias",
       {reals({1, 4, 3, 2}, -2, 2), reals({1, 2, 5, 2}, -2, 2), reals({1, 2, 5, 2}, -2, 2),
        reals({1, 4, 3, 5}, -1, 1)},
       [](Args x) { return nn::attention(x[0], x[1], x[2], false, x[3]); }},
      {"attention_grouped_mask",
       {reals({2, 4, 3, 2}, -2, 2), reals({2, 2, 3, 2}, -2, 2), reals({2, 2, 3, 2}, -2, 2),
        listed({2, 1, 1, 3}, {1, 0, 1, 0, 1, 1}, DType::Bool)},
       [](Args x) { return nn::attention(x[0], x[1], x[2], false, x[3]); }},
  };
}

}  // namespace anneal
