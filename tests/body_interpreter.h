// What a KernelBody computes, written as plainly as possible: loops over axes, one scalar at a
// time, by the ops' own meaning. The truth that schedules and lowered programs are compared with.
#pragma once

#include <functional>
#include <span>

#include "body/kernel_body.h"
#include "ir/interpreter.h"

namespace anneal {

// buffers[i] is body.buffers[i]. Loads see what the buffers held before, or with tiles what the
// stores before left there; only what StoreAdd adds to is read as it stands. Sums and products run
// in f64 (integers: 64 bits) and round at the end. Throws InternalError where a position whose
// condition holds lies outside its buffer.
void run_body(const KernelBody& body, std::span<Value* const> buffers,
              const std::function<int64_t(NodeRef variable)>& variable = nullptr);

}  // namespace anneal
