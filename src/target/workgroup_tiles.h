// Tiles of products on devices whose lanes are threads: which there are, and how well each keeps
// threads busy, as measured on an H200. Planners choose among them; schedulers reckon with the
// largest one instead of repeating its size.
#pragma once

#include <array>
#include <cstdint>

namespace anneal {

// A rectangle of threads with a rectangle of elements each.
struct WorkgroupTile {
  int row_threads, row_copies, column_threads, column_copies;
  double speed;  // to the best of its kind
  int at_once;   // so many a core has registers for

  constexpr int threads() const { return row_threads * column_threads; }
  constexpr int copies() const { return row_copies * column_copies; }
  constexpr int rows() const { return row_threads * row_copies; }
  constexpr int columns() const { return column_threads * column_copies; }
};

// Through shared memory; without it; and on matrix units, whose threads are 8 x 4 with 2 x 4
// elements of a matrix each.
inline constexpr std::array<WorkgroupTile, 5> kStagedTiles{{{16, 8, 16, 8, 1.0, 2},
                                                            {8, 8, 16, 8, 0.97, 3},
                                                            {8, 8, 8, 8, 0.9, 6},
                                                            {8, 4, 16, 4, 0.6, 8},
                                                            {8, 4, 8, 4, 0.5, 16}}};
inline constexpr std::array<WorkgroupTile, 3> kDirectTiles{
    {{4, 4, 8, 4, 1.0, 1}, {4, 2, 8, 4, 0.8, 1}, {2, 1, 16, 2, 0.4, 1}}};
inline constexpr std::array<WorkgroupTile, 2> kMatrixTiles{
    {{16, 8, 16, 8, 1.0, 2}, {16, 4, 8, 8, 0.6, 4}}};
inline constexpr const WorkgroupTile& kLargestTile = kStagedTiles[0];
// Others that a search may try, in the same order; their speeds are estimates. Those of a matrix
// unit have whole matrices, of whole subgroups.
inline constexpr std::array<WorkgroupTile, 8> kMoreStagedTiles{{{16, 8, 16, 4, 0.88, 3},
                                                                {16, 4, 16, 8, 0.88, 3},
                                                                {32, 8, 8, 8, 0.95, 2},
                                                                {8, 4, 16, 8, 0.8, 4},
                                                                {16, 8, 8, 4, 0.8, 4},
                                                                {16, 4, 16, 4, 0.7, 4},
                                                                {8, 8, 8, 4, 0.7, 8},
                                                                {4, 4, 16, 4, 0.5, 16}}};
inline constexpr std::array<WorkgroupTile, 4> kMoreDirectTiles{
    {{4, 4, 4, 8, 0.95, 1}, {2, 4, 16, 4, 0.9, 1}, {8, 4, 4, 4, 0.9, 1}, {4, 2, 8, 8, 0.85, 1}}};
inline constexpr std::array<WorkgroupTile, 4> kMoreMatrixTiles{
    {{16, 8, 8, 8, 0.85, 3}, {8, 8, 16, 8, 0.85, 3}, {16, 4, 16, 8, 0.8, 3}, {8, 8, 8, 8, 0.7, 6}}};

// Terms of a k tile: a short one takes fewer registers; on matrix units, the longest that fits.
inline constexpr int64_t kShortKTile = 8;
inline constexpr std::array<int64_t, 2> kMatrixKTiles{32, 16};
// Short ones that one round of the loop takes, in tiles of so many threads.
inline constexpr std::array<int64_t, 2> kShortKTilesOfRound{4, 5};
inline constexpr int kFewestThreadsOfRounds = 256;
// What a search may try of both, where a round of several has short ones.
inline constexpr std::array<int64_t, 3> kTriedKTiles{8, 16, 32};
inline constexpr std::array<int64_t, 4> kTriedKTilesOfRound{1, 2, 4, 5};

inline constexpr double kThreadsOfCore = 512;            // that keep it busy
inline constexpr double kSharedBytesOfCore = 200 << 10;  // for all groups that it has at once
// The speed of fewer tiles than a core has registers for.
inline constexpr double kSpeedOfFewTiles = 0.75;

}  // namespace anneal
