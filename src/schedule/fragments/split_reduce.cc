#include "schedule/fragments/split_reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "body/match_axes.h"
#include "body/substitute.h"
#include "ir/build.h"
#include "ir/index.h"
#include "ir/node_map.h"
#include "rewrite/local_rules.h"
#include "schedule/cost.h"
#include "symbolic/bounds.h"
#include "symbolic/simplify.h"
#include "target/workgroup_tiles.h"

namespace anneal {
namespace {

NodeRef identity_of(Op op, DType dtype) {
  switch (op) {
    case Op::SumOver:
      return is_float(dtype) ? make_const(Scalar::of(dtype, -0.0))
                             : make_const(Scalar::of_int(dtype, 0));
    case Op::ProdOver: return make_const(Scalar::of_int(dtype, 1));
    case Op::MaxOver: return make_const(lowest(dtype));
    default: return make_const(highest(dtype));
  }
}

// A format without infinities has another unit for extremes than f32.
NodeRef within_range(NodeRef total, DType dtype) {
  if (total->op == Op::MaxOver)
    return make(Op::Max, {total, make_const(DType::F32, lowest(dtype).as_double())});
  if (total->op == Op::MinOver)
    return make(Op::Min, {total, make_const(DType::F32, highest(dtype).as_double())});
  return total;
}

// Reductions that are inside no other, in the order they are met.
std::vector<NodeRef> outermost_reductions(std::span<const NodeRef> stores) {
  std::vector<NodeRef> found, stack(stores.rbegin(), stores.rend());
  NodeMap<char> seen;
  while (!stack.empty()) {
    NodeRef node = stack.back();
    stack.pop_back();
    if (!seen.insert(node, 1).second) continue;
    if (is_reduce_over(node->op)) {
      found.push_back(node);
      continue;
    }
    for (size_t i = node->source_count; i-- > 0;) stack.push_back(node->source(i));
  }
  return found;
}

// `Context`: where a piece ends before the reduction's block does, nothing is read beyond.
const LocalRules<const NodeRef> kRules{"split-reduce",
                                       {{"guard-load", any_of({Op::Load}),
                                         [](NodeRef, NodeRef image, const NodeRef& within) {
                                           return make(Op::Load,
                                                       {image->source(0), image->source(1),
                                                        make(Op::And, {image->source(2), within})});
                                         }}},
                                       true};

class Splitter {
 public:
  Splitter(Rangified& program, Fragment& fragment, std::span<const int> memory,
           const ScheduleOptions& options)
      : program_(program),
        fragment_(fragment),
        memory_(memory),
        eagerness_(options.threshold_scale),
        most_buffers_(static_cast<size_t>(options.capabilities.max_buffers)),
        tuning_(options.capabilities.schedule),
        parallel_(static_cast<double>(options.capabilities.parallel_threads)),
        // Terms that a group copies at least.
        block_(options.capabilities.matrix_element_bytes > 0 ? kMatrixKTiles[0] : kShortKTile),
        many_workgroups_(options.capabilities.matrix_element_bytes > 0
                             ? tuning_.many_workgroups_of_matrices
                             : tuning_.many_workgroups) {}

