// What products on a CPU are reckoned to take: every number that planners of products choose by,
// with its unit. A step is a multiply-add of vectors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anneal {

inline constexpr double kStepsPerNanosecond = 3.0;

// Steps that packing an element takes, by how it lies; and storing one to a scattered place.
inline constexpr double kPackContiguous = 0.3, kPackSecond = 0.5, kPackTurned = 0.6;
inline constexpr double kPackScattered = 1.6, kStoreScattered = 1.6;
// An operand that is computed while it is packed, to one that is only loaded.
inline constexpr double kPackComputed = 1.5;
// Steps for a vector of sums that is loaded and stored around a block.
inline constexpr double kSumThroughMemory = 1.0;

// Below these nothing is gained: there is too little to use twice.
inline constexpr double kFewestRows = 3, kFewestSteps = 4096;

// Nanoseconds of a cell: long enough that starting it does not matter, short enough to share.
inline constexpr double kProductCellNanoseconds = 40e3;
inline constexpr double kProductCellsToShare = 16, kFewestCells = 4;  // cells
// Load balance: more cells than enough where the busiest core gains by them, up to so many a core,
// each worth handing to a thread.
inline constexpr double kFewCores = 4, kMostCellsOfCore = 6, kEvener = 0.95;
inline constexpr double kFewestNanoseconds = 10e3;
inline constexpr double kWorthPacking = 0.04;  // part of all steps that more cells may cost
// Elements.
inline constexpr int64_t kSmallestBlock = 64;
inline constexpr int64_t kShortSum = 8;        // steps of a loop that are too few for it
inline constexpr int64_t kDeepest = 384;       // steps of a sum that one block of it takes
inline constexpr double kEnoughColumns = 512;  // for one block
inline constexpr double kVectorsTogether = 4;  // that short axes are packed in
inline constexpr size_t kLightStores = 10;     // nodes
// What the cell's memory may take, to what stays in the cache of a core.
inline constexpr int64_t kMostMemory = 4;

// Of a register tile, in rows and vectors: what a step of the sum takes, in steps.
struct RegisterTile {
  int rows, vectors, heads;
  bool fits;  // the columns are made of whole tiles
};
inline double tile_cost(const RegisterTile& tile) {
  constexpr double kLoad = 0.12;     // of an operand, for each step it serves
  constexpr double kRest = 0.03;     // where some columns are left over
  constexpr double kWaiting = 0.5;   // sums that wait for each other
  constexpr int kSumsToOverlap = 8;  // additions that hide how long one takes
  return 1 + (kLoad / tile.rows + kLoad / tile.vectors + (tile.fits ? 0 : kRest)) +
         (tile.heads * tile.rows * tile.vectors < kSumsToOverlap ? kWaiting : 0);
}

}  // namespace anneal
