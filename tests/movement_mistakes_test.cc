// What users are told about mistakes in movement, reductions, indexing and sorting.
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <anneal/tensor.h>

#include "mistakes.h"

using namespace anneal;

namespace {

Dim size_n() { return Variable("n", 0, 64); }
Tensor symbolic() { return input("x", {size_n(), 3}); }
Tensor bools() { return zeros({2, 3}, DType::Bool); }
Tensor indices() { return zeros({2, 3}, DType::I32); }

// clang-format off
const Mistake kMistakes[] = {
  // movement
  {__LINE__, [] { reshape(zeros({2, 3}), {4, 2}); }, "reshape: [2, 3] cannot become [4, 2]: 6 elements", "multiply to 6"},
  {__LINE__, [] { reshape(zeros({2, 3}), {4, -1}); }, "reshape: [2, 3] cannot become [4, -1]", "one of them may be -1"},
  {__LINE__, [] { reshape(zeros({2, 3}), {-1, -1}); }, "reshape: two sizes of [-1, -1] are -1", "only one"},
  {__LINE__, [] { reshape(zeros({0, 3}), {0, -1}); }, "reshape: -1 in [0, -1] could be any size", "instead of -1"},
  {__LINE__, [] { reshape(zeros({2, 3}), {-2, -3}); }, "reshape: size -2 of [-2, -3] is negative", "start at 0"},
  {__LINE__, [] { reshape(zeros({2}), {int64_t{1} << 40, int64_t{1} << 40}); }, "...more elements than 64 bits", "smaller"},
  {__LINE__, [] { reshape(symbolic(), {size_n() * 2, 2}); }, "reshape: [n, 3] cannot become [n * 2, 2]: n * 3 elements", "multiply to n * 3"},
  {__LINE__, [] { reshape(symbolic(), {2, -1}); }, "reshape: [n, 3] cannot become [2, -1]", "multiply to n * 3"},
  {__LINE__, [] { reshape(zeros({1}), Sizes(40, Dim(1))); }, "reshape: the result has 40 axes, at most 32", "joined"},
  {__LINE__, [] { zeros({2, 3}).reshape({7}); }, "reshape: [2, 3] cannot become [7]", "multiply to 6"},
  {__LINE__, [] { reshape(Tensor(), {1}); }, "reshape: the tensor is empty", "assign"},
  {__LINE__, [] { permute(zeros({2, 3}), {0}); }, "permute: 1 axes for [2, 3], which has 2", "every axis once"},
  {__LINE__, [] { permute(zeros({2, 3}), {0, 0}); }, "permute: axis 0 is named twice", "once"},
  {__LINE__, [] { permute(zeros({2, 3}), {0, 2}); }, "permute: axis 2 is out of range for rank 2", "from -2 to 1"},
  {__LINE__, [] { transpose(zeros({2})); }, "transpose: axis -2 is out of range for rank 1", "from -1 to 0"},
  {__LINE__, [] { zeros({}).transpose(); }, "transpose: axis -2 is out of range for rank 0", "no axes"},
  {__LINE__, [] { expand(zeros({2, 3}), {3}); }, "expand: [2, 3] has 2 axes, [3] has only 1", "-1 keeps"},
  {__LINE__, [] { expand(zeros({2, 3}), {2, 4}); }, "expand: [2, 3] cannot become [2, 4]: axis 1 is 3, not 1", "repeat()"},
  {__LINE__, [] { expand(zeros({3}), {-1, 3}); }, "expand: -1 keeps a size, but axis 0 of [-1, 3] is new", "write the size"},
  {__LINE__, [] { expand(zeros({1}), {-3}); }, "expand: size -3 of [-3] is negative", "start at 0"},
  {__LINE__, [] { expand(symbolic(), {5, 3}); }, "expand: [n, 3] cannot become [5, 3]: axis 0 is n, not 1", "only axes of size 1"},
  {__LINE__, [] { zeros({2, size_n() - 5}); }, "zeros: size n - 5 of [2, n - 5] is not shown to be at least 0 for every binding", "give its variables bounds"},
  {__LINE__, [] { zeros({2, -3}); }, "zeros: size -3 of [2, -3] is negative", "start at 0"},
  {__LINE__, [] { reshape(symbolic(), {size_n(), 2}); }, "reshape: [n, 3] cannot become [n, 2]: n * 3 elements are not shown to fill it for every binding", "multiply to"},
  {__LINE__, [] { pad(zeros({2, 3}), {{1, 1}}); }, "pad: 1 paddings for [2, 3], which has 2 axes", "{0, 0}"},
  {__LINE__, [] { pad(zeros({2}), {{-1, 1}}); }, "pad: the padding -1 of axis 0 is negative", "slice()"},
  {__LINE__, [] { pad(zeros({2}), {{0, size_n() - 5}}); }, "pad: the padding n - 5 of axis 0 is not shown to be at least 0 for every binding", "give its variables bounds"},
  {__LINE__, [] { pad(zeros({3}), {{3, 0}}, PadMode::Reflect); }, "pad: to pad axis 0 of [3] by 3 takes 4 elements, it has 3", "pad less"},
  {__LINE__, [] { pad(zeros({3}), {{0, 4}}, PadMode::Circular); }, "pad: to pad axis 0 of [3] by 4 takes 4 elements, it has 3", "pad less"},
  {__LINE__, [] { pad(zeros({0}), {{0, 1}}, PadMode::Replicate); }, "pad: to pad axis 0 of [0] by 1 takes 1 elements, it has 0", "PadMode::Constant"},
  {__LINE__, [] { pad(symbolic(), {{0, 1}, {0, 0}}, PadMode::Reflect); }, "...axis 0 of [n, 3] by 1 takes 2 elements, it may have less of n", "pad less"},
  {__LINE__, [] { slice(zeros({2}), {{}, {}}); }, "slice: 2 slices for [2], which has 1 axes", "at most one"},
  {__LINE__, [] { slice(zeros({2}), {{.step = 0}}); }, "slice: a step is 0", "negative one"},
  {__LINE__, [] { slice(zeros({9}), {{.begin = size_n() - 3}}); }, "slice: the begin n - 3 is shown neither to be negative nor to be at least 0", "bounds"},
  {__LINE__, [] { slice(zeros({9}), {{.end = size_n() - 3}}); }, "slice: the end n - 3 is shown neither to be negative nor to be at least 0", "bounds"},
  {__LINE__, [] { flip(zeros({2}), {1}); }, "flip: axis 1 is out of range for rank 1", "from -1 to 0"},
  {__LINE__, [] { squeeze(zeros({1, 3}), {1}); }, "squeeze: axis 1 of [1, 3] is 3, not 1", "size 1"},
  {__LINE__, [] { unsqueeze(zeros({2}), 3); }, "unsqueeze: axis 3 is out of range for rank 2", "from -2 to 1"},
  {__LINE__, [] { flatten(zeros({2, 3}), 1, 0); }, "flatten: axis 1 comes after axis 0", "first axis first"},
  {__LINE__, [] { split(zeros({5}), {2, 2}); }, "split: the sizes [2, 2] sum to 4, axis 0 of [5] is 5", "slice()"},
  {__LINE__, [] { split(zeros({5}), {6, -1}); }, "split: size -1 of [6, -1] is negative", "start at 0"},
  {__LINE__, [] { chunk(zeros({5}), 0); }, "chunk: 0 chunks", "1 chunk"},
  {__LINE__, [] { chunk(symbolic(), 2); }, "chunk: axis 0 of [n, 3] may not divide into 2 chunks", "split()"},
  {__LINE__, [] { concat({}); }, "concat: there are no tensors", "one tensor"},
  {__LINE__, [] { concat({zeros({})}); }, "concat: a scalar has no axis", "stack()"},
  {__LINE__, [] { concat({zeros({2, 3}), zeros({2, 4})}); }, "concat: shapes differ beside axis 0: tensor 0 is [2, 3], tensor 1 is [2, 4]", "must be equal"},
  {__LINE__, [] { concat({zeros({2}), zeros({2, 4})}); }, "...tensor 0 is [2], tensor 1 is [2, 4]", "must be equal"},
  {__LINE__, [] { concat({zeros({2})}, 1); }, "concat: axis 1 is out of range for rank 1", "from -1 to 0"},
  {__LINE__, [] { stack({}); }, "stack: there are no tensors", "one tensor"},
  {__LINE__, [] { stack({zeros({2}), zeros({3})}); }, "stack: shapes differ: tensor 0 is [2], tensor 1 is [3]", "concat()"},
  {__LINE__, [] { stack({zeros({2})}, 2); }, "stack: axis 2 is out of range for rank 2", "from -2 to 1"},
  {__LINE__, [] { repeat(zeros({2}), -1, 0); }, "repeat: -1 repetitions", "0 times"},
  {__LINE__, [] { repeat(3.0, 2, 0); }, "repeat: axis 0 is out of range for rank 0", "no axes"},
  {__LINE__, [] { tile(zeros({2}), {-2}); }, "tile: -2 repetitions of axis 0", "0 times"},
  {__LINE__, [] { tile(zeros({int64_t{1} << 40}), {int64_t{1} << 40}); }, "...more elements than 64 bits", "smaller"},
  {__LINE__, [] { roll(zeros({2}), 1, 1); }, "roll: axis 1 is out of range for rank 1", "from -1 to 0"},
  {__LINE__, [] { tril(zeros({2})); }, "tril: [2] has no rows and columns", "two axes"},
  {__LINE__, [] { triu(1.0); }, "triu: [] has no rows and columns", "two axes"},
  {__LINE__, [] { diagonal(zeros({2})); }, "diagonal: [2] has no diagonal", "two axes"},
  {__LINE__, [] { zeros({3})[3]; }, "index: index 3 is out of range for axis 0 of [3]", "from -3 to 2"},
  {__LINE__, [] { zeros({3})[-4]; }, "index: index -4 is out of range for axis 0 of [3]", "from -3 to 2"},
  {__LINE__, [] { zeros({})[0]; }, "index: a scalar has no elements", "item()"},
  {__LINE__, [] { zeros({3})[0.5]; }, "index: the index is not an integer", "index_select()"},
  {__LINE__, [] { symbolic()[0]; }, "index: index 0 is out of range for axis 0 of [n, 3]", "bounds"},
  // reductions
  {__LINE__, [] { sum(zeros({2}), 1); }, "sum: axis 1 is out of range for rank 1", "from -1 to 0"},
  {__LINE__, [] { zeros({2, 3}).sum({1, -1}); }, "sum: axis 1 is named twice", "once"},
  {__LINE__, [] { max(zeros({2, 0})); }, "max: axis 1 of [2, 0] is empty and has no largest element", "give it an element"},
  {__LINE__, [] { zeros({2, 0}).min(1); }, "min: axis 1 of [2, 0] is empty and has no smallest element", "give it an element"},
  {__LINE__, [] { argmax(zeros({0})); }, "argmax: axis 0 of [0] is empty", "give it an element"},
  {__LINE__, [] { argmin(zeros({})); }, "argmin: axis -1 is out of range for rank 0", "no axes"},
  {__LINE__, [] { cumsum(zeros({2}), 1); }, "cumsum: axis 1 is out of range for rank 1", "from -1 to 0"},
  {__LINE__, [] { sort(input("x", {Variable("n", 0, int64_t{1} << 40)})); }, "sort: axis 0 of [n] has up to 1099511627776 elements, at most 1073741824", "smaller bounds"},
  {__LINE__, [] { topk(zeros({2, 3}), 4); }, "topk: k is 4, axis 1 of [2, 3] has 3", "from 0"},
  {__LINE__, [] { topk(zeros({2, 3}), -1); }, "topk: k is -1, axis 1 of [2, 3] has 3", "from 0"},
  {__LINE__, [] { topk(symbolic(), 1, 0); }, "topk: k is 1, axis 0 of [n, 3] has n", "bounds that leave room"},
  // indexing
  {__LINE__, [] { take_along_axis(zeros({2, 3}), zeros({2, 3}), 1); }, "take_along_axis: the index is f32, not an integer", "cast"},
  {__LINE__, [] { take_along_axis(zeros({2, 3}), bools(), 1); }, "...the index is bool, not an integer", "where()"},
  {__LINE__, [] { take_along_axis(zeros({2}), indices(), 0); }, "...x is [2] and the index [2, 3], which differ in rank", "index_select()"},
  {__LINE__, [] { take_along_axis(zeros({4, 5}), indices(), 1); }, "...x is [4, 5] and the index [2, 3]: sizes 4 and 2 of axis 0 differ", "equal or 1"},
  {__LINE__, [] { gather(zeros({1, 3}), 1, indices()); }, "gather: axis 0 of the index [2, 3] is 2, that of x [1, 3] is only 1", "not be larger"},
  {__LINE__, [] { gather(zeros({3}), 0, indices()); }, "gather: x is [3] and the index [2, 3]", "reshape"},
  {__LINE__, [] { index_select(zeros({3}), 1.5); }, "index_select: the index is f32", "cast"},
  {__LINE__, [] { index_select(zeros({}), 1); }, "index_select: axis 0 is out of range for rank 0", "no axes"},
  {__LINE__, [] { scatter(zeros({2, 3}), 1, zeros({2, 3}), 1.0); }, "scatter: the index is f32", "cast"},
  {__LINE__, [] { scatter(zeros({2, 3}), 1, indices(), zeros({3, 3})); }, "...shapes do not broadcast", "equal or 1"},
  {__LINE__, [] { scatter(zeros({2, 3}), 1, zeros({1, 3}, DType::I32), zeros({2, 3})); }, "scatter: the values are [2, 3], the index only [1, 3]", "one value"},
  {__LINE__, [] { scatter(indices(), 1, indices(), 0.5); }, "scatter: the values are f32, x is i32", "cast the values to i32, or x to f32"},
  {__LINE__, [] { scatter(zeros({1, 3}), 1, indices(), 1.0); }, "...axis 0 of the index [2, 3] is 2", "not be larger"},
  {__LINE__, [] { scatter_add(bools(), 1, indices(), true); }, "scatter_add: bools cannot be added", "cast x"},
  {__LINE__, [] { one_hot(zeros({2}), 3); }, "one_hot: the index is f32", "cast"},
  {__LINE__, [] { one_hot(indices(), -1); }, "one_hot: there are -1 classes", "0 classes"},
  {__LINE__, [] { masked_fill(zeros({2, 3}), indices(), 1.0); }, "masked_fill: the mask is i32, not bool", "cast it to bool"},
};
// clang-format on

TEST_CASE("tensor: mistakes are explained on the user's line") { check_mistakes(kMistakes); }

}  // namespace
