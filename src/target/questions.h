// What is asked of capabilities above code generation, each question by the fact that matters where
// it is asked. None is "is it a GPU": tools/check_layers.py sees to that.
#pragma once

#include "target/capabilities.h"

namespace anneal {

// A workgroup copies the operands of its product into memory that its threads share, and computes
// them on the way: every workgroup that needs one, again.
inline bool makes_operands_in_workgroups(const Capabilities& capabilities) {
  return capabilities.workgroup_threads > 0 && capabilities.stage_products;
}

// A product leaves out blocks of its sums as a whole, where it knows that they add 0.
inline bool skips_blocks_of_products(const Capabilities& capabilities) {
  return capabilities.workgroup_threads > 0;
}

// A thread finds its element by dividing its number, once for each axis.
inline bool numbers_elements_by_thread(const Capabilities& capabilities) {
  return capabilities.workgroup_threads > 0;
}

// Thousands of threads keep it busy, so that work in turns leaves nearly all of it idle.
inline bool needs_many_threads(const Capabilities& capabilities) {
  return capabilities.parallel_threads > 0;
}

// What a kernel keeps in fast memory must fit: there is no larger one behind it.
inline bool bounds_fast_memory(const Capabilities& capabilities) {
  return capabilities.workgroup_bytes > 0;
}

}  // namespace anneal
