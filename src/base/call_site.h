// Remembers which public call the user is in, so that an error raised ten calls deeper still names
// the operation and the line the user wrote. Library code never has to pass locations along.
#pragma once

#include <source_location>
#include <string>

namespace anneal {

struct Origin;

// Opens a public call. Only the outermost scope of a thread takes effect: softmax calls exp and
// sum, but the user wrote softmax.
class CallScope {
 public:
  CallScope(const char* operation, std::source_location where);
  ~CallScope();
  bool outermost() const { return outermost_; }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  bool outermost_;
};

// Back in the user's own code, which a public call calls: its calls have lines of their own.
class UserCodeScope {
 public:
  UserCodeScope();
  ~UserCodeScope();
  UserCodeScope(const UserCodeScope&) = delete;
  UserCodeScope& operator=(const UserCodeScope&) = delete;

 private:
  const char* outer_operation_;
  std::source_location outer_where_;
};

// Builds nodes under the origin of an existing one: a rewrite keeps the user's line.
class OriginScope {
 public:
  explicit OriginScope(const Origin* origin);
  ~OriginScope();
  OriginScope(const OriginScope&) = delete;
  OriginScope& operator=(const OriginScope&) = delete;

 private:
  const Origin* outer_;
  bool outer_valid_;
};

// Names the layer of a model the user is in ("blocks.3.mlp"); nested names are joined with a dot.
class LayerScope {
 public:
  explicit LayerScope(const std::string& name);
  // The whole path, whatever layers this thread is in.
  struct Absolute {};
  LayerScope(const std::string& path, Absolute);
  ~LayerScope();
  LayerScope(const LayerScope&) = delete;
  LayerScope& operator=(const LayerScope&) = delete;

 private:
  std::string outer_;
};

// Where a node comes from. Interned for the life of the process, so that nodes keep a pointer.
struct Origin {
  std::string operation;  // the public call, "softmax"
  std::string file;       // base name
  unsigned line = 0;
  std::string layer;
};

// The layers this thread is in, "blocks.3.mlp"; empty outside.
const std::string& current_layer();

// The origin of what is being built now; null outside any public call.
const Origin* current_origin();
std::string to_text(const Origin& origin);  // softmax at model.cc:41 in "blocks.3"

// Throws a UserError for the call the user is in: "matmul: inner sizes differ: ...".
[[noreturn]] void fail(const std::string& message, const std::string& hint = "");

}  // namespace anneal
