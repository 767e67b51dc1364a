// Limits between variables: a coordinate along an axis of n elements is below n, whatever n is.
// A Variable's own bounds are numbers, so facts that relate variables live in a scope around the
// code that simplifies and proves.
#pragma once

#include <span>
#include <vector>

#include "base/key.h"
#include "ir/index.h"

namespace anneal {

struct Limit {
  NodeRef index, size;  // 0 <= index < size
};

// While it lives, this thread takes the limits for true, besides those of the scopes around it.
class LimitScope {
 public:
  explicit LimitScope(std::span<const Limit> limits);
  ~LimitScope();
  LimitScope(const LimitScope&) = delete;
  LimitScope& operator=(const LimitScope&) = delete;

 private:
  size_t outer_count_;
  Key outer_key_;
};

// Changes with what is taken for true, and comes back with it: the key of caches.
Key limits_key();

// A size such that 0 <= term < size follows from the limits or from the term's own form; or null.
NodeRef limit_of(NodeRef term);

// Whether a sum is never below zero, by its bounds and at the corners the limits allow.
bool never_negative(const LinearForm& form);
// 0 <= value < size
bool lies_below(const LinearForm& value, const LinearForm& size);

}  // namespace anneal
