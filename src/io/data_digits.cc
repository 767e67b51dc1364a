// Digits as strokes: each is a few curves in a unit square (y goes down), which are bent, turned,
// sheared, scaled and moved at random, and inked by their distance to the pixels.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "io/data_images.h"
#include "io/data_random.h"

namespace anneal::io {
namespace {

struct Point {
  double x, y;
};
using Stroke = std::vector<Point>;

// From one angle to another, in turns; 0 is to the right, a quarter is down.
Stroke arc(Point centre, double width, double height, double from, double to) {
  Stroke stroke;
  const int pieces = std::max(4, static_cast<int>(std::abs(to - from) * 16));
  for (int i = 0; i <= pieces; ++i) {
    const double angle = (from + (to - from) * i / pieces) * 2 * std::numbers::pi;
    stroke.push_back({centre.x + width * std::cos(angle), centre.y + height * std::sin(angle)});
  }
  return stroke;
}

Stroke joined(Stroke first, const Stroke& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

const std::array<std::vector<Stroke>, 10>& shapes() {
  static const std::array<std::vector<Stroke>, 10> by_digit{{
      {arc({.5, .5}, .27, .4, 0, 1)},
      {{{.35, .28}, {.53, .1}, {.53, .9}}},
      {joined(arc({.5, .32}, .25, .22, -.5, .08), {{.26, .9}, {.77, .9}})},
      {joined(arc({.47, .3}, .24, .2, -.42, .25), arc({.47, .7}, .27, .2, -.25, .42))},
      {{{.6, .1}, {.22, .65}, {.8, .65}}, {{.62, .4}, {.62, .92}}},
      {joined({{.74, .1}, {.34, .1}, {.31, .46}}, arc({.47, .66}, .27, .24, -.3, .4))},
      {joined({{.64, .08}, {.4, .3}}, arc({.5, .66}, .24, .24, -.5, .5))},
      {{{.24, .12}, {.78, .12}, {.42, .92}}},
      {arc({.5, .3}, .21, .2, 0, 1), arc({.5, .7}, .26, .21, 0, 1)},
      {joined(arc({.5, .33}, .23, .23, 0, 1), {{.73, .34}, {.62, .92}})},
  }};
  return by_digit;
}

// A random affine map of the unit square to pixels, with a gentle wave on top.
class Distortion {
 public:
  explicit Distortion(HostRandom& random) {
    const double angle = random.uniform(-.22, .22), shear = random.uniform(-.2, .2);
    const double width = random.uniform(15, 21), height = random.uniform(18, 22);
    xx_ = width * std::cos(angle);
    xy_ = width * (shear - std::sin(angle));
    yx_ = height * std::sin(angle);
    yy_ = height * std::cos(angle);
    x_ = 13.5 + random.uniform(-2, 2);
    y_ = 13.5 + random.uniform(-2, 2);
    wave_ = random.uniform(-.05, .05);
    phase_ = random.uniform(0, 6.28);
  }
  Point operator()(Point p) const {
    const double x = p.x - .5 + wave_ * std::sin(6 * p.y + phase_),
                 y = p.y - .5 + wave_ * std::sin(5 * p.x + phase_);
    return {x_ + xx_ * x + xy_ * y, y_ + yx_ * x + yy_ * y};
  }

 private:
  double xx_, xy_, yx_, yy_, x_, y_, wave_, phase_;
};

double distance(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const double t =
      length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0;
  const double x = p.x - a.x - t * dx, y = p.y - a.y - t * dy;
  return std::sqrt(x * x + y * y);
}

// Ink within `radius` of the segment, fading out over the next pixel.
void draw_segment(std::span<double> ink, Point a, Point b, double radius) {
  const double reach = radius + 1;
  auto first = [&](double low) { return std::max(0, static_cast<int>(std::ceil(low - reach))); };
  auto last = [&](double high) {
    return std::min(static_cast<int>(Images::kSide) - 1,
                    static_cast<int>(std::floor(high + reach)));
  };
  for (int y = first(std::min(a.y, b.y)); y <= last(std::max(a.y, b.y)); ++y)
    for (int x = first(std::min(a.x, b.x)); x <= last(std::max(a.x, b.x)); ++x) {
      const Point pixel{static_cast<double>(x), static_cast<double>(y)};
      const double amount = std::clamp(reach - distance(pixel, a, b), 0.0, 1.0);
      double& place = ink[static_cast<size_t>(y * Images::kSide + x)];
      place = std::max(place, amount);
    }
}

void draw_digit(std::span<uint8_t> pixels, size_t digit, HostRandom& random) {
  std::array<double, Images::kPixels> ink{};
  const Distortion distort(random);
  const double radius = random.uniform(.4, 1.3), strength = random.uniform(.75, 1);
  for (const Stroke& stroke : shapes()[digit]) {
    Stroke bent;
    for (const Point& p : stroke)
      bent.push_back(
          distort({p.x + random.uniform(-.015, .015), p.y + random.uniform(-.015, .015)}));
    for (size_t i = 1; i < bent.size(); ++i) draw_segment(ink, bent[i - 1], bent[i], radius);
  }
  for (size_t i = 0; i < pixels.size(); ++i) {
    const double value = ink[i] * strength + random.uniform(-.08, .08);
    pixels[i] = static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
  }
}

}  // namespace

Images drawn_digits(int64_t count, uint64_t seed) {
  Images images;
  images.pixels.resize(static_cast<size_t>(count * Images::kPixels));
  for (int64_t i = 0; i < count; ++i) {
    HostRandom random(seed, static_cast<uint64_t>(i));
    const auto digit = static_cast<size_t>(random.below(10));
    images.labels.push_back(static_cast<uint8_t>(digit));
    draw_digit(
        std::span(images.pixels).subspan(static_cast<size_t>(i * Images::kPixels), Images::kPixels),
        digit, random);
  }
  return images;
}

ImageData drawn_digits() {
  return {drawn_digits(20'000, 1), drawn_digits(4'000, 2), "drawn digits"};
}

}  // namespace anneal::io
