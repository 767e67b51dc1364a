// The interpreter as a device. It runs the graph as it was built: no rewriting, no schedule.
#include <algorithm>
#include <unordered_map>

#include "ir/interpreter.h"
#include "runtime/execute/evaluator.h"
#include "runtime/program/canonical_program.h"

namespace anneal {
namespace {

// Contents in the interpreter's own form.
class Values {
 public:
  explicit Values(const Contents& contents) : contents_(contents) {}

  Environment environment() {
    return {
        .variable = [this](NodeRef node) { return contents_.size(node); },
        .buffer = [this](NodeRef node) { return value(node, *contents_.buffer(node)); },
        .known =
            [this](NodeRef node) {
              std::shared_ptr<Storage> storage = contents_.find(node);
              return storage ? value(node, *storage) : nullptr;
            },
    };
  }

 private:
  const Value* value(NodeRef node, const Storage& storage) {
    auto [entry, fresh] = values_.try_emplace(node);
    if (fresh) entry->second = to_value(storage);
    return &entry->second;
  }

  const Contents& contents_;
  std::unordered_map<NodeRef, Value> values_;
};

// The program in a graph of its own, its slots as buffers.
class InterpreterPlan : public Plan {
 public:
  explicit InterpreterPlan(const CanonicalProgram& program) : program_(program.build(graph_)) {}

  void run(std::span<const std::shared_ptr<Storage>> slots, std::span<const int64_t> sizes,
           std::span<const std::shared_ptr<Storage>> results) override {
    GraphScope scope(graph_);
    std::vector<NodeRef> roots = program_.values;
    roots.insert(roots.end(), program_.assigns.begin(), program_.assigns.end());
    std::vector<Value> contents;
    for (const std::shared_ptr<Storage>& slot : slots) contents.push_back(to_value(*slot));
    const Environment environment{
        .variable =
            [&](NodeRef variable) {
              auto known = std::ranges::find(program_.variables, variable);
              return sizes[static_cast<size_t>(known - program_.variables.begin())];
            },
        .buffer = [&](NodeRef buffer) { return &contents[slot_of(buffer)]; },
        .known = nullptr,
    };
    const std::vector<Value> values = interpret(roots, environment);
    for (size_t i = 0; i < results.size(); ++i) *results[i] = to_storage(values[i]);
    for (size_t i = 0; i < program_.assigns.size(); ++i)
      *slots[slot_of(program_.assigns[i]->source(0))] = to_storage(values[results.size() + i]);
  }

 private:
  static size_t slot_of(NodeRef buffer) { return static_cast<size_t>(buffer->arg.symbol->first); }

  Graph graph_;
  CanonicalProgram::Built program_;
};

class Interpreter : public Evaluator {
 public:
  std::vector<std::shared_ptr<Storage>> run(const Request& request) override {
    std::vector<NodeRef> roots = request.roots;
    roots.insert(roots.end(), request.assigns.begin(), request.assigns.end());
    Values contents(*request.contents);
    const std::vector<Value> values = interpret(roots, contents.environment());

    std::vector<std::shared_ptr<Storage>> results;
    for (size_t i = 0; i < request.roots.size(); ++i)
      results.push_back(std::make_shared<Storage>(to_storage(values[i])));
    // All stores come after all reads.
    for (size_t i = 0; i < request.assigns.size(); ++i) {
      Storage& target = *current_graph().stored(request.assigns[i]->source(0));
      target = to_storage(values[request.roots.size() + i]);
    }
    return results;
  }

  std::unique_ptr<Plan> plan(const CanonicalProgram& program) override {
    return std::make_unique<InterpreterPlan>(program);
  }
};

}  // namespace

std::unique_ptr<Evaluator> make_interpreter() { return std::make_unique<Interpreter>(); }

}  // namespace anneal
