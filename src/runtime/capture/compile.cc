// compile(): a function is called once with placeholders, and what it builds becomes a plan. Inputs
// of other shapes or dtypes get a plan of their own, as do modules in another mode.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <anneal/compile.h>
#include <anneal/device.h>
#include <anneal/random.h>

#include "base/host_choice.h"
#include "ir/interpreter.h"
#include "ir/node_map.h"
#include "runtime/capture/assignments.h"
#include "runtime/capture/frozen_values.h"
#include "runtime/execute/evaluator.h"
#include "runtime/inspect/program_text.h"
#include "runtime/program/canonical_program.h"
#include "tensor/lift.h"

namespace anneal {
namespace {

std::vector<NodeRef> nodes_of(const std::vector<Tensor>& tensors) {
  std::vector<NodeRef> nodes;
  for (const Tensor& tensor : tensors) nodes.push_back(node_of(tensor));
  return nodes;
}

// Memory for a value, and the buffer that names it.
Tensor new_result(DType dtype, const std::vector<int64_t>& shape) {
  int64_t bytes = static_cast<int64_t>(byte_size(dtype));
  for (int64_t size : shape) bytes *= size;
  auto storage = std::make_shared<Storage>(dtype, shape, static_cast<size_t>(bytes));
  NodeRef buffer = make_buffer("", new_buffer_slot(), dtype, static_dims(shape));
  current_graph().store(buffer, std::move(storage));
  return wrap(buffer);
}

std::string shape_text(const Storage& storage) {
  return fmt::format("{}[{}]", name(storage.dtype), fmt::join(storage.shape, ", "));
}

// ---- what a function builds

struct Captured {
  std::vector<Tensor> results, updates;
  ChoicesSeen::List choices;  // of the host, that decided what was built
  int64_t draws = 0;          // taken from the function's own stream
  bool computed = false;      // values, while it was captured

  std::vector<NodeRef> roots() const {
    std::vector<NodeRef> all = nodes_of(results);
    for (const Tensor& update : updates) all.push_back(node_of(update));
    return all;
  }
};

// The function draws from a stream of its own, from its first number on: see with_stream().
Captured capture(const CompiledFunction::Function& function, const std::vector<Tensor>& inputs,
                 uint64_t stream_seed) {
  Step step;
  ChoicesSeen choices;
  Captured captured;
  const int64_t evaluations_before = evaluations();
  const Generator outer = std::exchange(generator(), Generator(stream_seed));
  try {
    UserCodeScope user;
    captured.results = function(inputs);
  } catch (...) {
    generator() = outer;
    throw;
  }
  captured.draws = static_cast<int64_t>(std::exchange(generator(), outer).draw());
  captured.updates = step.updates();
  captured.choices = choices.take();
  captured.computed = evaluations() != evaluations_before;
  return captured;
}

// Draws are numbered when they are built. In a plan the stream is a parameter, a key as of
// Generator::key(), that each call moves on; draws of the user's own generators move on with it.
Captured with_stream(const Captured& captured, const Tensor& stream, uint64_t stream_seed) {
  const std::vector<NodeRef> roots = captured.roots();
  const auto seed_low = static_cast<uint32_t>(stream_seed),
             seed_high = static_cast<uint32_t>(stream_seed >> 32);
  auto word = [&](int64_t i) { return node_of(squeeze(slice(stream, {{i, i + 1}}), {0})); };
  auto is = [](NodeRef constant, uint32_t value) {
    return constant->scalar() == Scalar::of_int(DType::U32, value);
  };
  int64_t others = 0;
  bool draws = false;
  NodeMap<NodeRef> images;
  for (NodeRef node : topological_order(roots)) {
    OriginScope origin(node->origin);
    std::vector<NodeRef> sources;
    for (NodeRef source : node->sources()) sources.push_back(images[source]);
    if (is_draw(node)) {
      draws = true;
      const std::vector<NodeRef> dims(node->shape->dims().begin(), node->shape->dims().end());
      const bool own = is(sources[2], seed_low) && is(sources[3], seed_high);
      sources[1] = make(Op::Add, {sources[1], broadcast_to(word(2), dims)});
      if (own) {
        sources[2] = broadcast_to(word(0), dims);
        sources[3] = broadcast_to(word(1), dims);
      }
      others += own ? 0 : 1;
    }
    images[node] = with_sources(node, sources);
  }
  if (!draws) return captured;
  Captured counted;
  counted.choices = captured.choices;
  for (size_t i = 0; i < roots.size(); ++i)
    (i < captured.results.size() ? counted.results : counted.updates)
        .push_back(wrap(images[roots[i]]));
  const Tensor last_word = literal_arange(3) == 2;
  counted.updates.push_back(
      stream.assign(stream + cast(last_word, DType::U32) * (captured.draws + others)));
  return counted;
}

// ---- one plan

class CapturedPlan {
 public:
  CapturedPlan(Captured captured, std::vector<Tensor> inputs)
      : device_(device_name()), inputs_(std::move(inputs)), captured_(std::move(captured)) {
    const std::vector<NodeRef> roots = captured_.roots();
    const std::vector<NodeRef> assigns = assignments(roots);
    check_targets(assigns);
    const Contents contents{Bindings{}};
    const CanonicalProgram program(Request{nodes_of(captured_.results), assigns, &contents});
    check_slots(program);
    plan_ = current_evaluator().plan(program);
    for (NodeRef slot : program.slots()) slots_.push_back(wrap(slot));
    for (NodeRef assign : assigns) targets_.push_back(wrap(assign->source(0)));
    for (NodeRef variable : program.variables()) variables_.emplace_back(variable);
    outputs_.resize(captured_.results.size());
  }

