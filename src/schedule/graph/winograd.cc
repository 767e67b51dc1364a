// Everything but the image itself lies channels last, so that vectors run along channels: images
// are turned there and back, each transform is sums and differences of such vectors, and what is
// summed over channels is 36 matrix products.
#include "schedule/graph/winograd.h"

#include <algorithm>
#include <functional>

#include "tensor/movement.h"

namespace anneal {
namespace {

constexpr int64_t kTile = 4, kTaps = 3, kWindow = kTile + kTaps - 1;

// Polynomials are evaluated at 0, +-kNear, +-kFarther and infinity. These points keep the numbers
// of the transforms close to 1: errors are a half to a fifth of those with 0, +-1, +-2.
constexpr double kNear = 0.625, kFarther = 1.5;
constexpr double kNear2 = kNear * kNear, kFarther2 = kFarther * kFarther;

// ---- values in a grid, one transform along each axis

using Line = std::vector<Tensor>;
using Grid = std::vector<Line>;  // rows of columns
using Transform = Line (*)(const Line&);

Grid turned(const Grid& grid) {
  Grid result(grid[0].size());
  for (size_t column = 0; column < grid[0].size(); ++column)
    for (const Line& row : grid) result[column].push_back(row[column]);
  return result;
}

// Along columns, then along rows.
Grid transformed(const Grid& grid, Transform transform) {
  Grid columns;
  for (const Line& column : turned(grid)) columns.push_back(transform(column));
  Grid rows;
  for (const Line& row : turned(columns)) rows.push_back(transform(row));
  return rows;
}

// What points +-a share: a polynomial's even part, and its odd one with a sign.
void both_signs(Line& line, const Tensor& even, const Tensor& odd) {
  line.push_back(even + odd);
  line.push_back(even - odd);
}

// Of six elements of the image: the coefficients of the polynomials that vanish at all points but
// one.
Line of_image(const Line& d) {
  Line line{d[0] * (kNear2 * kFarther2) - d[2] * (kNear2 + kFarther2) + d[4]};
  both_signs(line, d[4] - d[2] * kFarther2, (d[3] - d[1] * kFarther2) * kNear);
  both_signs(line, d[4] - d[2] * kNear2, (d[3] - d[1] * kNear2) * kFarther);
  line.push_back(d[1] * (kNear2 * kFarther2) - d[3] * (kNear2 + kFarther2) + d[5]);
  return line;
}

// By what the polynomials above are divided to be 1 at their point.
constexpr double kAtZero = 1 / (kNear2 * kFarther2);
constexpr double kAtNear = 1 / (2 * kNear2 * (kNear2 - kFarther2));
constexpr double kAtFarther = 1 / (2 * kFarther2 * (kFarther2 - kNear2));

// Of three weights: the polynomial they are, at every point, divided.
Line of_weights(const Line& g) {
  Line line{g[0] * kAtZero};
  both_signs(line, g[0] * kAtNear + g[2] * (kNear2 * kAtNear), g[1] * (kNear * kAtNear));
  both_signs(line, g[0] * kAtFarther + g[2] * (kFarther2 * kAtFarther),
             g[1] * (kFarther * kAtFarther));
  line.push_back(g[2]);
  return line;
}

// Its transpose.
Line to_weights(const Line& u) {
  const Tensor even = (u[1] + u[2]) * kAtNear, odd = (u[1] - u[2]) * kAtNear;
  const Tensor even_far = (u[3] + u[4]) * kAtFarther, odd_far = (u[3] - u[4]) * kAtFarther;
  return {u[0] * kAtZero + even + even_far, odd * kNear + odd_far * kFarther,
          even * kNear2 + even_far * kFarther2 + u[5]};
}

// Of six products: four elements of the result.
Line to_result(const Line& m) {
  const Tensor even = m[1] + m[2], odd = m[1] - m[2];
  const Tensor even_far = m[3] + m[4], odd_far = m[3] - m[4];
  return {m[0] + even + even_far, odd * kNear + odd_far * kFarther,
          even * kNear2 + even_far * kFarther2,
          odd * (kNear2 * kNear) + odd_far * (kFarther2 * kFarther) + m[5]};
}

// Its transpose.
Line of_result(const Line& y) {
  Line line{y[0]};
  both_signs(line, y[0] + y[2] * kNear2, y[1] * kNear + y[3] * (kNear2 * kNear));
  both_signs(line, y[0] + y[2] * kFarther2, y[1] * kFarther + y[3] * (kFarther2 * kFarther));
  line.push_back(y[3]);
  return line;
}

// ---- layouts

// One after the other along an axis on which each has one element. Each is the same all along it
// and a position chooses, so that no part of one is computed again for another.
NodeRef chosen(const std::vector<NodeRef>& pieces, size_t axis) {
  std::vector<NodeRef> dims = dims_of(pieces[0]);
  dims[axis] = index_const(static_cast<int64_t>(pieces.size()));
  NodeRef position = positions(dims, axis);
  const std::function<NodeRef(size_t, size_t)> select = [&](size_t first, size_t last) {
    if (last - first == 1) return expand_node(pieces[first], dims);
    const size_t middle = first + (last - first) / 2;
    NodeRef begin = spread(index_const(static_cast<int64_t>(middle)), position->dtype, dims);
    return make(Op::Where,
                {make(Op::Lt, {position, begin}), select(first, middle), select(middle, last)});
  };
  return select(0, pieces.size());
}

// A grid as one tensor, in memory: its rows along one axis of its pieces, its columns along
// another.
Tensor stored(const Grid& grid, size_t rows, size_t columns) {
  std::vector<NodeRef> lines;
  for (const Line& line : grid) {
    std::vector<NodeRef> pieces;
    for (const Tensor& piece : line) pieces.push_back(node_of(piece));
    lines.push_back(chosen(pieces, columns));
  }
  return contiguous(wrap(chosen(lines, rows)));
}

Tensor channels_last(const Tensor& image) { return contiguous(permute(image, {0, 2, 3, 1})); }

// The border of the adjoint: what is left of a window.
Border left_of(const Border& border) {
  return {kTaps - 1 - border.rows, kTaps - 1 - border.columns};
}

int64_t result_size(const Dim& size, int64_t border) {
  return size.value() + 2 * border - (kTaps - 1);
}
int64_t tiles(int64_t size) { return (size + kTile - 1) / kTile; }

// Of `count` tiles along an axis, the element `offset` elements after the beginning of each; before
// the axis begins and after it ends there are zeros. The tiles stay an axis.
NodeRef one_of_each(NodeRef x, size_t axis, int64_t offset, int64_t count) {
  const int64_t size = static_value(x->dim(axis)), begin = std::max<int64_t>(offset, 0);
  const int64_t before = begin - offset, taken = std::min(size - begin, count * kTile - before);
  std::vector<NodeRef> pairs(2 * x->rank(), index_const(0)), dims = dims_of(x), tiled = dims;
  dims[axis] = tiled[axis] = index_const(count);
  if (taken <= 0) return make_const(Scalar::of_int(x->dtype, 0), dims);
  pairs[2 * axis] = index_const(before);
  pairs[2 * axis + 1] = index_const(count * kTile - before - taken);
  x = pad_node(cut(x, axis, index_const(begin), index_const(taken)), pairs);
  tiled.insert(tiled.begin() + static_cast<std::ptrdiff_t>(axis) + 1, index_const(kTile));
  return reshape_node(cut(reshape_node(x, tiled), axis + 1, index_const(0), index_const(1)), dims);
}

// Elements (row, column) of windows that begin at every tile, for each of which there is
// [1, 1, N, tiles.., channels]. The image is [N, H, W, channels].
Grid windows(const Tensor& image, int64_t window, const Border& border, int64_t rows,
             int64_t columns) {
  Grid grid;
  for (int64_t i = 0; i < window; ++i) {
    NodeRef lines = one_of_each(node_of(image), 1, i - border.rows, rows);
    Line line;
    for (int64_t j = 0; j < window; ++j) {
      NodeRef piece = one_of_each(lines, 2, j - border.columns, columns);
      std::vector<NodeRef> dims = dims_of(piece);
      dims.insert(dims.begin(), 2, index_const(1));
      line.push_back(wrap(reshape_node(piece, dims)));
    }
    grid.push_back(std::move(line));
  }
  return grid;
}

// [6, 6, N, tiles.., channels] as 36 matrices.
Tensor matrices(const Tensor& points) {
  NodeRef node = node_of(points);
  Dim rows(index_const(1));
  for (size_t axis = 2; axis + 1 < node->rank(); ++axis) rows = rows * Dim(node->dim(axis));
  return wrap(reshape_node(node, std::vector<NodeRef>{index_const(kWindow * kWindow), node_of(rows),
                                                      node->dim(node->rank() - 1)}));
}

// Number `i` of the first axis, of [36, ..] the points (i, j).
Grid points(const Tensor& matrices, const Sizes& rest) {
  NodeRef node = node_of(matrices);
  Grid grid(kWindow);
  for (int64_t i = 0; i < kWindow * kWindow; ++i)
    grid[static_cast<size_t>(i / kWindow)].push_back(
        wrap(reshape_node(cut(node, 0, index_const(i), index_const(1)), nodes_of(rest))));
  return grid;
}

// ---- what is multiplied

// [36, N * tiles, C]
Tensor image_points(const Tensor& x, const Border& border, int64_t rows, int64_t columns) {
  const Grid grid = windows(channels_last(x), kWindow, border, tiles(rows), tiles(columns));
  return matrices(stored(transformed(grid, of_image), 0, 1));
}

// [36, N * tiles, O]: the gradient of the products.
Tensor result_points(const Tensor& y) {
  const Grid grid =
      windows(channels_last(y), kTile, {0, 0}, tiles(y.dim(2).value()), tiles(y.dim(3).value()));
  return matrices(stored(transformed(grid, of_result), 0, 1));
}

enum class Order : uint8_t { Forwards, Backwards };

// [36, C, O]
Tensor weight_points(const Tensor& weight, Order order) {
  NodeRef last = node_of(contiguous(permute(weight, {2, 3, 1, 0})));
  Grid grid;
  for (int64_t i = 0; i < kTaps; ++i) {
    Line line;
    for (int64_t j = 0; j < kTaps; ++j) {
      const bool forwards = order == Order::Forwards;
      NodeRef row = cut(last, 0, index_const(forwards ? i : kTaps - 1 - i), index_const(1));
      line.push_back(wrap(cut(row, 1, index_const(forwards ? j : kTaps - 1 - j), index_const(1))));
    }
    grid.push_back(std::move(line));
  }
  return matrices(stored(transformed(grid, of_weights), 0, 1));
}

// The image [N, channels, rows, columns] of products [36, N * tiles, channels].
Tensor result_of(const Tensor& products, const Dim& images, int64_t rows, int64_t columns) {
  const int64_t down = tiles(rows), across = tiles(columns);
  const Dim channels = products.dim(2);
  // [N, tiles, 4, tiles, 4, channels]
  const Grid grid = points(products, {images, down, 1, across, 1, channels});
  NodeRef image = node_of(stored(transformed(grid, to_result), 2, 4));
  image = reshape_node(image, nodes_of({images, down * kTile, across * kTile, channels}));
  image = cut(image, 1, index_const(0), index_const(rows));
  image = cut(image, 2, index_const(0), index_const(columns));
  return permute(wrap(image), {0, 3, 1, 2});
}

}  // namespace

bool winograd_pays(const Sizes& x, const Sizes& weight, DType dtype, const Border& border,
                   const Capabilities& capabilities) {
  if (dtype != DType::F32) return false;
  const Dim &outputs = weight[0], &channels = weight[1];
  for (const Dim& size : {outputs, channels, x[2], x[3]})
    if (!size.is_static()) return false;
  if (!(weight[2] == kTaps && weight[3] == kTaps)) return false;
  for (int64_t size : {border.rows, border.columns})
    if (size < 0 || size >= kTaps) return false;

  // Where most of a tile lies outside the image there is little to win.
  const int64_t rows = result_size(x[2], border.rows), columns = result_size(x[3], border.columns);
  const int64_t tiles_each = tiles(rows) * tiles(columns);
  return std::min(outputs.value(), channels.value()) >= capabilities.winograd_channels &&
         x[0].max() >= (capabilities.winograd_tiles + tiles_each - 1) / tiles_each &&
         2 * rows * columns >= tiles_each * kTile * kTile;
}

bool winograd_adjoint_pays(const Sizes& y, const Sizes& weight, DType dtype, const Border& border,
                           const Capabilities& capabilities) {
  return winograd_pays(y, weight, dtype, left_of(border), capabilities);
}

Tensor winograd(const Tensor& x, const Tensor& weight, const Border& border) {
  const int64_t rows = result_size(x.dim(2), border.rows);
  const int64_t columns = result_size(x.dim(3), border.columns);
  const Tensor products =
      matmul(image_points(x, border, rows, columns), weight_points(weight, Order::Forwards));
  return result_of(products, x.dim(0), rows, columns);
}

Tensor winograd_adjoint(const Tensor& y, const Tensor& weight, const Border& border) {
  const Border left = left_of(border);
  const int64_t rows = result_size(y.dim(2), left.rows);
  const int64_t columns = result_size(y.dim(3), left.columns);
  const Tensor points = weight_points(weight, Order::Backwards);
  const Tensor products = matmul(image_points(y, left, rows, columns), transpose(points, 1, 2));
  return result_of(products, y.dim(0), rows, columns);
}

Tensor winograd_weights(const Tensor& x, const Tensor& y, const Border& border) {
  const Tensor images = image_points(x, border, y.dim(2).value(), y.dim(3).value());
  const Tensor products = matmul(transpose(images, 1, 2), result_points(y));
  const Grid grid = points(products, {1, 1, products.dim(1), products.dim(2)});
  const Tensor last = stored(transformed(grid, to_weights), 0, 1);  // [3, 3, C, O]
  return permute(last, {3, 2, 0, 1});
}

}  // namespace anneal
