#include "base/call_site.h"

#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <anneal/error.h>

#include "base/os/mutex.h"

namespace anneal {
namespace {

// What this thread is in. The origin is interned lazily: most scopes build several nodes.
struct ThreadState {
  const char* operation = nullptr;  // null outside any public call
  std::source_location where;
  std::string layer;
  const Origin* origin = nullptr;
  bool origin_valid = true;
};

thread_local ThreadState t_state;

std::string_view file_name(std::string_view path) {
  size_t slash = path.find_last_of("/\\");
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

struct OriginLess {
  static auto tie(const Origin& o) { return std::tie(o.line, o.operation, o.file, o.layer); }
  bool operator()(const Origin& a, const Origin& b) const { return tie(a) < tie(b); }
};

const Origin* intern(Origin origin) {
  static Mutex mutex;
  static auto& table = *new std::set<Origin, OriginLess>;  // lives as long as the process
  const Lock lock(mutex);
  return &*table.insert(std::move(origin)).first;
}

// Nodes made from now on within the same public call come from another layer.
void enter_layer(std::string path) {
  if (path == t_state.layer) return;
  t_state.layer = std::move(path);
  if (t_state.operation) t_state.origin_valid = false;
}

std::string render(const std::string& message, const std::string& hint,
                   const std::source_location& where) {
  std::string text = "error: " + message;
  if (where.line() != 0) {
    text += t_state.layer.empty() ? "\n  at " : fmt::format("\n  in layer \"{}\", ", t_state.layer);
    text += fmt::format("{}:{}", file_name(where.file_name()), where.line());
  }
  if (!hint.empty()) text += "\n  hint: " + hint;
  return text;
}

}  // namespace

UserError::UserError(std::string message, std::string hint, std::source_location where)
    : std::runtime_error(render(message, hint, where)),
      message_(std::move(message)),
      hint_(std::move(hint)),
      where_(where) {}

CallScope::CallScope(const char* operation, std::source_location where)
    : outermost_(t_state.operation == nullptr) {
  if (!outermost_) return;
  t_state.operation = operation;
  t_state.where = where;
  t_state.origin_valid = false;
}

CallScope::~CallScope() {
  if (!outermost_) return;
  t_state.operation = nullptr;
  t_state.where = {};
  t_state.origin = nullptr;
  t_state.origin_valid = true;
}

UserCodeScope::UserCodeScope()
    : outer_operation_(std::exchange(t_state.operation, nullptr)), outer_where_(t_state.where) {
  t_state.origin = nullptr;
  t_state.origin_valid = true;
}
UserCodeScope::~UserCodeScope() {
  t_state.operation = outer_operation_;
  t_state.where = outer_where_;
  t_state.origin_valid = outer_operation_ == nullptr;
}

OriginScope::OriginScope(const Origin* origin)
    : outer_(t_state.origin), outer_valid_(t_state.origin_valid) {
  t_state.origin = origin;
  t_state.origin_valid = true;
}

OriginScope::~OriginScope() {
  t_state.origin = outer_;
  t_state.origin_valid = outer_valid_;
}

LayerScope::LayerScope(const std::string& name) : outer_(t_state.layer) {
  enter_layer(outer_.empty() ? name : outer_ + "." + name);
}

LayerScope::LayerScope(const std::string& path, Absolute) : outer_(t_state.layer) {
  enter_layer(path);
}

LayerScope::~LayerScope() { enter_layer(std::move(outer_)); }

const std::string& current_layer() { return t_state.layer; }

const Origin* current_origin() {
  if (!t_state.origin_valid) {
    t_state.origin = intern({t_state.operation, std::string(file_name(t_state.where.file_name())),
                             t_state.where.line(), t_state.layer});
    t_state.origin_valid = true;
  }
  return t_state.origin;
}

std::string to_text(const Origin& origin) {
  std::string text = fmt::format("{} at {}:{}", origin.operation, origin.file, origin.line);
  if (!origin.layer.empty()) text += fmt::format(" in \"{}\"", origin.layer);
  return text;
}

void fail(const std::string& message, const std::string& hint) {
  std::string prefix = t_state.operation ? fmt::format("{}: ", t_state.operation) : "";
  throw UserError(prefix + message, hint, t_state.where);
}

}  // namespace anneal