  // What it became, as one of the functions of program_text.h has it.
  template <typename Text>
  std::string text(const Text& text_of, std::string_view name) const {
    const DeviceScope scope(device_);
    const std::vector<NodeRef> assigns = assignments(captured_.roots());
    const Contents contents{Bindings{}};
    return text_of(CanonicalProgram(Request{nodes_of(captured_.results), assigns, &contents}),
                   name);
  }

  const Captured& captured() const { return captured_; }
  const std::string& device() const { return device_; }
  const std::vector<Tensor>& inputs() const { return inputs_; }

  std::vector<Tensor> run(const std::vector<std::shared_ptr<Storage>>& inputs,
                          const std::vector<std::pair<NodeRef, int64_t>>& sizes) {
    Graph& graph = current_graph();
    auto size_of = [&](NodeRef variable) {
      for (const auto& [known, size] : sizes)
        if (known == variable) return size;
      fail(fmt::format("variable {} has no value", variable->arg.symbol->text()),
           "name the inputs it is a size of, with their sizes: CompileOptions::inputs");
    };
    std::vector<NodeRef> targets;
    for (const Tensor& target : targets_) targets.push_back(target.node());
    graph.separate(targets);
    std::vector<std::shared_ptr<Storage>> slots;
    for (const Tensor& slot : slots_) slots.push_back(contents_of(slot.node(), inputs));
    std::vector<int64_t> values;
    for (const Dim& variable : variables_) values.push_back(size_of(variable.node()));
    prepare_outputs(size_of);
    std::vector<std::shared_ptr<Storage>> results;
    for (const Tensor& output : outputs_) results.push_back(graph.shared_storage(output.node()));
    plan_->run(slots, values, results);
    if (!targets.empty()) graph.forget_results();
    nodes_then_ = graph.nodes_made();
    return outputs_;
  }

 private:
  void check_slots(const CanonicalProgram& program) {
    for (NodeRef slot : program.slots()) {
      const bool is_input =
          std::ranges::any_of(inputs_, [&](const Tensor& input) { return input.node() == slot; });
      if (!is_input && !current_graph().stored(slot))
        fail(fmt::format("input \"{}\" is no argument of the function", slot->arg.symbol->text()),
             "pass it as an argument, or make it a parameter");
    }
  }

  std::shared_ptr<Storage> contents_of(NodeRef slot,
                                       const std::vector<std::shared_ptr<Storage>>& inputs) const {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].node() == slot) return inputs[i];
    return current_graph().shared_storage(slot);
  }

  // Memory for the results: that of the last call, unless someone holds it still.
  template <typename SizeOf>
  void prepare_outputs(const SizeOf& size_of) {
    Graph& graph = current_graph();
    const bool only_handles = graph.nodes_made() == nodes_then_;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      NodeRef value = node_of(captured_.results[i]);
      std::vector<int64_t> shape;
      for (NodeRef dim : value->shape->dims()) shape.push_back(interpret_index(dim, size_of));
      Tensor& output = outputs_[i];
      const Storage* storage = output.defined() ? graph.stored(output.node()) : nullptr;
      const bool reusable =
          storage && storage->shape == shape && !graph.is_held_elsewhere(output, only_handles);
      if (!reusable) output = new_result(value->dtype, shape);
    }
  }

  std::string device_;
  std::vector<Tensor> inputs_;  // placeholders
  Captured captured_;
  std::unique_ptr<Plan> plan_;
  std::vector<Tensor> slots_, targets_, outputs_;
  std::vector<Dim> variables_;
  uint64_t nodes_then_ = 0;  // made when the last call ended
};

}  // namespace

