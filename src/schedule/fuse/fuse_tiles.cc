#include "schedule/fuse/fuse_tiles.h"

#include <algorithm>
#include <map>
#include <optional>

#include "body/match_axes.h"
#include "body/substitute.h"
#include "ir/build.h"
#include "ir/index.h"
#include "ir/node_map.h"
#include "schedule/cost.h"
#include "symbolic/index_map.h"
#include "symbolic/simplify.h"

namespace anneal {
namespace {

class TileGrouper {
 public:
  TileGrouper(Rangified& program, Dataflow& flow, std::span<const AssignedBuffer> in_place,
              const ScheduleOptions& options)
      : program_(program),
        flow_(flow),
        in_place_(in_place),
        eagerness_(options.threshold_scale),
        large_elements_(static_cast<double>(options.capabilities.large_elements)),
        large_(program.buffers.size(), 0),
        expands_(program.buffers.size(), 0) {}

  void run() {
    const std::vector<int> order = flow_.order();
    for (int number : order) mark_large(number);
    // What is read by a fragment that finds no group is stored after all, and with it what is made
    // of it: then others may find none either.
    for (bool placed = false; !placed;) {
      settle();
      if (std::ranges::count(large_, 1) == 0) return;
      groups_.clear();
      placed = true;
      for (int number : order)
        if (reads_large(number) && !writes_large(number) && !place_sink(number)) {
          for (int read : fragment(number).reads) unmark(read);
          placed = false;
        }
      if (placed) placed = !store_what_costs_less();
    }
    for (Group& group : groups_) build(group);
    for (int number : order)
      if (writes_large(number)) fragment(number) = Fragment{};
    flow_ = Dataflow(program_);
  }

 private:
  // A fragment's copy within a group.
  struct Member {
    int fragment;
    Renaming tile;  // its axes that are the group's
  };
  struct Group {
    std::vector<Axis> tile_axes;
    std::vector<Member> members;  // producers first
    std::vector<int> sinks;
  };

  Fragment& fragment(int number) { return program_.fragments[static_cast<size_t>(number)]; }
  const ScheduleBuffer& buffer(int number) const {
    return program_.buffers[static_cast<size_t>(number)];
  }
  bool is_large(int number) const {  // tiles, which are made later, are not
    return static_cast<size_t>(number) < large_.size() && large_[static_cast<size_t>(number)];
  }

  static bool is_simple(const Fragment& f) {
    return f.phases.size() == 1 && f.phases[0].size() == 1 && f.phases[0][0]->op == Op::Store &&
           f.phases[0][0]->arg.axis == static_cast<int64_t>(store_axes(f.phases[0][0]).size());
  }
  bool reads_large(int number) {
    return std::ranges::any_of(fragment(number).reads, [&](int b) { return is_large(b); });
  }
  bool writes_large(int number) {
    return std::ranges::any_of(fragment(number).writes, [&](int b) { return is_large(b); });
  }

  // ---- which values are large

  void mark_large(int number) {
    const Fragment& f = fragment(number);
    if (f.phases.empty() || !is_simple(f)) return;
    const int written = f.writes[0];
    if (!buffer(written).is_temporary() || buffer(written).wanted || is_assigned(written)) return;
    const double elements = size_estimate(buffer(written).elements);
    if (elements * eagerness_ < large_elements_) return;
    double inputs = 0, steps = 1;
    bool from_large = false;
    for (int read : f.reads)
      from_large =
          from_large || (is_large(read) && size_estimate(buffer(read).elements) == elements);
    for (NodeRef node : topological_order(f.phases[0]))
      if (node->op == Op::Load) inputs += elements_read(f, node);
    for (const Axis& axis : f.axes)
      if (std::ranges::count(store_axes(f.phases[0][0]), axis.variable) == 0)
        steps *= size_estimate(axis.size);
    const bool expands = f.is_product && is_expansion(elements, inputs) && steps <= kMostSteps;
    if (expands || from_large) large_[static_cast<size_t>(written)] = 1;
    if (expands) expands_[static_cast<size_t>(written)] = 1;
  }