  void run() {
    if (fragment_.phases.size() != 1 || !fragment_.tiles.empty()) return;
    const std::vector<NodeRef>& stores = fragment_.phases[0];
    for (NodeRef store : stores) {
      if (store->op != Op::Store) return;
      if (store->arg.axis != static_cast<int64_t>(store_axes(store).size())) return;
    }
    const std::vector<NodeRef> all = outermost_reductions(stores);
    reductions_ = all;
    if (std::ranges::all_of(stores, [&](NodeRef store) {
          return std::ranges::equal(store_axes(store), store_axes(stores[0]));
        }))
      space_.assign(store_axes(stores[0]).begin(), store_axes(stores[0]).end());
    else if (fragment_.is_product)
      return;
    else
      std::erase_if(reductions_, [&](NodeRef each) { return depends_on_axes(each, stores); });
    if (reductions_.empty()) return;
    double results = 1;
    for (NodeRef axis : space_) results *= size_estimate(size_of(axis));
    const bool many = results > tuning_.few_results;
    // Where every result is a thread's, few are fewer than there could be threads.
    bool idle = parallel_ > 0 && results <= parallel_ * tuning_.idle_part && !fragment_.is_product;
    const double wanted = tuning_.waiting_threads * parallel_;
    bool long_sums = false;
    for (NodeRef reduction : reductions_)
      long_sums = long_sums || elements_of(reduction) >= tuning_.many_terms;
    if (parallel_ > 0 && results <= parallel_ && !fragment_.is_product) idle = idle || long_sums;
    // So are groups that have a rectangle of a product each.
    const double groups = results / (kLargestTile.rows() * kLargestTile.columns());
    const bool idle_groups =
        parallel_ > 0 && fragment_.is_product &&
        groups <= (long_sums ? tuning_.many_workgroups / 2 : tuning_.few_workgroups);
    if (many && !idle && !idle_groups &&
        (!fragment_.is_product || results > tuning_.few_results_of_product))
      return;
    // One that another one needs would have to wait for it.
    for (NodeRef reduction : all)
      for (NodeRef node : topological_order({&reduction, 1}))
        if (node != reduction && std::ranges::count(reductions_, node)) return;
    double work = 0;
    for (NodeRef reduction : reductions_) work = std::max(work, results * elements_of(reduction));
    work *= eagerness_;
    if (idle && work >= results * tuning_.terms_of_thread * tuning_.fewest_threads)
      return split(std::clamp(std::min(wanted / results, tuning_.most_pieces_of_threads), 2.0,
                              std::ceil(work / results / tuning_.terms_of_thread)));
    if (const double terms = work / results;
        idle_groups && terms >= tuning_.terms_of_workgroup * tuning_.fewest_workgroups) {
      const double wanted_groups =
          terms >= tuning_.many_terms ? many_workgroups_ : tuning_.busy_workgroups;
      return split(
          std::clamp(wanted_groups / groups, 2.0, std::floor(terms / tuning_.terms_of_workgroup)));
    }
    if (idle || idle_groups) return;
    if (work < (many ? tuning_.least_work_of_product : tuning_.least_work)) return;
    split(many ? tuning_.pieces_of_product
               : std::min(tuning_.most_pieces, std::ceil(work / tuning_.work_of_piece)));
  }

 private:
  // Whether the reduction is another one at each element of a store.
  static bool depends_on_axes(NodeRef reduction, std::span<const NodeRef> stores) {
    const std::vector<NodeRef> nodes = topological_order({&reduction, 1});
    return std::ranges::any_of(stores, [&](NodeRef store) {
      return std::ranges::any_of(store_axes(store),
                                 [&](NodeRef axis) { return std::ranges::count(nodes, axis) > 0; });
    });
  }
  NodeRef size_of(NodeRef axis) {
    return std::ranges::find(fragment_.axes, axis, &Axis::variable)->size;
  }
  double elements_of(NodeRef reduction) {
    double elements = 1;
    for (NodeRef axis : reduction->sources().subspan(1)) elements *= size_estimate(size_of(axis));
    return elements;
  }

  NodeRef new_axis(NodeRef size) {
    const int64_t most = std::max<int64_t>(1, bounds(size).max);
    NodeRef variable = make_variable(
        fmt::format("split{}", program_.buffers.size() * 1000 + fragment_.axes.size()), 0,
        most - 1);
    fragment_.axes.push_back({variable, size});
    return variable;
  }

  // Reductions in the same pieces share their axes, so that one loop can make both.
  struct Pieces {
    NodeRef which, inside;
  };
  Pieces pieces_of(NodeRef count, int64_t piece) {
    for (const auto& [known_count, known_piece, axes] : known_pieces_)
      if (known_count == count && known_piece == piece) return axes;
    // One after the other: each names itself by how many there are.
    NodeRef which = new_axis(count);
    NodeRef inside = new_axis(index_const(piece));
    known_pieces_.push_back({count, piece, {which, inside}});
    return {which, inside};
  }