// ---- the function

struct CompiledFunction::Impl {
  Function function;
  size_t count;
  CompileOptions options;
  uint64_t stream_seed;
  Tensor stream;  // where plans draw random numbers: a key
  std::vector<std::unique_ptr<CapturedPlan>> plans;

  std::string input_name(size_t i) const {
    return i < options.inputs.size() ? options.inputs[i].name : fmt::format("input{}", i);
  }

  void check() const {
    if (!options.inputs.empty() && options.inputs.size() != count)
      fail(fmt::format("{} inputs are named, {} takes {}", options.inputs.size(), options.name,
                       count),
           "name every argument");
    for (size_t i = 0; i < count; ++i)
      for (size_t k = 0; k < i; ++k)
        if (input_name(i) == input_name(k))
          fail(fmt::format("two inputs are called \"{}\"", input_name(i)),
               "give each a name of its own");
  }

  // The sizes of Variables under which the inputs are what the plan was captured for; else a
  // reason.
  using SizesOfVariables = std::vector<std::pair<NodeRef, int64_t>>;
  std::string match(const std::vector<Tensor>& wanted,
                    const std::vector<std::shared_ptr<Storage>>& given,
                    SizesOfVariables& sizes) const {
    auto mismatch = [&](size_t i) {
      NodeRef node = wanted[i].node();
      return fmt::format("input \"{}\" is {}, {} takes {}", input_name(i), shape_text(*given[i]),
                         options.name, type_text(node));
    };
    for (size_t i = 0; i < count; ++i) {
      NodeRef node = wanted[i].node();
      if (node->dtype != given[i]->dtype || node->rank() != given[i]->shape.size())
        return mismatch(i);
      for (size_t axis = 0; axis < node->rank(); ++axis) {
        NodeRef dim = node->dim(axis);
        const bool known =
            std::ranges::any_of(sizes, [&](const auto& entry) { return entry.first == dim; });
        if (dim->op == Op::Variable && !known) sizes.emplace_back(dim, given[i]->shape[axis]);
      }
    }
    for (const auto& [variable, size] : sizes) {
      const Symbol& symbol = *variable->arg.symbol;
      if (size < symbol.first || size > symbol.second)
        return fmt::format("{} is {} here, its bounds are {} and {}", symbol.text(), size,
                           symbol.first, symbol.second);
    }
    auto value = [&](NodeRef variable) {
      for (const auto& [known, size] : sizes)
        if (known == variable) return size;
      fail(fmt::format("nothing says how large {} is", variable->arg.symbol->text()),
           "one input must have it as a size of its own");
    };
    for (size_t i = 0; i < count; ++i)
      for (size_t axis = 0; axis < wanted[i].rank(); ++axis)
        if (interpret_index(wanted[i].node()->dim(axis), value) != given[i]->shape[axis])
          return mismatch(i);
    return "";
  }

  std::vector<Tensor> placeholders(const std::vector<std::shared_ptr<Storage>>& given) const {
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < count; ++i) {
      const NamedInput* spec = i < options.inputs.size() ? &options.inputs[i] : nullptr;
      const Sizes own(given[i]->shape.begin(), given[i]->shape.end());
      inputs.push_back(input(input_name(i), spec && spec->sizes ? *spec->sizes : own,
                             spec && spec->dtype ? *spec->dtype : given[i]->dtype));
    }
    return inputs;
  }

  CapturedPlan& plan_for(const std::vector<std::shared_ptr<Storage>>& given,
                         SizesOfVariables& sizes) {
    const std::string device = device_name();
    for (size_t i = 0; i < plans.size(); ++i) {
      SizesOfVariables found;
      if (plans[i]->device() != device || !unchanged(plans[i]->captured().choices) ||
          !match(plans[i]->inputs(), given, found).empty())
        continue;
      sizes = std::move(found);
      std::rotate(plans.begin(), plans.begin() + static_cast<long>(i),
                  plans.begin() + static_cast<long>(i) + 1);
      return *plans.front();
    }
    if (plans.size() >= options.most_plans) fail_too_many(given);
    const std::vector<Tensor> inputs = placeholders(given);
    if (const std::string problem = match(inputs, given, sizes); !problem.empty())
      fail(problem, "give it what was declared, or declare Variables for sizes that change");
    plans.insert(plans.begin(), make_plan(inputs));
    return *plans.front();
  }

  [[noreturn]] void fail_too_many(const std::vector<std::shared_ptr<Storage>>& given) const {
    // The argument that had most shapes.
    size_t worst = 0, most = 0;
    for (size_t i = 0; i < count; ++i) {
      std::vector<std::string> shapes;
      for (const auto& plan : plans) shapes.push_back(type_text(plan->inputs()[i].node()));
      std::ranges::sort(shapes);
      shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
      if (shapes.size() > most) {
        worst = i;
        most = shapes.size();
      }
    }
    fail(fmt::format("{} has {} plans, and \"{}\" keeps changing: it is {} now", options.name,
                     plans.size(), input_name(worst), shape_text(*given[worst])),
         "declare its size as a Variable in CompileOptions::inputs, or raise most_plans");
  }

  std::unique_ptr<CapturedPlan> make_plan(const std::vector<Tensor>& inputs) {
    const Captured captured = capture(function, inputs, stream_seed);
    if (options.check) {
      const Captured again = capture(function, inputs, stream_seed);
      check_same_program(captured.roots(), again.roots(), !captured.computed && !again.computed);
    }
    return std::make_unique<CapturedPlan>(with_stream(captured, stream, stream_seed), inputs);
  }

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    if (inputs.size() != count)
      fail(fmt::format("{} takes {} inputs, {} were given", options.name, count, inputs.size()),
           "pass one tensor for each argument");
    current_graph().collect_if_worthwhile();
    std::vector<std::shared_ptr<Storage>> given;
    for (const Tensor& input : inputs) {
      node_of(input);
      given.push_back(current_graph().shared_storage(input.realize().node()));
    }
    SizesOfVariables sizes;
    CapturedPlan& plan = plan_for(given, sizes);
    return plan.run(given, sizes);
  }
};

