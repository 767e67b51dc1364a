// Shows a program's graph. Must not format nodes itself: every line is the IR printer's, and what
// is added are comments, so that the output can be parsed again as it is.
#include "cli/inspect/graph.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/call_site.h"
#include "base/debug.h"
#include "cli/chosen_device.h"
#include "cli/inspect/programs.h"
#include "cli/json.h"
#include "cli/output.h"
#include "ir/print.h"
#include "runtime/inspect/kernel_listing.h"
#include "transform/phase.h"

namespace anneal::cli {
namespace {

constexpr std::array kPhases{Phase::Forward, Phase::Backward, Phase::Update};

Colour colour_of(Phase phase) {
  constexpr std::array kColours{Colour::Teal, Colour::Ember, Colour::Gold};
  return kColours[static_cast<size_t>(phase)];
}

struct Line {
  NodeRef node;
  std::string text;
  Phase phase;
};

struct Listing {
  std::vector<Line> lines;
  std::string result;  // the `return` line
  std::array<size_t, kPhases.size()> phase_counts{};
  std::array<size_t, kOpCount> op_counts{};
  Key key;  // of the program as it is compiled
};

Listing list(const models::Program& program, bool forward_only) {
  const std::vector<NodeRef> roots =
      forward_only ? std::vector{program.loss.node()} : step_roots(program);
  const NodeRef loss = program.loss.node();
  const NodeMap<Phase> phase_of =
      phases({&loss, 1}, nodes_of(program.gradients), nodes_of(program.updates));

  Listing listing;
  listing.key = canonical_program(program, forward_only).exact_key();
  for (auto& [node, text] : print_lines(roots)) {
    if (!node) {
      listing.result = std::move(text);
    } else {
      listing.lines.push_back({node, std::move(text), Phase::Forward});
    }
  }
  // A size that occurs only in a type is no source of anything: it goes with the node after it.
  Phase next = Phase::Forward;
  for (auto line = listing.lines.rbegin(); line != listing.lines.rend(); ++line) {
    const Phase* known = phase_of.find(line->node);
    line->phase = next = known ? *known : next;
    ++listing.phase_counts[static_cast<size_t>(line->phase)];
    ++listing.op_counts[static_cast<size_t>(line->node->op)];
  }
  return listing;
}

// Ops by how often they occur.
std::vector<std::pair<Op, size_t>> ranked_ops(const Listing& listing) {
  std::vector<std::pair<Op, size_t>> ops;
  for (size_t i = 0; i < listing.op_counts.size(); ++i)
    if (listing.op_counts[i] > 0) ops.emplace_back(static_cast<Op>(i), listing.op_counts[i]);
  std::ranges::sort(ops, {}, [](const auto& row) { return std::pair(~row.second, row.first); });
  return ops;
}

// ---- text

std::string header(const models::ProgramRow& row, const GraphOptions& options,
                   const Listing& listing) {
  std::vector<std::string> by_phase, by_op;
  for (Phase phase : kPhases)
    if (size_t count = listing.phase_counts[static_cast<size_t>(phase)]; count > 0)
      by_phase.push_back(paint(colour_of(phase), fmt::format("{} {}", count, name(phase))));
  for (const auto& [op, count] : ranked_ops(listing))
    by_op.push_back(fmt::format("{} {}", count, name(op)));

  std::string text = fmt::format("// {}: {}\n", paint(Colour::Bold, row.name), row.description);
  text += fmt::format("// {}: {} nodes: {}\n", options.forward ? "forward" : "step",
                      listing.lines.size(), fmt::join(by_phase, ", "));
  text += fmt::format("// program {}\n", to_text(listing.key));
  constexpr size_t kOpsInLine = 9;
  for (size_t i = 0; i < by_op.size(); i += kOpsInLine) {
    const size_t end = std::min(by_op.size(), i + kOpsInLine);
    text += fmt::format("// {} {}\n", i == 0 ? "ops:" : "    ",
                        fmt::join(by_op.begin() + static_cast<ptrdiff_t>(i),
                                  by_op.begin() + static_cast<ptrdiff_t>(end), ", "));
  }
  return text + "\n";
}

std::string origin_text(NodeRef node) {
  return node->origin ? "  " + to_text(*node->origin) : std::string();
}

void write_text(const models::ProgramRow& row, const GraphOptions& options,
                const Listing& listing) {
  write(header(row, options, listing));
  constexpr int kTextWidth = 64;
  for (const Line& line : listing.lines)
    write(fmt::format("{}{}\n",
                      paint(colour_of(line.phase), fmt::format("{:<{}} // {:<8}", line.text,
                                                               kTextWidth, name(line.phase))),
                      paint(Colour::Dim, origin_text(line.node))));
  write(listing.result + "\n");
}

// ---- JSON

// How other lines name the node that a line defines: "%12", or a variable's name.
std::string_view defined_name(std::string_view line) {
  if (!line.starts_with('%')) line.remove_prefix(std::string_view("variable ").size());
  return line.substr(0, line.find(' '));
}

Json size_json(NodeRef size) { return is_static(size) ? Json(static_value(size)) : to_text(size); }

Json arg_json(NodeRef node) {
  switch (info(node->op).arg) {
    case ArgKind::None: return {};
    case ArgKind::Scalar: return to_text(node->scalar());
    case ArgKind::Axis: return node->arg.axis;
    case ArgKind::Symbol: return node->arg.symbol->text();
    case ArgKind::Axes: {
      Json axes = Json::array();
      for (int64_t axis : node->axes()) axes.add(axis);
      return axes;
    }
  }
  return {};
}

Json origin_json(const Origin* origin) {
  if (!origin) return {};
  return Json::object()
      .set("operation", origin->operation)
      .set("file", origin->file)
      .set("line", origin->line)
      .set("layer", origin->layer);
}

Json counts_json(const Listing& listing) {
  Json by_phase = Json::object(), by_op = Json::object();
  for (Phase phase : kPhases)
    by_phase.set(name(phase), listing.phase_counts[static_cast<size_t>(phase)]);
  for (const auto& [op, count] : ranked_ops(listing)) by_op.set(name(op), count);
  return Json::object()
      .set("nodes", listing.lines.size())
      .set("phases", by_phase)
      .set("ops", by_op);
}

// Ids and sources are operands of the text; an index constant stands for itself.
void write_json(const models::ProgramRow& row, const GraphOptions& options,
                const Listing& listing) {
  NodeMap<std::string_view> names(listing.lines.size());
  Json nodes = Json::array();
  for (const Line& line : listing.lines) {
    NodeRef node = line.node;
    names[node] = defined_name(line.text);
    Json sources = Json::array(), shape = Json::array();
    for (NodeRef source : node->sources()) {
      const std::string_view* known = names.find(source);
      sources.add(known ? Json(*known) : Json(to_text(source)));
    }
    for (NodeRef size : node->shape->dims()) shape.add(size_json(size));
    nodes.add(Json::object()
                  .set("id", names[node])
                  .set("op", name(node->op))
                  .set("dtype", name(node->dtype))
                  .set("shape", shape)
                  .set("sources", sources)
                  .set("arg", arg_json(node))
                  .set("phase", name(line.phase))
                  .set("origin", origin_json(node->origin))
                  .set("text", line.text));
  }
  write(Json::object()
            .set("program", row.name)
            .set("description", row.description)
            .set("scope", options.forward ? "forward" : "step")
            .set("key", to_text(listing.key))
            .set("nodes", nodes)
            .set("counts", counts_json(listing))
            .text() +
        "\n");
}

}  // namespace

void graph(const GraphOptions& options) {
  const models::ProgramRow& row = program_named(options.program);
  const models::Program program = build(row);
  const Listing listing = list(program, options.forward);
  if (debugs(Debug::Plans)) {  // which speaks of compiling
    const ChosenDevice device("");
    list_kernels(program, options.forward, device.capabilities(), device.name());
  }
  options.json ? write_json(row, options, listing) : write_text(row, options, listing);
}

}  // namespace anneal::cli
