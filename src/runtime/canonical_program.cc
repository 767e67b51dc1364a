#include "runtime/canonical_program.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/call_site.h"
#include "ir/build.h"
#include "ir/index.h"

namespace anneal {

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
  words_.push_back(static_cast<uint32_t>(values_.size()));
  for (NodeRef root : values_) words_.push_back(number(root));
  for (NodeRef root : assigns_) words_.push_back(number(root));
  KeyBuilder builder(words_.size());
  for (size_t i = 0; i + 1 < words_.size(); i += 2)
    builder.add(words_[i] | static_cast<uint64_t>(words_[i + 1]) << 32);
  builder.add(words_.back());
  key_ = builder.finish();
}

CanonicalProgram::Kind CanonicalProgram::kind_of(NodeRef node) const {
  if (node->dtype == DType::Index) return Kind::Plain;
  if (node->op == Op::Buffer || contents_.find(node)) return Kind::Slot;
  if (node->op == Op::Threefry && std::ranges::all_of(node->sources().subspan(1), [](NodeRef word) {
        return word->is_const();
      }))
    return Kind::Draw;
  if (kMarks.contains(node->op)) return Kind::PassThrough;
  if (node->op == Op::Assign && !stores_.contains(node)) return Kind::PassThrough;
  return Kind::Plain;
}

std::span<const NodeRef> CanonicalProgram::children(const Step& step) {
  switch (step.kind) {
    case Kind::Slot: return step.node->shape->dims();
    case Kind::PassThrough: return step.node->sources().subspan(step.node->op == Op::Assign, 1);
    case Kind::Draw: return step.node->sources().first(1);
    case Kind::Plain: return step.node->sources();
  }
  return {};
}

void CanonicalProgram::walk(NodeRef root) {
  struct Frame {
    Step step;
    size_t next = 0;  // child to visit
  };
  constexpr uint32_t kOpen = UINT32_MAX;
  std::vector<Frame> stack;
  auto visit = [&](NodeRef node) {
    if (numbers_.insert(node, kOpen).second) stack.push_back({{node, kind_of(node)}});
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

void CanonicalProgram::finish(const Step& step) {
  NodeRef node = step.node;
  std::span<const NodeRef> sources = children(step);
  if (step.kind == Kind::PassThrough) {
    numbers_[node] = number(sources[0]);
    return;
  }
  numbers_[node] = static_cast<uint32_t>(steps_.size());
  steps_.push_back(step);
  const Op op = step.kind == Kind::Slot ? Op::Buffer : node->op;
  words_.push_back(static_cast<uint32_t>(op) | static_cast<uint32_t>(node->dtype) << 8 |
                   static_cast<uint32_t>(sources.size()) << 16);
  for (NodeRef source : sources) words_.push_back(number(source));
  if (step.kind == Kind::Slot) {
    slots_.push_back(node);
    return;  // its number follows from the slots before it
  }
  if (step.kind == Kind::Draw)  // with one source it is told from the others
    for (NodeRef word : node->sources().subspan(1))
      numbers_of_draws_.push_back(static_cast<uint32_t>(word->arg.bits));
  if (op == Op::Variable) variables_.push_back(node);
  switch (info(op).arg) {
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

NodeRef CanonicalProgram::build_draw(NodeRef element, NodeRef numbers, int64_t first) {
  std::vector<NodeRef> sources{element};
  const std::vector<NodeRef> ones(element->rank(), index_const(1));
  for (int64_t i = first; i < first + 3; ++i) {
    const std::vector<NodeRef> cut{index_const(i), index_const(i + 1)};
    NodeRef word = make_tail(Op::Reshape, make_tail(Op::Shrink, numbers, cut), ones);
    sources.push_back(make_tail(Op::Expand, word, element->shape->dims()));
  }
  return make(Op::Threefry, sources);
}

CanonicalProgram::Built CanonicalProgram::build(Graph& graph) const {
  GraphScope scope(graph);
  std::vector<NodeRef> images, sources;
  int64_t slot = 0, drawn = 0;
  NodeRef numbers = nullptr;
  if (!numbers_of_draws_.empty())
    numbers = make_buffer("", static_cast<int64_t>(slots_.size()), DType::U32,
                          static_dims(std::array{static_cast<int64_t>(numbers_of_draws_.size())}));
  for (const Step& step : steps_) {
    OriginScope origin(step.node->origin);
    sources.clear();
    for (NodeRef source : children(step)) sources.push_back(images[number(source)]);
    if (step.kind == Kind::Draw) {
      images.push_back(build_draw(sources[0], numbers, drawn));
      drawn += 3;
      continue;
    }
    images.push_back(step.kind == Kind::Slot
                         ? make_buffer("", slot++, step.node->dtype, sources)
                         : graph.make(step.node->op, step.node->dtype, sources,
                                      clone_arg(graph, step.node->op, step.node->arg)));
  }
  Built built;
  auto image = [&](NodeRef node) { return images[number(node)]; };
  for (NodeRef node : values_) built.values.push_back(image(node));
  for (NodeRef node : assigns_) built.assigns.push_back(image(node));
  for (NodeRef node : variables_) built.variables.push_back(image(node));
  return built;
}

}  // namespace anneal
