#include "runtime/program/canonical_program.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/call_site.h"
#include "ir/build.h"
#include "ir/index.h"
#include "schedule/graph/conv_rules.h"

namespace anneal {
namespace {

constexpr uint32_t kOpen = UINT32_MAX;        // not numbered yet
constexpr uint32_t kPerUse = UINT32_MAX - 1;  // numbered at each use

bool is_number(NodeRef node) { return node->is_const() && node->dtype != DType::Bool; }

// What rules of the simplifier, the scheduler and the kernels match constants with.
bool is_sought(NodeRef number, NodeRef user, size_t index) {
  const double value = number->scalar().as_double();
  if (!std::isfinite(value)) return true;
  if (!user) return false;
  if (user->op == Op::Where) return value == 0;
  constexpr std::array kExponents{-1.0, 0.0, 0.5, 1.0, 2.0, 3.0};
  return user->op == Op::Pow && index == 1 && std::ranges::count(kExponents, value) > 0;
}

}  // namespace

CanonicalProgram::CanonicalProgram(const Request& request)
    : contents_(*request.contents), values_(request.roots) {
  for (NodeRef assign : request.assigns) {
    const bool late = request.contents->is_bound(assign->source(0));
    (late ? late_assigns_ : assigns_).push_back(assign);
    if (late) values_.push_back(assign->source(1));
    if (!late) stores_[assign] = 1;
  }
  for (NodeRef root : values_) walk(root);
  for (NodeRef root : assigns_) walk(root);
  for (NodeRef root : values_) root_steps_.push_back(use(root));
  for (NodeRef root : assigns_) root_steps_.push_back(use(root));
  words_.push_back(static_cast<uint32_t>(values_.size()));
  words_.insert(words_.end(), root_steps_.begin(), root_steps_.end());
  KeyBuilder builder(words_.size());
  for (size_t i = 0; i + 1 < words_.size(); i += 2)
    builder.add(words_[i] | static_cast<uint64_t>(words_[i + 1]) << 32);
  builder.add(words_.back());
  key_ = builder.finish();
}

Key CanonicalProgram::exact_key() const {
  KeyBuilder builder(numbers_.size());
  builder.add(key_);
  for (const Scalar& number : numbers_) builder.add(number.bits());
  return builder.finish();
}

CanonicalProgram::Kind CanonicalProgram::kind_of(NodeRef node) const {
  if (node->dtype == DType::Index) return Kind::Plain;
  if (node->op == Op::Buffer || contents_.find(node)) return Kind::Slot;
  if (node->op == Op::Threefry && std::ranges::all_of(node->sources().subspan(1), [](NodeRef word) {
        return word->is_const();
      }))
    return Kind::Draw;
  if (kMarks.contains(node->op))  // the target chooses between ways of a convolution later
    return marks_convolution(node) ? Kind::Plain : Kind::PassThrough;
  if (node->op == Op::Assign && !stores_.contains(node)) return Kind::PassThrough;
  return is_number(node) ? Kind::Number : Kind::Plain;
}

std::span<const NodeRef> CanonicalProgram::children(const Step& step) {
  switch (step.kind) {
    case Kind::Slot: return step.node->shape->dims();
    case Kind::PassThrough: return step.node->sources().subspan(step.node->op == Op::Assign, 1);
    case Kind::Draw: return step.node->sources().first(1);
    case Kind::Plain:
    case Kind::Number: return step.node->sources();
  }
  return {};
}

void CanonicalProgram::walk(NodeRef root) {
  struct Frame {
    Step step;
    size_t next = 0;  // child to visit
  };
  std::vector<Frame> stack;
  auto visit = [&](NodeRef node) {
    if (step_of_.insert(node, kOpen).second) stack.push_back({{node, kind_of(node)}});
  };
  visit(root);
  while (!stack.empty()) {
    Frame& top = stack.back();
    std::span<const NodeRef> sources = children(top.step);
    if (top.next < sources.size()) {
      visit(sources[top.next++]);
    } else {
      const Step step = top.step;
      stack.pop_back();
      finish(step);
    }
  }
}

void CanonicalProgram::add_long(uint64_t word) {
  words_.push_back(static_cast<uint32_t>(word));
  words_.push_back(static_cast<uint32_t>(word >> 32));
}

void CanonicalProgram::add_text(std::string_view text) {
  words_.push_back(static_cast<uint32_t>(text.size()));
  for (size_t i = 0; i < text.size(); i += sizeof(uint32_t)) {
    uint32_t word = 0;
    std::memcpy(&word, text.data() + i, std::min(text.size() - i, sizeof(word)));
    words_.push_back(word);
  }
}

uint32_t CanonicalProgram::add_step(Step step, std::span<const uint32_t> sources) {
  const Op op = step.kind == Kind::Slot ? Op::Buffer : step.node->op;
  words_.push_back(static_cast<uint32_t>(op) | static_cast<uint32_t>(step.node->dtype) << 8 |
                   static_cast<uint32_t>(sources.size()) << 16);
  words_.insert(words_.end(), sources.begin(), sources.end());
  step.sources = static_cast<uint32_t>(source_steps_.size());
  step.count = static_cast<uint32_t>(sources.size());
  source_steps_.insert(source_steps_.end(), sources.begin(), sources.end());
  steps_.push_back(step);
  return static_cast<uint32_t>(steps_.size() - 1);
}

uint32_t CanonicalProgram::use(NodeRef node, NodeRef user, size_t index) {
  const uint32_t known = *step_of_.find(node);
  if (known != kPerUse) return known;
  std::vector<uint32_t> dims;
  for (NodeRef dim : node->sources()) dims.push_back(*step_of_.find(dim));
  numbers_.push_back(node->scalar());
  sought_.push_back(anneal::is_sought(node, user, index));
  return add_step({node, Kind::Number}, dims);
}

void CanonicalProgram::finish(Step step) {
  NodeRef node = step.node;
  std::span<const NodeRef> children_of = children(step);
  if (step.kind == Kind::Number) {
    step_of_[node] = kPerUse;
    return;
  }
  if (step.kind == Kind::PassThrough) {
    step_of_[node] = use(children_of[0]);
    return;
  }
  std::vector<uint32_t> sources;
  for (size_t i = 0; i < children_of.size(); ++i) sources.push_back(use(children_of[i], node, i));
  step_of_[node] = add_step(step, sources);
  if (step.kind == Kind::Slot) {
    slots_.push_back(node);  // its number follows from the slots before it
    return;
  }
  if (step.kind == Kind::Draw)  // with one source it is told from the others
    for (NodeRef word : node->sources().subspan(1))
      numbers_of_draws_.push_back(static_cast<uint32_t>(word->arg.bits));
  if (node->op == Op::Variable) variables_.push_back(node);
  add_arg(node);
}

void CanonicalProgram::add_arg(NodeRef node) {
  switch (info(node->op).arg) {
    case ArgKind::None: break;
    case ArgKind::Scalar: add_long(node->arg.bits); break;
    case ArgKind::Axis: add_long(static_cast<uint64_t>(node->arg.axis)); break;
    case ArgKind::Axes:
      words_.push_back(static_cast<uint32_t>(node->axes().size()));
      for (int64_t axis : node->axes()) words_.push_back(static_cast<uint32_t>(axis));
      break;
    case ArgKind::Symbol:
      add_long(static_cast<uint64_t>(node->arg.symbol->first));
      add_long(static_cast<uint64_t>(node->arg.symbol->second));
      add_text(node->arg.symbol->text());
      break;
  }
}

std::vector<std::shared_ptr<Storage>> CanonicalProgram::extra_slots(
    const NumberInputs& inputs) const {
  std::vector<std::shared_ptr<Storage>> slots = inputs.contents(numbers_);
  if (numbers_of_draws_.empty()) return slots;
  const auto count = static_cast<int64_t>(numbers_of_draws_.size());
  slots.insert(slots.begin(),
               std::make_shared<Storage>(DType::U32, std::vector<int64_t>{count},
                                         Bytes(std::as_bytes(std::span(numbers_of_draws_)))));
  return slots;
}

// ---- building it

class CanonicalProgram::Builder {
 public:
  Builder(const CanonicalProgram& program, Graph& graph, const NumberInputs& inputs)
      : program_(program), graph_(graph), inputs_(inputs) {
    auto next = static_cast<int64_t>(program.slots_.size());
    auto buffer = [&](DType dtype, int64_t count) {
      return make_buffer("", next++, dtype, static_dims(std::array{count}));
    };
    if (!program.numbers_of_draws_.empty())
      draws_ = buffer(DType::U32, static_cast<int64_t>(program.numbers_of_draws_.size()));
    for (const NumberInputs::Buffer& each : inputs.buffers())
      buffers_.push_back(buffer(each.dtype, each.count));
  }

