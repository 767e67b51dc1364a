#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include <anneal/grad.h>
#include <anneal/nn.h>

#include "base/host_choice.h"
#include "nn/module_call.h"
#include "nn/structure.h"
#include "tensor/lift.h"

namespace anneal::nn {
namespace {

thread_local bool t_structure_only = false;
thread_local Captures* t_captures = nullptr;  // the innermost

}  // namespace

// ---- Structure

StructureOnly::StructureOnly() : outer_(t_structure_only) { t_structure_only = true; }
StructureOnly::~StructureOnly() { t_structure_only = outer_; }
bool structure_only() { return t_structure_only; }

// ---- Names

Module::Module(Module* parent, std::string_view name, Location where) : parent_(parent) {
  CallScope call("module", where);
  if (!parent) {
    path_ = name;
    return;
  }
  parent->check_name(name);
  path_ = parent->path_of(name);
  *training_ = *parent->training_;
  *compute_dtype_ = *parent->compute_dtype_;
  parent->children_.push_back(this);
}

Module::~Module() {
  if (parent_) std::erase(parent_->children_, this);
  for (Module* child : children_) child->parent_ = nullptr;
}

std::string Module::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void Module::check_name(std::string_view name) const {
  const std::string of = path_.empty() ? "the model" : fmt::format("\"{}\"", path_);
  if (name.empty() || name.find('.') != std::string_view::npos)
    fail(fmt::format("\"{}\" cannot be a name in {}", name, of),
         "give a name without dots: dots join the names of modules in each other");
  const std::string path = path_of(name);
  if (std::ranges::find(entries_, path, &Entry::path) != entries_.end() ||
      std::ranges::find(children_, path, &Module::path_) != children_.end())
    fail(fmt::format("\"{}\" is used twice in {}", name, of),
         "names tell parameters apart in checkpoints: choose another one");
}

// ---- Tensors

Tensor Module::add(std::string_view name, Tensor tensor, Kind kind) {
  entries_.push_back({path_of(name), tensor, kind});
  return tensor;
}

Tensor Module::add_parameter(std::string_view name, const Sizes& sizes, const Init& init,
                             DType dtype, Location where) {
  CallScope call("add_parameter", where);
  check_name(name);
  return add(name, make_state(path_of(name), sizes, init, dtype), Kind::Parameter);
}

Tensor Module::add_buffer(std::string_view name, const Sizes& sizes, const Init& init, DType dtype,
                          Location where) {
  CallScope call("add_buffer", where);
  check_name(name);
  return add(name, make_state(path_of(name), sizes, init, dtype), Kind::Buffer);
}

Tensor Module::add_tied(std::string_view name, const Tensor& parameter, Location where) {
  CallScope call("add_tied", where);
  check_name(name);
  if (node_of(parameter)->op != Op::Buffer || parameter.name().empty())
    fail("only a parameter can be shared", "give another module's parameter, such as its weight");
  return add(name, parameter, Kind::Parameter);
}

Tensor make_state(const std::string& path, const Sizes& sizes, const Init& init, DType dtype) {
  if (structure_only()) return input(path, sizes, dtype);
  return parameter(path, init(sizes, dtype));
}

// Modules are few levels deep: what nests here is C++ objects of the user.
void Module::collect(std::vector<Entry>& entries) const {  // NOLINT(misc-no-recursion)
  entries.insert(entries.end(), entries_.begin(), entries_.end());
  for (const Module* child : children_) child->collect(entries);
}

std::vector<Parameter> Module::parameters(const Filter& filter) const {
  std::vector<Entry> entries;
  collect(entries);
  std::unordered_set<const Node*> frozen, seen;
  for (const Entry& entry : entries)
    if (entry.frozen) frozen.insert(entry.tensor.node());
  std::vector<Parameter> found;
  for (const Entry& entry : entries) {
    if (entry.kind != Kind::Parameter || !seen.insert(entry.tensor.node()).second) continue;
    Parameter parameter{entry.path, entry.tensor, frozen.contains(entry.tensor.node())};
    if (!filter || filter(parameter)) found.push_back(std::move(parameter));
  }
  return found;
}

State Module::state() const {
  std::vector<Entry> entries;
  collect(entries);
  std::unordered_set<const Node*> seen;
  State state;
  for (const Entry& entry : entries)
    if (seen.insert(entry.tensor.node()).second) state.emplace_back(entry.path, entry.tensor);
  return state;
}

void Module::load(const State& from, const LoadOptions& options, Location where) {
  CallScope call("load", where);
  load_state(state(), from, options, where);
}

bool Module::training() const { return look_at(training_) != 0; }

void Module::train(bool on) {  // NOLINT(misc-no-recursion)
  choose(training_, on ? 1 : 0);
  for (Module* child : children_) child->train(on);
}

// NOLINTNEXTLINE(misc-no-recursion)
void Module::compute_in(std::optional<DType> dtype, Location where) {
  CallScope call("compute_in", where);
  if (dtype) check_storable(*dtype);
  if (dtype && !is_float(*dtype))
    fail(fmt::format("{} is no float", name(*dtype)), "give bf16, f16, f32 or f64");
  choose(compute_dtype_, dtype ? static_cast<int64_t>(*dtype) : -1);
  for (Module* child : children_) child->compute_in(dtype, where);
}

Tensor Module::for_compute(const Tensor& x) const {
  const int64_t dtype = look_at(compute_dtype_);
  return dtype >= 0 && x.defined() && is_float(x.dtype()) ? cast(x, static_cast<DType>(dtype)) : x;
}

void Module::set_frozen(const Filter& filter, bool on) {  // NOLINT(misc-no-recursion)
  for (Entry& entry : entries_)
    if (entry.kind == Kind::Parameter &&
        (!filter || filter({entry.path, entry.tensor, entry.frozen})))
      entry.frozen = on;
  for (Module* child : children_) child->set_frozen(filter, on);
}

// ---- Captures

Tensor Module::capture(const Tensor& x, std::string_view name) const {
  if (!t_captures) return x;
  return t_captures->add(name.empty() ? path_ : path_of(name), x);
}

Captures::Captures(PathFilter filter) : filter_(std::move(filter)), outer_(t_captures) {
  t_captures = this;
}
Captures::~Captures() { t_captures = outer_; }

// A value of its own, for two layers may compute the same: equal expressions are one node.
Tensor Captures::add(std::string path, const Tensor& x) {
  if (filter_ && !filter_(path)) return x;
  const std::string first = path;
  auto taken = [&](const auto& entry) { return entry.first == path; };
  for (int i = 1; std::ranges::any_of(activations_, taken); ++i)
    path = fmt::format("{}#{}", first, i);
  Tensor value = named(x, path);
  activations_.emplace_back(std::move(path), value);
  return value;
}

State Captures::gradients(const Tensor& loss, Location where) const {
  CallScope call("gradients", where);
  std::vector<Tensor> tensors;
  for (const auto& [path, tensor] : activations_) tensors.push_back(tensor);
  std::vector<Tensor> gradients = grad(loss, tensors, {.allow_unused = true});
  State state;
  for (size_t i = 0; i < gradients.size(); ++i)
    state.emplace_back(activations_[i].first, gradients[i]);
  return state;
}

}  // namespace anneal::nn
