// Op cases: sequences, order statistics, search, resizing and what follows from sorting.
// Rows only; the order of a row is name, inputs, program, options.
#include <limits>

#include "op_cases.h"

namespace anneal {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

InputSpec apart(std::vector<int64_t> shape) { return distinct(std::move(shape), -2, 2); }
InputSpec images(std::vector<int64_t> shape) { return reals(std::move(shape), -1, 1).symbolic(0); }

constexpr CaseOptions kPick{.tolerance = kExact, .any_integer = true};  // a choice among elements
constexpr CaseOptions kTies{.tolerance = kExact, .differentiable = false, .any_integer = true};
constexpr CaseOptions kWhole{.tolerance = kExact, .differentiable = false, .any_float = false};
constexpr CaseOptions kRing{.any_integer = true};
constexpr CaseOptions kFixed{.differentiable = false, .any_float = false};

}  // namespace

std::vector<OpCase> search_cases() {
  return {
      // ---- sequences
      {"linspace", {}, [](Args) { return linspace(-1, 2, 7, DType::F64); }, kFixed},
      {"linspace_f32", {}, [](Args) { return linspace(0.1, 0.7, 5); }, kFixed},
      {"linspace_down", {}, [](Args) { return linspace(3, -1, 4, DType::F64); }, kFixed},
      {"linspace_one", {}, [](Args) { return linspace(2, 5, 1, DType::F64); }, kFixed},
      {"logspace", {}, [](Args) { return logspace(-1, 3, 5, 10, DType::F64); }, kFixed},
      {"logspace_base", {}, [](Args) { return logspace(0, 3, 4, 2, DType::F64); }, kFixed},
      {"meshgrid",
       {reals({3}, -2, 2).symbolic(0), reals({4}, -2, 2)},
       [](Args x) {
         const std::vector<Tensor> grid = meshgrid({x[0], x[1]});
         return grid[0] * 2 + grid[1];
       },
       kRing},
      {"meshgrid_three",
       {reals({2}, -2, 2), reals({}, -2, 2), reals({3}, -2, 2)},
       [](Args x) { return stack(meshgrid({x[0], x[1], x[2]})); },
       kPick},

      // ---- elementwise
      {"isnan",
       {listed({4}, {0, kInf, -kInf, 1})},
       [](Args x) {
         const Tensor special = x[0] - where(isinf(x[0]), x[0], 0);
         return stack({isnan(special), isinf(x[0]), isfinite(special)});
       },
       kWhole},
      {"clamp_tensors",
       {reals({3, 4}, -2, 2).symbolic(0), reals({4}, -1, 0), reals({3, 1}, 0, 1).symbolic(0)},
       [](Args x) { return clamp(x[0], x[1], x[2]); },
       kPick},
      {"clamp_crossed",
       {reals({8}, -2, 2), reals({8}, -1, 1), reals({8}, -1, 1)},
       [](Args x) { return clamp(x[0], x[1], x[2]); },
       kPick},
      {"clamp_low",
       {reals({8}, -2, 2), reals({8}, -1, 1)},
       [](Args x) { return clamp(x[0], x[1], Tensor()); },
       kPick},
      {"compound_arithmetic",
       {reals({3, 4}, -2, 2).symbolic(0), reals({4}, 1, 2)},
       [](Args x) {
         Tensor y = x[0];
         y += x[1];
         y -= 0.5;
         y *= x[0];
         y /= x[1];
         return y;
       }},
      {"compound_integers",
       {integers({3, 4}, 0, 100, DType::I32), integers({4}, 1, 9, DType::I32)},
       [](Args x) {
         Tensor y = x[0];
         y %= x[1];
         y <<= 3;
         y |= x[0];
         y &= 127;
         y ^= x[1];
         y >>= 1;
         return y;
       },
       kWhole},

      // ---- running extremes and differences
      {"cummax", {apart({3, 4}).symbolic(0)}, [](Args x) { return cummax(x[0]); }, kPick},
      {"cummax_first", {apart({4, 3}).symbolic(0)}, [](Args x) { return cummax(x[0], 0); }, kPick},
      {"cummax_long", {apart({300})}, [](Args x) { return cummax(x[0]); }, kPick},
      {"cummin", {apart({3, 4}).symbolic(0)}, [](Args x) { return cummin(x[0]); }, kPick},
      {"cummin_long", {apart({300})}, [](Args x) { return cummin(x[0]); }, kPick},
      {"diff", {reals({3, 4}, -2, 2).symbolic(1)}, [](Args x) { return diff(x[0]); }, kRing},
      {"diff_second", {reals({5, 2}, -2, 2)}, [](Args x) { return diff(x[0], 2, 0); }, kRing},
      {"diff_too_often", {reals({2}, -2, 2)}, [](Args x) { return diff(x[0], 3); }, kRing},
      {"norm", {reals({3, 4}, -2, 2).symbolic(0)}, [](Args x) { return norm(x[0]); }},
      {"norm_rows",
       {reals({3, 4}, -2, 2).symbolic(0)},
       [](Args x) { return norm(x[0], 1, 1, true); }},
      {"norm_largest", {apart({3, 4}).symbolic(0)}, [](Args x) { return norm(x[0], kInf, 0); }},
      {"norm_third", {reals({3, 4}, -2, 2)}, [](Args x) { return norm(x[0], 3, {0, 1}); }},
      {"norm_count",
       {listed({2, 3}, {0, 1, -2, 0, 0, 3})},
       [](Args x) { return norm(x[0], 0, 1); },
       {.differentiable = false}},
      {"norm_of_zeros",
       {listed({2, 3}, {0, 0, 0, 1, -2, 3})},
       [](Args x) { return norm(x[0], 2, 1); },
       {.differentiable = false}},

      // ---- sorting along a symbolic axis
      {"argsort", {apart({3, 5}).symbolic(0)}, [](Args x) { return argsort(x[0]); }, kPick},
      {"argsort_descending",
       {integers({2, 9}, -1, 1)},
       [](Args x) { return argsort(x[0], 1, true); },
       kTies},
      {"sort_symbolic",
       {apart({2, 5}).symbolic(1)},
       [](Args x) { return sort(x[0]).values; },
       kPick},
      {"sort_symbolic_descending",
       {apart({5, 2}).symbolic(0)},
       [](Args x) { return sort(x[0], 0, true).values; },
       kPick},
      {"argsort_symbolic",
       {apart({6}).symbolic(0)},
       [](Args x) { return argsort(x[0], 0); },
       kPick},
      {"topk_symbolic",
       {apart({2, 6}).symbolic(1)},
       [](Args x) { return topk(x[0], 2).values; },
       kPick},
      {"topk_symbolic_indices",
       {apart({6, 2}).symbolic(0)},
       [](Args x) { return topk(x[0], 3, 0, false).indices; },
       kPick},

      // ---- order statistics
      {"median", {apart({3, 4}).symbolic(0)}, [](Args x) { return median(x[0]); }},
      {"median_axis", {apart({3, 5}).symbolic(0)}, [](Args x) { return median(x[0], 1); }},
      {"median_even_keep",
       {apart({2, 4, 3}).symbolic(2)},
       [](Args x) { return median(x[0], 1, true); }},
      {"median_integers",
       {integers({3, 4}, -9, 9, DType::I32)},
       [](Args x) { return median(x[0], 0); },
       {.tolerance = kF32, .differentiable = false}},
      {"median_nan",
       {listed({2, 3}, {3, 1, 2, 1, std::numeric_limits<double>::quiet_NaN(), 2})},
       [](Args x) { return median(x[0], 1); },
       {.differentiable = false, .special = true}},
      {"quantile", {apart({3, 5}).symbolic(1)}, [](Args x) { return quantile(x[0], 0.3, 1); }},
      {"quantile_all", {apart({3, 5})}, [](Args x) { return quantile(x[0], 0.9); }},
      {"quantile_two_keep",
       {apart({2, 3, 4}).symbolic(0)},
       [](Args x) { return quantile(x[0], 0.77, {0, 2}, true); }},
      {"quantile_ends",
       {apart({4, 3}).symbolic(1)},
       [](Args x) { return quantile(x[0], 1.0, 0) - quantile(x[0], 0, 0); }},
      {"quantile_several",
       {apart({3, 5}).symbolic(0), listed({3}, {0.1, 0.52, 0.9})},
       [](Args x) { return quantile(x[0], x[1], 1); }},
      {"quantile_several_keep",
       {apart({3, 5}), listed({2}, {0.3, 0.8})},
       [](Args x) { return quantile(x[0], x[1], 0, true); }},
      {"quantile_infinite",
       {listed({3}, {1, 2, kInf})},
       [](Args x) { return quantile(x[0], 0.5); },
       {.differentiable = false}},

      // ---- search
      {"searchsorted",
       {listed({6}, {-1.5, -1, -1, 0.25, 1, 2}),
        listed({2, 4}, {-2, -1, 0.5, 3, 1, 0.25, -1.5, 2})},
       [](Args x) { return searchsorted(x[0], x[1]); },
       kWhole},
      {"searchsorted_right",
       {listed({6}, {-1.5, -1, -1, 0.25, 1, 2}),
        listed({2, 4}, {-2, -1, 0.5, 3, 1, 0.25, -1.5, 2})},
       [](Args x) { return searchsorted(x[0], x[1], true); },
       kWhole},
      {"searchsorted_rows",
       {apart({3, 5}).symbolic(1), reals({3, 4}, -2, 2)},
       [](Args x) { return searchsorted(sort(x[0]).values, x[1]); },
       kWhole},
      {"searchsorted_integers",
       {listed({5}, {1, 3, 3, 3, 9}, DType::I32), integers({8}, 0, 10)},
       [](Args x) { return searchsorted(x[0], x[1], true); },
       kWhole},
      {"bincount",
       {integers({20}, 0, 6).symbolic(0)},
       [](Args x) { return bincount(x[0], 7); },
       kWhole},
      {"bincount_outside",
       {integers({4, 5}, -3, 6, DType::I32)},
       [](Args x) { return bincount(x[0], 4); },
       kWhole},
      {"bincount_weights",
       {integers({12}, 0, 4).symbolic(0), reals({12}, -2, 2).symbolic(0)},
       [](Args x) { return bincount(x[0], 5, x[1]); }},
      {"nonzero",
       {listed({3, 4}, {0, 1, 0, 2, 0, 0, -1, 0, 3, 0, 0, 4})},
       [](Args x) { return nonzero(x[0], 7); },
       kWhole},
      {"nonzero_fewer",
       {booleans({2, 3, 2}).symbolic(1)},
       [](Args x) { return nonzero(x[0], 3, 9); },
       kWhole},
      {"nonzero_places",
       {reals({7}, -2, 2).symbolic(0)},
       [](Args x) { return index_select(x[0], squeeze(nonzero(x[0] > 0, 7), 1)); },
       {.tolerance = kExact}},

      // ---- resizing
      {"interpolate_nearest",
       {images({2, 2, 3, 4})},
       [](Args x) { return interpolate(x[0], {.size = {7, 5}}); },
       kPick},
      {"interpolate_nearest_scale",
       {images({1, 2, 4, 6})},
       [](Args x) { return interpolate(x[0], {.scale = {2.5, 0.7}}); },
       kPick},
      {"interpolate_nearest_whole",
       {images({1, 2, 4, 6})},
       [](Args x) { return interpolate(x[0], {.scale = {3, 0.5}}); },
       kPick},
      {"interpolate_nearest_3d",
       {images({1, 1, 2, 3, 2})},
       [](Args x) { return interpolate(x[0], {.scale = {2}}); },
       kPick},
      {"interpolate_nearest_symbolic",
       {reals({1, 2, 5}, -1, 1).symbolic(2)},
       [](Args x) { return interpolate(x[0], {.scale = {3}}); },
       kPick},
      {"interpolate_linear",
       {images({2, 2, 5})},
       [](Args x) { return interpolate(x[0], {.size = {8}, .mode = Interpolation::Linear}); }},
      {"interpolate_bilinear",
       {images({1, 2, 3, 4})},
       [](Args x) { return interpolate(x[0], {.size = {6, 7}, .mode = Interpolation::Linear}); }},
      {"interpolate_bilinear_down",
       {images({1, 2, 6, 7})},
       [](Args x) { return interpolate(x[0], {.size = {4, 3}, .mode = Interpolation::Linear}); }},
      {"interpolate_bilinear_scale",
       {images({1, 2, 3, 4})},
       [](Args x) {
         return interpolate(x[0], {.scale = {1.7, 2.3}, .mode = Interpolation::Linear});
       }},
      {"interpolate_bilinear_corners",
       {images({1, 2, 3, 4})},
       [](Args x) {
         return interpolate(x[0],
                            {.size = {5, 9}, .mode = Interpolation::Linear, .align_corners = true});
       }},
      {"interpolate_bilinear_one",
       {images({1, 2, 3, 4})},
       [](Args x) {
         return interpolate(x[0],
                            {.size = {1, 3}, .mode = Interpolation::Linear, .align_corners = true});
       }},
      {"interpolate_bilinear_symbolic",
       {reals({1, 1, 4, 3}, -1, 1).symbolic(2)},
       [](Args x) { return interpolate(x[0], {.size = {6, 5}, .mode = Interpolation::Linear}); }},
      {"interpolate_trilinear",
       {images({1, 1, 2, 3, 2})},
       [](Args x) { return interpolate(x[0], {.scale = {2}, .mode = Interpolation::Linear}); }},
  };
}

}  // namespace anneal
