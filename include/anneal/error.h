// The two ways anneal can fail. A UserError is a mistake in the program that uses anneal: it says
// what, both values, where, and what to do. An InternalError is a bug of ours; it names the pass.
#pragma once

#include <stdexcept>
#include <string>

#include <anneal/location.h>

namespace anneal {

class UserError : public std::runtime_error {
 public:
  UserError(std::string message, std::string hint, std::source_location where);

  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }
  const std::source_location& where() const { return where_; }

 private:
  std::string message_, hint_;
  std::source_location where_;
};

class InternalError : public std::logic_error {
 public:
  explicit InternalError(const std::string& message)
      : std::logic_error("internal error: " + message) {}
};

}  // namespace anneal