  void split(double pieces) {
    const std::vector<NodeRef> finals = fragment_.phases[0];
    std::vector<NodeRef> partials;
    NodeMap<NodeRef> totals;
    for (NodeRef reduction : reductions_) split_one(reduction, pieces, partials, totals);
    if (partials.empty()) return;
    const std::vector<NodeRef> last = substitute(finals, totals);
    if (buffers_of(last).size() > most_buffers_) return;
    // In the same loops together, as many at once as a kernel can bind: others would leave it no
    // pieces to share among threads.
    fragment_.phases.clear();
    std::ranges::stable_sort(partials, {}, [&](NodeRef store) { return loops_of(store); });
    for (NodeRef partial : partials) {
      std::vector<NodeRef> together{partial};
      if (!fragment_.phases.empty() && loops_of(fragment_.phases.back()[0]) == loops_of(partial)) {
        together.insert(together.begin(), fragment_.phases.back().begin(),
                        fragment_.phases.back().end());
        if (buffers_of(together).size() > most_buffers_) together = {partial};
      }
      if (together.size() == 1) fragment_.phases.emplace_back();
      fragment_.phases.back() = std::move(together);
    }
    fragment_.phases.push_back(last);
    fragment_.refresh();
  }

  // Of a store of a partial sum: its piece, and how far it is summed.
  std::vector<Key> loops_of(NodeRef store) {
    std::vector<Key> loops;
    for (NodeRef axis : store->source(3)->sources().subspan(1)) loops.push_back(size_of(axis)->key);
    std::ranges::sort(loops);
    loops.push_back(store->source(4)->key);
    return loops;
  }

  // Where they are: what is replaced in place is bound once.
  std::set<int> buffers_of(std::span<const NodeRef> stores) const {
    std::set<int> buffers;
    for (NodeRef node : topological_order(stores))
      if (node->op == Op::Load || node->op == Op::Store || node->op == Op::StoreAdd) {
        const int number = schedule_buffer_of(node->source(0));
        const auto place = static_cast<size_t>(number);
        buffers.insert(place < memory_.size() ? memory_[place] : number);
      }
    return buffers;
  }

  void split_one(NodeRef reduction, double pieces, std::vector<NodeRef>& partials,
                 NodeMap<NodeRef>& totals) {
    // One group, or one core, adds so few in no time.
    const bool nested = std::ranges::any_of(topological_order({&reduction, 1}), [&](NodeRef node) {
      return node != reduction && is_reduce_over(node->op);
    });
    if (space_.empty() && !nested && elements_of(reduction) <= tuning_.few_terms) return;
    std::vector<NodeRef> axes(reduction->sources().begin() + 1, reduction->sources().end());
    double longest = 0;
    for (NodeRef axis : axes) longest = std::max(longest, size_estimate(size_of(axis)));
    // An outer axis, so that neighbours stay in one piece.
    const double enough = longest >= pieces ? pieces : std::ceil(longest / 4);
    auto chosen = std::ranges::find_if(
        axes, [&](NodeRef axis) { return size_estimate(size_of(axis)) >= enough; });
    NodeRef size = size_of(*chosen);
    const auto length = static_cast<int64_t>(size_estimate(size));
    if (length < 2) return;
    const int64_t piece = piece_length(size, length, static_cast<int64_t>(pieces));
    NodeRef count =
        simplify(index_floor_div(index_add(size, index_const(piece - 1)), index_const(piece)));
    const auto [which, inside] = pieces_of(count, piece);
    NodeRef index = index_add(index_mul(which, index_const(piece)), inside);
    const bool even = is_static(size) && static_value(size) % piece == 0;
    NodeRef within = even ? nullptr : make(Op::Lt, {index, size});

    const DType dtype = reduction->dtype;
    const DType wide = is_narrow_float(dtype) ? DType::F32 : dtype;
    NodeRef value = moved(reduction->source(0), *chosen, index, within);
    if (wide != dtype) value = make_cast(value, wide);
    if (within) value = make(Op::Where, {within, value, identity_of(reduction->op, wide)});
    *chosen = inside;
    axes.insert(axes.begin(), value);
    NodeRef partial = make(reduction->op, axes);
    store_partial(partial, which, count, partials);

    NodeRef again = new_axis(count);
    NodeRef total = make(reduction->op, {load_partial(again), again});
    totals[reduction] = wide == dtype ? total : make_cast(within_range(total, dtype), dtype);
  }

