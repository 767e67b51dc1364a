// What is asked of the runner of passes, while it lives.
#pragma once

#include <utility>

#include "rewrite/passes.h"

namespace anneal {

class RequestsScope {
 public:
  explicit RequestsScope(PassRequests requests) : before_(pass_requests()) {
    set_pass_requests(std::move(requests));
  }
  ~RequestsScope() { set_pass_requests(std::move(before_)); }
  RequestsScope(const RequestsScope&) = delete;
  RequestsScope& operator=(const RequestsScope&) = delete;

 private:
  PassRequests before_;
};

}  // namespace anneal
