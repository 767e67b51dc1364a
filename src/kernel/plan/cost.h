// What kernels are reckoned to take: every number that planners choose by, with its unit, and what
// passes over bodies and emission choose by around them; the tiles of workgroups are in
// target/workgroup_tiles.h. A step is a multiply-add of vectors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anneal {

// ---- loops over elements, and reductions

// Nanoseconds of one instruction, scalar or vector, and of a byte that comes from far away.
inline constexpr double kInstruction = 0.15, kByte = 0.05;
// What one lane of an access to scattered places takes, in instructions of a CPU.
inline constexpr double kScatteredLane = 1.3;
// Memory gives a thread of a GPU no less than the elements around its own: so many instructions are
// wasted, and no more.
inline constexpr double kScatteredThread = 8;
// Nanoseconds of a cell: long enough that starting it does not matter, short enough to share.
inline constexpr double kCellNanoseconds = 50e3, kWorthSharing = 20e3;
inline constexpr double kStartOfCell = 200;                     // nanoseconds of it
inline constexpr int64_t kCellsToShare = 16, kEnoughCells = 8;  // cells
// Elements that one access of a thread brings.
inline constexpr int kElementsOfAccess = 4;
// Nodes that copies repeat, of a GPU: longer code fills registers and its compiler's time.
inline constexpr size_t kMostNodesOfCopies = 256;
// Of a loop without reductions: nodes up to which it has four vectors, or two, at once.
inline constexpr size_t kFewNodes = 6, kSomeNodes = 24;
// Nodes of a reduction that is worth four sums at once; of more, two.
inline constexpr size_t kFewNodesOfSum = 12;
inline constexpr int64_t kVectorsOfTransposed = 4;  // of a row that is transposed far from caches
// Workgroups with a row each: elements of a thread, and the part of all threads that is busy
// enough.
inline constexpr int64_t kElementsOfThread = 16;
inline constexpr double kBusyThreads = 0.25;

// Bodies with tiles: vectors of rows, and copies of an axis beside them where there are sums, and
// where there are none.
inline constexpr int kRowVectors = 2, kSumCopies = 8, kPlainCopies = 2;

// ---- sums down columns

inline constexpr int64_t kNarrowest = 512;  // columns: fewer are a strip anyway
// Of a row that memory streams through; a shorter one where that leaves too few cells to share.
inline constexpr int64_t kLongPiece = 512, kShortPiece = 128;
inline constexpr size_t kMostColumnSums = 4;
inline constexpr int kRowsAtOnce = 8, kColumnVectors = 4;

// ---- workgroups, of what target and launches allow

// Of a GPU that says nothing of itself.
inline constexpr double kTypicalGbPerSecond = 300, kTypicalGflopPerSecond = 5000;
// Nanoseconds of a launch, and of a group that a core starts.
inline constexpr double kLaunchNanoseconds = 2500, kStartOfWorkgroup = 150;
// Nanoseconds that threads of a group wait for each other to combine what they reduced.
inline constexpr double kCombineNanoseconds = 120;
// Accesses that a thread has on its way keep so many threads' worth of memory busy, at most.
inline constexpr double kMostInFlight = 4;
// What is read again is in a cache, so much faster than memory.
inline constexpr double kSpeedOfCache = 3;
// Terms of a product in the time of a k tile's barriers, and of a round's jump.
inline constexpr double kTermsOfBarrier = 0.5, kTermsOfJump = 0.8;
// Of a matrix unit, to arithmetic in f32.
inline constexpr double kSpeedOfMatrices = 3;
// Squares that are transposed write and read shared memory, beside memory itself.
inline constexpr double kSpeedOfTranspose = 0.85;
// A candidate that is expected to take so much longer than the planner's own is none.
inline constexpr double kHopelessCandidate = 8;
// Thread counts that are tried: all of a group, and its half, so many times.
inline constexpr int kHalvesOfWorkgroup = 3;

// ---- transposes in shared memory

inline constexpr double kFewestTransposed = 1 << 16;  // elements

// ---- products

inline constexpr double kStepsPerNanosecond = 3.0;

// Steps that packing an element takes, by how it lies; and storing one to a scattered place.
inline constexpr double kPackContiguous = 0.3, kPackSecond = 0.5, kPackTurned = 0.6;
inline constexpr double kPackScattered = 1.6, kStoreScattered = 1.6;
// An operand that is computed while it is packed, to one that is only loaded.
inline constexpr double kPackComputed = 1.5;
// Steps for a vector of sums that is loaded and stored around a block.
inline constexpr double kSumThroughMemory = 1.0;

// Below these nothing is gained: there is too little to use twice.
inline constexpr double kFewestRows = 3, kFewestRowsOfWorkgroup = 4, kFewestSteps = 4096;

// Nanoseconds of a cell.
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
// How often the operands of the side that cells do not share are packed again, roughly.
inline constexpr double kRepeats = 8;
// Of what each element of a workgroup's tile is made of, all copies together: what is longer takes
// drivers many seconds and gigabytes to compile.
inline constexpr size_t kMostNodesOfTile = 8192;
// Terms that matrix units add up before sums go on in f32.
inline constexpr int64_t kTermsOfMatrices = 1536;
// What the cell's memory may take, to what stays in the cache of a core.
inline constexpr int64_t kMostMemory = 4;

// ---- passes over bodies

// Operations of a value: with fewer it is computed again rather than kept for a row, and with no
// more than so few rather than loaded from before the loops.
inline constexpr int kWorthKeeping = 8;
inline constexpr size_t kCheapToRepeat = 4;
// Choices that become code of their own, and stores of all of them.
inline constexpr int64_t kMostChoices = 8, kMostChosenStores = 64;
inline constexpr int64_t kSmallestOnlineBlock = 4;  // of an online reduction, in rows

// ---- memory and caches, at emission

inline constexpr int64_t kCacheLine = 64;  // bytes
// Rows of so many bytes, or a multiple, meet in the same places of a cache.
inline constexpr int64_t kCacheConflict = 1024;
// Bytes of a row that is prefetched: shorter ones the processor follows by itself.
inline constexpr int64_t kShortestPrefetchedRow = 1024;
inline constexpr int64_t kStepsAhead = 32;  // steps of a sum that operands are prefetched ahead
// Elements that a thread loads ahead of the stores they are for: registers that operands of a
// product had are free then. And elements that it stores at once.
inline constexpr int kLoadsAhead = 32;
inline constexpr size_t kStoredAtOnce = 4;
// Threads that read shared memory together, and how many of them are beside each other: a rectangle
// meets fewer banks twice.
inline constexpr int kThreadsAtOnce = 32, kThreadsAcross = 8;
// Elements behind each row of a matrix in shared memory, so that columns lie in different banks.
inline constexpr int64_t kMatrixPadding = 8;
// Bytes of a workgroup's local buffers, up to which all stay in shared memory, which is nearer.
inline constexpr int64_t kRoomOfGroup = 16 << 10;

// ---- register tiles

// The largest register tile; and of what a search tries, where fewer sums would wait for each
// other.
inline constexpr int kMostRowCopies = 16, kMostVectors = 4, kFewestSums = 8;
inline constexpr int64_t kDeepestOfAll = 4096;  // steps of a k tile that a search tries
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