  Built build() {
    for (const Step& step : program_.steps_) {
      OriginScope origin(step.node->origin);
      std::vector<NodeRef> sources;
      for (uint32_t i = 0; i < step.count; ++i)
        sources.push_back(images_[program_.source_steps_[step.sources + i]]);
      images_.push_back(image(step, sources));
    }
    Built built;
    for (size_t i = 0; i < program_.root_steps_.size(); ++i)
      (i < program_.values_.size() ? built.values : built.assigns)
          .push_back(images_[program_.root_steps_[i]]);
    for (NodeRef node : program_.variables_)
      built.variables.push_back(images_[*program_.step_of_.find(node)]);
    built.nodes = std::move(images_);
    return built;
  }

 private:
  NodeRef image(const Step& step, std::span<const NodeRef> sources) {
    switch (step.kind) {
      case Kind::Slot: return make_buffer("", slot_++, step.node->dtype, sources);
      case Kind::Draw: return draw(sources[0]);
      case Kind::Number: {
        const NumberInputs::Place place = inputs_.place(number_++);
        if (place.buffer >= 0)
          return read(buffers_[static_cast<size_t>(place.buffer)], place.index, sources);
        break;
      }
      default: break;
    }
    return graph_.make(step.node->op, step.node->dtype, sources,
                       clone_arg(graph_, step.node->op, step.node->arg));
  }

