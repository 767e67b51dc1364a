// Builds the promotion table from dtypes.def at compile time, and answers the limits.
// Must not name single dtypes: what differs between them is a row.
#include "ir/dtype.h"

#include <bit>
#include <cassert>

#include "ir/float_formats.h"

namespace anneal {
namespace {

// A set of dtypes, one bit each.
using DTypeSet = uint32_t;
static_assert(kDTypeCount <= 32);

constexpr DTypeSet set_of(DType dtype) { return DTypeSet{1} << static_cast<unsigned>(dtype); }
constexpr bool contains(DTypeSet set, DType dtype) { return (set & set_of(dtype)) != 0; }
constexpr DTypeSet kEveryDType = (DTypeSet{1} << (kDTypeCount - 1) << 1) - 1;

using UpperSets = std::array<DTypeSet, kDTypeCount>;

// For every dtype, the dtypes at or above it: the reflexive transitive closure of PROMOTES.
constexpr UpperSets close_upwards() {
  UpperSets upper{};
  for (DType dtype : kAllDTypes) upper[static_cast<size_t>(dtype)] = set_of(dtype);
  for (size_t round = 0; round < kDTypeCount; ++round) {
#define PROMOTES(from, to) \
  upper[static_cast<size_t>(DType::from)] |= upper[static_cast<size_t>(DType::to)];
#include "ir/dtypes.def"
  }
  return upper;
}

constexpr UpperSets kUpper = close_upwards();
constexpr DTypeSet upper_set(DType dtype) { return kUpper[static_cast<size_t>(dtype)]; }
constexpr bool is_at_or_below(DType a, DType b) { return contains(upper_set(a), b); }

// The least member of `bounds` that is comparable with every other. Where a least upper bound
// exists this is it; where there are several minimal ones it is where those meet. Comparable
// members form a chain, and the top is one, so the answer exists and is unique.
constexpr DType least_comparable(DTypeSet bounds) {
  DType least{};
  bool found = false;
  for (DType candidate : kAllDTypes) {
    if (!contains(bounds, candidate)) continue;
    bool comparable = true;
    for (DType other : kAllDTypes) {
      if (!contains(bounds, other)) continue;
      comparable &= is_at_or_below(candidate, other) || is_at_or_below(other, candidate);
    }
    if (comparable && (!found || is_at_or_below(candidate, least))) {
      least = candidate;
      found = true;
    }
  }
  return least;
}

using PromotionTable = std::array<std::array<DType, kDTypeCount>, kDTypeCount>;

constexpr PromotionTable fill_promotions() {
  PromotionTable table{};
  for (DType a : kAllDTypes) {
    for (DType b : kAllDTypes) {
      table[static_cast<size_t>(a)][static_cast<size_t>(b)] =
          least_comparable(upper_set(a) & upper_set(b));
    }
  }
  return table;
}

constexpr PromotionTable kPromotions = fill_promotions();

constexpr bool is_order_with_top_and_bottom() {
  DTypeSet tops = kEveryDType;
  size_t bottoms = 0;
  for (DType a : kAllDTypes) {
    tops &= upper_set(a);
    bottoms += upper_set(a) == kEveryDType;
    for (DType b : kAllDTypes) {
      if (a != b && is_at_or_below(a, b) && is_at_or_below(b, a)) return false;
    }
  }
  return std::has_single_bit(tops) && bottoms == 1;
}
static_assert(is_order_with_top_and_bottom(), "PROMOTES has a cycle, or a dtype without a row");

// How many bits of an integer carry magnitude.
unsigned magnitude_bits(DType dtype) {
  assert(!is_float(dtype));
  if (is_bool(dtype)) return 1;
  return static_cast<unsigned>(byte_size(dtype)) * 8 - (is_unsigned(dtype) ? 0 : 1);
}

}  // namespace

std::optional<DType> parse_dtype(std::string_view text) {
  for (DType dtype : kAllDTypes) {
    if (name(dtype) == text) return dtype;
  }
  return std::nullopt;
}

DType promote(DType a, DType b) {
  return kPromotions[static_cast<size_t>(a)][static_cast<size_t>(b)];
}

DType promote_all(std::span<const DType> dtypes) {
  DTypeSet bounds = kEveryDType;
  for (DType dtype : dtypes) bounds &= upper_set(dtype);
  return least_comparable(bounds);
}

int64_t min_value(DType dtype) {
  if (is_bool(dtype) || is_unsigned(dtype)) return 0;
  return -static_cast<int64_t>(max_value(dtype)) - 1;
}

uint64_t max_value(DType dtype) { return ~uint64_t{0} >> (64 - magnitude_bits(dtype)); }

double largest_finite(DType dtype) {
  // Codes grow with magnitude, and this is the last one before overflow.
  return decode(dtype, format_of(dtype).overflow_code() - 1);
}

double lowest_finite(DType dtype) { return -largest_finite(dtype); }

}  // namespace anneal