  // The length of the pieces: the nearest to the wanted one that leaves no rest, if one is near;
  // and of those rather one that is made of whole blocks, as products are copied.
  int64_t piece_length(NodeRef size, int64_t length, int64_t pieces) const {
    const int64_t wanted = std::max<int64_t>(1, (length + pieces - 1) / pieces);
    if (!is_static(size)) return wanted;
    const bool in_blocks = parallel_ > 0 && fragment_.is_product;
    for (const int64_t unit : {in_blocks ? block_ : 1, int64_t{1}}) {
      auto fits = [&](int64_t piece) { return length % piece == 0 && piece % unit == 0; };
      int64_t shorter = wanted, longer = wanted;
      while (2 * shorter >= wanted && !fits(shorter)) --shorter;
      while (longer <= 2 * wanted && !fits(longer)) ++longer;
      const bool is_short = 2 * shorter >= wanted, is_long = longer <= 2 * wanted;
      if (is_short && (!is_long || wanted * wanted < shorter * longer)) return shorter;
      if (is_long) return longer;
    }
    return wanted;
  }

  // The reduced value at another index; nothing is read where `within` fails.
  static NodeRef moved(NodeRef value, NodeRef axis, NodeRef index, NodeRef within) {
    NodeMap<NodeRef> by;
    by[axis] = index;
    NodeRef image = substitute({&value, 1}, by)[0];
    if (!within) return image;
    return rewrite_once(std::span(&image, 1), kRules, within)[0];
  }

  void store_partial(NodeRef partial, NodeRef which, NodeRef count,
                     std::vector<NodeRef>& partials) {
    NodeRef space = index_const(1);
    NodeRef position = index_const(0);
    for (NodeRef axis : space_) {
      space = index_mul(space, size_of(axis));
      position = index_add(index_mul(position, size_of(axis)), axis);
    }
    place_ = position;
    results_ = space;
    program_.buffers.push_back(
        {.dtype = partial->dtype, .elements = simplify(index_mul(count, space))});
    buffer_ = schedule_buffer_node(static_cast<int>(program_.buffers.size()) - 1,
                                   program_.buffers.back());
    std::vector<NodeRef> sources{buffer_, partial_position(which),
                                 make_const(Scalar::of_int(DType::Bool, 1)), partial, which};
    sources.insert(sources.end(), space_.begin(), space_.end());
    partials.push_back(make(Op::Store, sources, Arg(static_cast<int64_t>(space_.size() + 1))));
  }

  NodeRef partial_position(NodeRef which) {
    return simplify(index_add(index_mul(which, results_), place_));
  }
  NodeRef load_partial(NodeRef which) {
    return make(Op::Load,
                {buffer_, partial_position(which), make_const(Scalar::of_int(DType::Bool, 1))});
  }

  Rangified& program_;
  Fragment& fragment_;
  std::span<const int> memory_;  // where each buffer is, of those that were there before
  double eagerness_;
  size_t most_buffers_;
  std::vector<std::tuple<NodeRef, int64_t, Pieces>> known_pieces_;
  const ScheduleTuning& tuning_;
  double parallel_;  // threads that keep the device busy; 0: lanes are no threads
  int64_t block_;
  double many_workgroups_;
  std::vector<NodeRef> space_, reductions_;
  NodeRef place_ = nullptr, results_ = nullptr, buffer_ = nullptr;
};

}  // namespace

void split_reductions(Rangified& program, std::span<const int> memory,
                      const ScheduleOptions& options) {
  for (Fragment& fragment : program.fragments)
    if (!fragment.phases.empty()) Splitter(program, fragment, memory, options).run();
}

}  // namespace anneal