  // One element of a row, everywhere.
  static NodeRef read(NodeRef row, int64_t i, std::span<const NodeRef> dims) {
    const std::vector<NodeRef> ones(dims.size(), index_const(1));
    const std::vector<NodeRef> cut{index_const(i), index_const(i + 1)};
    NodeRef element = make_tail(Op::Reshape, make_tail(Op::Shrink, row, cut), ones);
    return make_tail(Op::Expand, element, dims);
  }

  NodeRef draw(NodeRef element) {
    std::vector<NodeRef> sources{element};
    for (int i = 0; i < 3; ++i) sources.push_back(read(draws_, drawn_++, element->shape->dims()));
    return make(Op::Threefry, sources);
  }

  const CanonicalProgram& program_;
  Graph& graph_;
  const NumberInputs& inputs_;
  NodeRef draws_ = nullptr;
  std::vector<NodeRef> buffers_, images_;  // of number inputs; of steps
  int64_t slot_ = 0, drawn_ = 0;
  size_t number_ = 0;
};

CanonicalProgram::Built CanonicalProgram::build(Graph& graph, const NumberInputs& inputs) const {
  GraphScope scope(graph);
  return Builder(*this, graph, inputs).build();
}

NodeRef CanonicalProgram::image(const Built& built, NodeRef node) const {
  const uint32_t* step = step_of_.find(node);
  return step && *step < built.nodes.size() ? built.nodes[*step] : nullptr;
}

}  // namespace anneal