  // By all steps together: the part of its buffer that a load walks over.
  double elements_read(const Fragment& f, NodeRef load) const {
    double elements = 1;
    for (NodeRef node : topological_order({&load->sources()[1], 1}))
      for (const Axis& axis : f.axes)
        if (axis.variable == node) elements *= size_estimate(axis.size);
    return std::min(elements, size_estimate(buffer(schedule_buffer_of(load->source(0))).elements));
  }

  void unmark(int number) {
    if (is_large(number)) large_[static_cast<size_t>(number)] = 0;
  }

  // Large values stay so while every reader makes another one of them, or much less of it; and
  // while they are products that expand, or made of one.
  void settle() {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < large_.size(); ++i) {
        const int number = static_cast<int>(i);
        if (!is_large(number) || stays_large(number)) continue;
        unmark(number);
        changed = true;
      }
    }
  }

  bool stays_large(int number) {
    const double elements = size_estimate(buffer(number).elements);
    for (int reader : flow_.readers(number)) {
      // An operand of such a product is used many times: it is stored.
      if (expands_[static_cast<size_t>(fragment(reader).writes[0])]) return false;
      if (writes_large(reader)) continue;
      if (!is_simple(fragment(reader))) return false;
      const ScheduleBuffer& made = buffer(fragment(reader).writes[0]);
      if (size_estimate(made.elements) * kReduction > elements) return false;
    }
    if (expands_[static_cast<size_t>(number)]) return true;
    return std::ranges::any_of(fragment(flow_.writer(number)).reads, [&](int read) {
      return is_large(read) && size_estimate(buffer(read).elements) == elements;
    });
  }

  bool is_assigned(int number) const {
    return std::ranges::count(program_.assigned, number, &AssignedBuffer::value) > 0;
  }

  // ---- groups

  // In a group that works on the same rows, or in one of its own.
  bool place_sink(int sink) {
    for (Group& group : groups_) {
      Group grown = group;
      if (add_sink(grown, sink) && !waits_for_itself(grown)) {
        group = std::move(grown);
        return true;
      }
    }
    Group fresh;
    std::optional<std::vector<Axis>> axes = tile_axes_of(sink);
    if (!axes) return false;
    fresh.tile_axes = *axes;
    if (!add_sink(fresh, sink) || waits_for_itself(fresh)) return false;
    groups_.push_back(std::move(fresh));
    return true;
  }

  // The axes of a sink that say which part of each large value it reads.
  std::optional<std::vector<Axis>> tile_axes_of(int sink) {
    const Fragment& f = fragment(sink);
    std::span<const NodeRef> space = store_axes(f.phases[0][0]);
    std::optional<std::vector<NodeRef>> common;
    for (NodeRef load : large_loads(f)) {
      std::optional<Renaming> match = match_of(load, f);
      if (!match) return {};
      std::vector<NodeRef> axes;
      for (const auto& [axis, mine] : *match)
        if (std::ranges::count(space, mine)) axes.push_back(mine);
      if (common && *common != axes) return {};
      common = axes;
    }
    if (!common || common->empty()) return {};
    std::vector<Axis> result;
    for (NodeRef axis : *common)
      result.push_back(*std::ranges::find(f.axes, axis, &Axis::variable));
    // They come before the others, so that each tile is a run of rows.
    return result;
  }

  std::vector<NodeRef> large_loads(const Fragment& f) {
    std::vector<NodeRef> loads;
    for (NodeRef node : topological_order(f.phases[0]))
      if (node->op == Op::Load && is_large(schedule_buffer_of(node->source(0))))
        loads.push_back(node);
    return loads;
  }

  // Which of the reader's axes each axis of the writer is.
  std::optional<Renaming> match_of(NodeRef load, const Fragment& reader) {
    if (!is_always(load->source(2))) return {};
    const int writer = flow_.writer(schedule_buffer_of(load->source(0)));
    if (writer < 0) return {};
    const Fragment& f = fragment(writer);
    return match_axes(f.axes, f.phases[0][0], reader.axes, load->source(1));
  }

