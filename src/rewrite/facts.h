// What rules may know beside the node they look at: one value, of whatever type, that is given to
// the Rewriter and that actions read from their match. So rules stay functions without a state.
#pragma once

#include <type_traits>

#include <anneal/error.h>

namespace anneal {

class Facts {
 public:
  Facts() = default;  // none
  // The value outlives whatever is given the facts.
  template <typename T>
    requires(!std::is_same_v<T, Facts>)
  explicit Facts(const T& value) : value_(&value), type_(&kType<T>) {}

  template <typename T>
  const T& get() const {
    if (type_ != &kType<T>) throw InternalError("a rule asks for facts that it was not given");
    return *static_cast<const T*>(value_);
  }

 private:
  template <typename T>
  static constexpr char kType = 0;  // its address tells types apart

  const void* value_ = nullptr;
  const void* type_ = nullptr;
};

}  // namespace anneal
