// From where on the scheduler does something that pays on some machines, and how much of it: a part
// of a target's Tuning. The numbers here were measured on the processor of cpu-avx512 where cores
// share the cells of a kernel, on an H200 where threads do; no other target has its own yet.
#pragma once

namespace anneal {

struct ScheduleTuning {
  // ---- sums of many terms for few results, in pieces that a second phase adds up. Work is terms
  // of all results together.

  // Where cores share the cells of a kernel: fewer results leave some idle, less work is not worth
  // a second phase. Blocks of a product share its operands, so that it takes more of both.
  double few_results = 512, few_results_of_product = 1 << 14;
  double least_work = 1 << 18, least_work_of_product = 1 << 24;
  double most_pieces = 64, pieces_of_product = 8;
  double work_of_piece = 1 << 14;  // at least
  // Where each result is a thread's.
  double idle_part = 0.25;               // of all threads: the device is idle with fewer
  double terms_of_thread = 64;           // that it adds at least
  double fewest_threads = 4;             // that have terms, where it is worth it
  double waiting_threads = 4;            // for memory, for each that computes
  double most_pieces_of_threads = 1024;  // which one workgroup brings together
  double few_terms = 1024;   // of a sum that takes no pieces: one workgroup, or core, is enough
  double many_terms = 4096;  // that take longer than a second phase does
  // Where a rectangle of a product's results is a workgroup's: terms that it adds at least, and how
  // many have some where it is worth it; workgroups that leave the device idle, those that keep it
  // busy, and where pieces are long, as many that it matters little when some end last. On matrix
  // units they end sooner.
  double terms_of_workgroup = 64, fewest_workgroups = 2;
  double few_workgroups = 128, busy_workgroups = 256, many_workgroups = 512;
  double many_workgroups_of_matrices = 1024;

  // ---- additions at computed places that become sums which look for their values, where threads
  // are many: of so few results, as a busy device adds up so many elements in the time that one
  // value is added in its turn; and of more values than may take turns.
  double scatter_results = 1 << 21, scatter_values = 64;

  // ---- products that are worth a matrix unit: rows or columns, and terms. Below them the largest
  // numbers take longer to find than is won.
  double least_matrix_side = 128, least_matrix_terms = 64;

  friend bool operator==(const ScheduleTuning&, const ScheduleTuning&) = default;
};

}  // namespace anneal