  bool add_sink(Group& group, int sink) {
    std::optional<std::vector<Axis>> axes = tile_axes_of(sink);
    if (!axes || axes->size() != group.tile_axes.size()) return false;
    Renaming tile;
    for (size_t i = 0; i < axes->size(); ++i) {
      if ((*axes)[i].size != group.tile_axes[i].size) return false;
      tile.emplace_back((*axes)[i].variable, group.tile_axes[i].variable);
    }
    const size_t before = group.members.size();
    if (!add_member(group, sink, tile)) return false;
    if (before > 0 && !uses_members(group, before)) return false;  // nothing in common
    group.sinks.push_back(sink);
    return true;
  }

  // Whether members after the first `before` read what those make.
  bool uses_members(const Group& group, size_t before) {
    for (size_t i = before; i < group.members.size(); ++i)
      for (size_t k = 0; k < before; ++k)
        if (std::ranges::count(fragment(group.members[i].fragment).reads,
                               fragment(group.members[k].fragment).writes[0]))
          return true;
    return false;
  }

  bool add_member(Group& group, int number, const Renaming& tile) {
    for (const Member& member : group.members)
      if (member.fragment == number) return member.tile == tile;
    const Fragment& f = fragment(number);
    for (NodeRef load : large_loads(f)) {
      std::optional<Renaming> match = match_of(load, f);
      if (!match) return false;
      Renaming inner;
      for (const auto& [mine, of_group] : tile)
        for (const auto& [axis, name] : *match)
          if (name == mine) inner.emplace_back(axis, of_group);
      if (inner.size() != tile.size()) return false;
      if (!add_member(group, flow_.writer(schedule_buffer_of(load->source(0))), inner))
        return false;
    }
    group.members.push_back({number, tile});
    return true;
  }

  // Whether something a member reads from outside could only be made after the group.
  bool waits_for_itself(const Group& group) {
    // What is replaced in place is read before that, so not by a group that does it or comes later.
    for (const AssignedBuffer& assigned : in_place_) {
      const bool read = std::ranges::any_of(group.members, [&](const Member& m) {
        return std::ranges::count(fragment(m.fragment).reads, assigned.target) > 0;
      });
      const int writer = flow_.writer(assigned.value);
      if (!read || writer < 0) continue;
      for (const Member& m : group.members)
        if (m.fragment == writer || flow_.masked_ranges(writer, m.fragment)) return true;
    }
    std::vector<char> member(program_.fragments.size(), 0);
    for (const Member& m : group.members) member[static_cast<size_t>(m.fragment)] = 1;
    for (const Member& m : group.members)
      for (int before : flow_.before(m.fragment)) {
        if (member[static_cast<size_t>(before)] || writes_large(before)) continue;
        for (int sink : group.sinks)
          if (sink != before && flow_.masked_ranges(sink, before)) return true;
      }
    // What is made by a member is read at the tile's own rows, or the group would read other tiles.
    for (const Member& m : group.members)
      for (NodeRef node : topological_order(fragment(m.fragment).phases[0]))
        if (node->op == Op::Load && !reads_own_rows(group, m, node)) return true;
    return false;
  }

  bool reads_own_rows(const Group& group, const Member& reader, NodeRef load) {
    const int number = schedule_buffer_of(load->source(0));
    if (is_large(number)) return true;
    for (const Member& m : group.members) {
      const Fragment& writer = fragment(m.fragment);
      if (writer.writes[0] != number) continue;
      std::optional<Renaming> match = match_axes(writer.axes, writer.phases[0][0],
                                                 fragment(reader.fragment).axes, load->source(1));
      if (!match || match->size() != m.tile.size()) return false;
      for (const auto& [axis, mine] : *match) {
        auto theirs = std::ranges::find(m.tile, axis, &Renaming::value_type::first);
        auto ours = std::ranges::find(reader.tile, mine, &Renaming::value_type::first);
        if (theirs == m.tile.end() || ours == reader.tile.end() || theirs->second != ours->second)
          return false;
      }
    }
    return true;
  }