CompiledFunction::CompiledFunction(Function function, size_t inputs, CompileOptions options,
                                   Location where)
    : impl_(std::make_unique<Impl>(
          Impl{std::move(function), inputs, std::move(options), 0, Tensor(), {}})) {
  CallScope call("compile", where);
  impl_->check();
  Generator stream = generator().split();
  impl_->stream_seed = stream.seed();
  impl_->stream = parameter(impl_->options.name + ".random", stream.key());
}
CompiledFunction::~CompiledFunction() = default;
CompiledFunction::CompiledFunction(CompiledFunction&&) noexcept = default;
CompiledFunction& CompiledFunction::operator=(CompiledFunction&&) noexcept = default;

std::vector<Tensor> CompiledFunction::run(const std::vector<Tensor>& inputs, Location where) {
  CallScope call("a compiled function", where);
  return impl_->run(inputs);
}

std::vector<Tensor> CompiledFunction::run(const std::vector<std::pair<std::string, Tensor>>& inputs,
                                          Location where) {
  CallScope call("a compiled function", where);
  std::vector<Tensor> ordered(impl_->count);
  for (const auto& [name, tensor] : inputs) {
    size_t i = 0;
    while (i < impl_->count && impl_->input_name(i) != name) ++i;
    if (i == impl_->count) {
      std::vector<std::string> names;
      for (size_t k = 0; k < impl_->count; ++k) names.push_back(impl_->input_name(k));
      fail(fmt::format("there is no input \"{}\"", name),
           fmt::format("the inputs are {}", fmt::join(names, ", ")));
    }
    if (ordered[i].defined()) fail(fmt::format("input \"{}\" is given twice", name));
    ordered[i] = tensor;
  }
  for (size_t i = 0; i < ordered.size(); ++i)
    if (!ordered[i].defined())
      fail(fmt::format("input \"{}\" is missing", impl_->input_name(i)), "give all of them");
  return impl_->run(ordered);
}

std::vector<Tensor> CompiledFunction::run_operands(const std::vector<const Operand*>& inputs) {
  const Location where = inputs.empty() ? Location::current() : inputs[0]->where();
  CallScope call("a compiled function", where);
  std::vector<Tensor> tensors;
  for (const Operand* operand : inputs) tensors.push_back(wrap(node_of(*operand)));
  return impl_->run(tensors);
}

size_t CompiledFunction::plan_count() const { return impl_->plans.size(); }

std::vector<Tensor> CompiledFunction::program() const {
  std::vector<Tensor> all;
  if (impl_->plans.empty()) return all;
  const Captured& captured = impl_->plans.front()->captured();
  all = captured.results;
  all.insert(all.end(), captured.updates.begin(), captured.updates.end());
  return all;
}

std::string CompiledFunction::kernels() const {
  return impl_->plans.empty() ? "" : impl_->plans.front()->text(kernels_text, impl_->options.name);
}

std::string CompiledFunction::explain() const {
  return impl_->plans.empty() ? "" : impl_->plans.front()->text(passes_text, impl_->options.name);
}

State CompiledFunction::state() const { return {{impl_->stream.name(), impl_->stream}}; }

}  // namespace anneal