  // ---- whether it pays

  double flops(int number) {
    const Fragment& f = fragment(number);
    if (!f.is_product) return 0;
    double steps = 2;
    for (const Axis& axis : f.axes) steps *= size_estimate(axis.size);
    return steps;
  }

  // Stores the large values of groups that would take longer than storing them; whether there were
  // any. Groups that work on the same ones are judged together.
  bool store_what_costs_less() {
    std::vector<char> judged(groups_.size(), 0);
    bool any = false;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (judged[i]) continue;
      std::vector<size_t> together{i};
      judged[i] = 1;
      for (size_t k = 0; k < together.size(); ++k)
        for (size_t other = 0; other < groups_.size(); ++other)
          if (!judged[other] && share_a_large_value(groups_[together[k]], groups_[other])) {
            together.push_back(other);
            judged[other] = 1;
          }
      any = store_if_cheaper(together) || any;
    }
    return any;
  }

  std::vector<int> large_values(const Group& group) {
    std::vector<int> values;
    for (const Member& member : group.members)
      if (writes_large(member.fragment)) values.push_back(fragment(member.fragment).writes[0]);
    return values;
  }

  bool share_a_large_value(const Group& a, const Group& b) {
    const std::vector<int> values = large_values(b);
    return std::ranges::any_of(large_values(a),
                               [&](int value) { return std::ranges::count(values, value) > 0; });
  }

  bool store_if_cheaper(const std::vector<size_t>& together) {
    std::map<int, int> uses;  // of each fragment, in these groups
    for (size_t group : together)
      for (const Member& member : groups_[group].members) ++uses[member.fragment];
    double more = 0, bytes = 0;
    for (const auto& [number, count] : uses) {
      more += flops(number) * (count - 1 + count * kSlowdown);
      if (!writes_large(number)) continue;
      const ScheduleBuffer& value = buffer(fragment(number).writes[0]);
      const auto accesses =
          static_cast<double>(1 + flow_.readers(fragment(number).writes[0]).size());
      bytes +=
          size_estimate(value.elements) * static_cast<double>(byte_size(value.dtype)) * accesses;
    }
    if (more <= kFlopsPerByte * bytes * eagerness_) return false;
    for (const auto& [number, count] : uses)
      if (writes_large(number)) unmark(fragment(number).writes[0]);
    return true;
  }

  // ---- one fragment of a group

  void build(const Group& group) {
    Fragment result;
    result.phases = {{}};
    for (const Axis& axis : group.tile_axes) {
      result.axes.push_back(axis);
      result.tile_axes.push_back(axis.variable);
    }
    std::map<int, int> local;  // of each large buffer
    for (const Member& member : group.members) add_stage(group, member, local, result);
    for (const auto& [old, number] : local) result.tiles.push_back(number);
    result.refresh();
    for (int sink : group.sinks) fragment(sink) = Fragment{};
    fragment(group.sinks.back()) = std::move(result);
  }

  void add_stage(const Group& group, const Member& member, std::map<int, int>& local,
                 Fragment& result) {
    const Fragment& f = fragment(member.fragment);
    NodeMap<NodeRef> fresh;  // its own axes get new names: another group has a copy too
    std::vector<NodeRef> rest;
    for (const Axis& axis : f.axes) {
      auto tiled = std::ranges::find(member.tile, axis.variable, &Renaming::value_type::first);
      if (tiled != member.tile.end()) {
        fresh[axis.variable] = tiled->second;
        continue;
      }
      const Symbol* symbol = axis.variable->arg.symbol;
      NodeRef name =
          make_variable("tile" + std::to_string(names_++), symbol->first, symbol->second);
      fresh[axis.variable] = name;
      result.axes.push_back({name, axis.size});
    }
    NodeMap<NodeRef> loads;
    for (NodeRef load : large_loads(f)) loads[load] = local_load(load, f, member, local);
    NodeRef store = f.phases[0][0];
    std::vector<NodeRef> parts{substitute({&store, 1}, loads)[0]};
    parts = substitute(parts, fresh);
    result.phases[0].push_back(tile_store(group, member, parts[0], local));
    result.nodes.insert(result.nodes.end(), f.nodes.begin(), f.nodes.end());
  }

  // The position in a tile: of the axes that are not the group's.
  NodeRef rest_position(const Fragment& writer, const Member& of_writer, const Renaming& names) {
    std::vector<NodeRef> coordinates, sizes;
    for (NodeRef axis : store_axes(writer.phases[0][0])) {
      if (std::ranges::count(of_writer.tile, axis, &Renaming::value_type::first)) continue;
      coordinates.push_back(std::ranges::find(names, axis, &Renaming::value_type::first)->second);
      sizes.push_back(std::ranges::find(writer.axes, axis, &Axis::variable)->size);
    }
    return simplify(flatten_index(coordinates, sizes));
  }

  NodeRef local_node(int number, const Fragment& writer, const Member& of_writer,
                     std::map<int, int>& local) {
    auto [entry, is_new] = local.insert({number, 0});
    if (is_new) {
      NodeRef elements = index_const(1);
      for (NodeRef axis : store_axes(writer.phases[0][0]))
        if (std::ranges::count(of_writer.tile, axis, &Renaming::value_type::first) == 0)
          elements =
              index_mul(elements, std::ranges::find(writer.axes, axis, &Axis::variable)->size);
      ScheduleBuffer tile{.dtype = buffer(number).dtype, .elements = simplify(elements)};
      tile.tile = true;
      program_.buffers.push_back(tile);
      entry->second = static_cast<int>(program_.buffers.size()) - 1;
    }
    return schedule_buffer_node(entry->second, buffer(entry->second));
  }

  NodeRef local_load(NodeRef load, const Fragment& f, const Member& member,
                     std::map<int, int>& local) {
    const int number = schedule_buffer_of(load->source(0));
    const Fragment& writer = fragment(flow_.writer(number));
    const Renaming names = *match_of(load, f);
    Member of_writer{flow_.writer(number), {}};
    for (const auto& [axis, mine] : names)
      for (const auto& [tiled, of_group] : member.tile)
        if (mine == tiled) of_writer.tile.emplace_back(axis, of_group);
    return make(Op::Load, {local_node(number, writer, of_writer, local),
                           rest_position(writer, of_writer, names), load->source(2)});
  }

  NodeRef tile_store(const Group& group, const Member& member, NodeRef store,
                     std::map<int, int>& local) {
    std::vector<NodeRef> sources(store->sources().begin(), store->sources().begin() + 4);
    const int number = schedule_buffer_of(sources[0]);
    if (is_large(number)) {
      const Fragment& writer = fragment(member.fragment);
      Renaming names;  // the writer's axes as they are called in the new store
      std::span<const NodeRef> old = store_axes(writer.phases[0][0]), now = store_axes(store);
      for (size_t i = 0; i < old.size(); ++i) names.emplace_back(old[i], now[i]);
      sources[0] = local_node(number, writer, member, local);
      sources[1] = rest_position(writer, member, names);
    }
    for (const Axis& axis : group.tile_axes) sources.push_back(axis.variable);
    for (NodeRef axis : store_axes(store))
      if (std::ranges::count(group.tile_axes, axis, &Axis::variable) == 0) sources.push_back(axis);
    return make(Op::Store, sources, Arg(static_cast<int64_t>(sources.size() - 4)));
  }

  Rangified& program_;
  Dataflow& flow_;
  std::span<const AssignedBuffer> in_place_;
  double eagerness_;
  double large_elements_;
  std::vector<char> large_, expands_;
  std::vector<Group> groups_;
  int names_ = 0;
};

}  // namespace

void fuse_tiles(Rangified& program, Dataflow& flow, std::span<const AssignedBuffer> in_place,
                const ScheduleOptions& options) {
  TileGrouper(program, flow, in_place, options).run();
}

}  // namespace anneal
