// Memory: where the elements of a load or a store lie, as few numbers that change in inner loops as
// there can be; what is staged in fast memory; and stores that lanes turn or share.
#include <algorithm>

#include "body/match_axes.h"
#include "ir/index.h"
#include "kernel/emit/emit.h"
#include "symbolic/bounds.h"

namespace anneal {

// Every partial sum lies as far out as it can, and the constant of a copy comes last, where
// addressing takes it for nothing.
ValueId Emitter::sum_of(std::vector<ValueId> terms, int64_t offset) {
  std::stable_sort(terms.begin(), terms.end(), [&](ValueId a, ValueId b) {
    return code_.scope_of(a)->depth < code_.scope_of(b)->depth;
  });
  ValueId sum = code_.index(0);
  for (ValueId term : terms) sum = code_.add(sum, term);
  return code_.add(sum, code_.index(offset));
}

ValueId Emitter::place_in(const Layout& layout, Coordinate at, int lanes) {
  std::vector<ValueId> terms;
  int64_t offset = 0, lane_stride = 0;
  for (const Layout::Dimension& dimension : layout.dimensions) {
    const Binding& binding = bindings_[dimension.axis];
    offset += dimension.stride * binding.tile.distance(copy_of(binding, at));
    ValueId from_begin = code_.sub(binding.base, dimension.begin);
    terms.push_back(code_.mul(from_begin, code_.index(dimension.stride)));
    if (dimension.panel > 0) {
      ValueId panel =
          code_.compute(Op::FloorDiv, DType::Index, {from_begin, code_.index(dimension.panel)});
      const int64_t further = dimension.panel_stride - dimension.panel * dimension.stride;
      terms.push_back(code_.mul(panel, code_.index(further)));
    }
    if (binding.tile.lanes > 1) lane_stride = dimension.stride * binding.tile.neighbours;
  }
  ValueId sum = sum_of(std::move(terms), offset);
  if (lanes == 1 || lane_stride == 1) return sum;
  return code_.ramp(sum, code_.index(lane_stride), lanes);
}

CodeBuilder::Access Emitter::access_to(const Layout& layout, Coordinate at) {
  CodeBuilder::Access access;
  access.buffer = layout.buffer;
  if (layout.place) {
    access.lanes = layout.lanes;
    access.place = layout.place(at);
    return access;
  }
  for (const Layout::Dimension& dimension : layout.dimensions)
    access.lanes = std::max(access.lanes, bindings_[dimension.axis].tile.lanes);
  access.place = place_in(layout, at, access.lanes);
  return access;
}

void Emitter::store_staged(ValueId value, const Layout& layout, Coordinate at) {
  code_.store(access_to(layout, at), value);
}

ValueId Emitter::load_staged(const Layout& layout, Coordinate at) {
  return code_.load(access_to(layout, at), false);
}

Emitter::Place Emitter::place(NodeRef position, Coordinate at, int lanes, int64_t scale) {
  const AxisForm& form = analysis_.form(position);
  if (form.overflow || lanes_of(form.in_rest) > 1) {
    const ValueId by = code_.index(scale);
    return {code_.mul(value(position, at), by), true};
  }
  std::vector<ValueId> terms;
  int64_t offset = form.rest.constant * scale;
  ValueId stride = code_.index(0);
  bool apart = false;  // every lane has a place of its own
  for (const AxisForm::Term& term : form.terms) {
    const Binding& binding = bindings_[term.axis];
    const ValueId by = code_.index(scale);
    ValueId slope = code_.mul(value(compact(term.slope), 0), by);
    if (!binding.values.empty()) {
      const auto copy = static_cast<size_t>(copy_of(binding, at));
      const bool constant = code_.is_constant(slope);
      if (constant) offset += code_.constant_value(slope) * binding.offsets[copy];
      ValueId element = constant ? binding.bases[copy] : binding.values[copy];
      terms.push_back(code_.mul(slope, element));
      apart = apart || code_.lanes(element) > 1;
      continue;
    }
    const int64_t skipped = binding.tile.distance(copy_of(binding, at));
    if (code_.is_constant(slope))
      offset += code_.constant_value(slope) * skipped;
    else
      terms.push_back(code_.mul(slope, code_.index(skipped)));
    terms.push_back(code_.mul(slope, binding.base));
    if (binding.tile.lanes > 1) stride = code_.mul(slope, code_.index(binding.tile.neighbours));
  }
  LinearForm rest = form.rest;
  rest.constant = 0;
  const ValueId by = code_.index(scale);
  terms.push_back(code_.mul(value(compact(rest), at), by));
  ValueId sum = sum_of(std::move(terms), offset);
  if (apart) return {sum, true};
  if (lanes == 1 || code_.is_constant(stride, 1)) return {sum, false};
  return {code_.ramp(sum, stride, lanes), true};
}

void Emitter::place_tiles(Tile rows) {
  tile_rows_ = rows.elements();
  for (NodeRef tile : analysis_.body().tiles) {
    const int64_t elements = std::max<int64_t>(1, bounds(tile->dim(0)).max);
    tiles_[tile] = code_.add_local(tile->dtype, elements * tile_rows_);
  }
}

void Emitter::serve(std::span<const NodeRef> stores) {
  serving_.assign(stores.begin(), stores.end());
  served_by_[code_.current()] = serving_;
}

// Rows are neighbours in a tile.
ValueId Emitter::tile_place(NodeRef position, Coordinate at) {
  const Binding& rows = bindings_[analysis_.number(analysis_.body().tile_axes.back())];
  ValueId first = place(position, at, 1, tile_rows_).value;
  return code_.add(first, code_.index(int64_t{copy_of(rows, at)} * rows.tile.lanes));
}

bool Emitter::load_turned(NodeRef node, Coordinate at) {
  const AxisSet free = analysis_.free(node);
  const AxisForm& form = analysis_.form(node->source(1));
  if (!plan_.simd || form.overflow || tiles_.contains(node->source(0))) return false;
  size_t lane_axis = analysis_.axis_count(), copy_axis = lane_axis;
  for (size_t axis : (free & bound_).list()) {
    const Binding& binding = bindings_[axis];
    if (binding.tile.lanes > 1)
      lane_axis = axis;
    else if (binding.slot >= 0 && is_constant(form.slope(axis)) && form.slope(axis).constant == 1)
      copy_axis = axis;
    else if (binding.remaining != kNoValue)
      return false;
  }
  if (lane_axis == analysis_.axis_count() || copy_axis == analysis_.axis_count()) return false;
  const Binding &lanes = bindings_[lane_axis], &copies = bindings_[copy_axis];
  const LinearForm slope = form.slope(lane_axis);
  const bool fits = copies.tile.copies == lanes.tile.lanes && copies.remaining == kNoValue &&
                    std::has_single_bit(static_cast<unsigned>(lanes.tile.lanes));
  if (!fits || !is_constant(slope) || slope.constant == 0 || slope.constant == 1) return false;
  if (lanes_of(form.in_rest) > 1 || form.in_rest.contains(copy_axis)) return false;
  if (!is_always(node->source(2))) return false;

  at &= ~slot_mask(copies.slot);
  ValueId first = place(node->source(1), at, 1).value;
  std::vector<ValueId> rows;
  for (int lane = 0; lane < lanes.tile.lanes; ++lane) {
    CodeBuilder::Access access;
    access.buffer = analysis_.buffer_number(node->source(0));
    access.lanes = lanes.tile.lanes;
    access.place = code_.add(first, code_.index(lane * slope.constant));
    if (lanes.remaining != kNoValue) {
      ValueId number = code_.index(int64_t{copy_of(lanes, at)} * lanes.tile.lanes + lane);
      access.condition = code_.compute(Op::Lt, DType::Bool, {number, lanes.remaining});
    }
    rows.push_back(code_.load(access, !analysis_.is_written(node->source(0))));
  }
  rows = code_.transpose(std::move(rows));
  for (int copy = 0; copy < copies.tile.copies; ++copy)
    remember(node, at | static_cast<Coordinate>(copy) << copies.slot * kSlotBits,
             rows[static_cast<size_t>(copy)]);
  return true;
}

ValueId Emitter::load(NodeRef node, Coordinate at) {
  if (load_turned(node, at)) return remembered(node, at);

  const AxisSet free = analysis_.free(node);
  CodeBuilder::Access access;
  const uint64_t* tile = tiles_.find(node->source(0));
  if (tile && tile_rows_ > 1) {
    access.buffer = *tile;
    access.lanes = lanes_of(free);
    access.condition = code_.both(value(node->source(2), at), kNoValue);
    access.place = tile_place(node->source(1), at);
    return code_.load(access, false);
  }
  access.buffer = tile ? *tile : analysis_.buffer_number(node->source(0));
  access.lanes = lanes_of(free);
  const ValueId of_lanes = mask(free, at);
  access.condition = code_.both(value(node->source(2), at), of_lanes);
  access.place = place(node->source(1), at, access.lanes).value;
  return code_.load(access, !analysis_.is_written(node->source(0)));
}

bool Emitter::is_streaming(NodeRef store, int lanes) {
  NodeRef elements = store->source(0)->dim(0);
  const auto element = static_cast<int64_t>(byte_size(store->dtype));
  if (store->op != Op::Store || tiles_.contains(store->source(0)) || !is_static(elements) ||
      static_value(elements) < plan_.stream_bytes / element || lanes * element < 64)
    return false;
  const AxisForm& form = analysis_.form(store->source(1));
  if (form.overflow || !form.rest.terms.empty() || form.rest.constant % lanes != 0) return false;
  return std::ranges::all_of(form.terms, [&](const AxisForm::Term& term) {
    const bool along = bindings_[term.axis].tile.lanes > 1;
    return is_constant(term.slope) &&
           (along ? term.slope.constant == 1 : term.slope.constant % lanes == 0);
  });
}

void Emitter::store(NodeRef store, Coordinate at) {
  const AxisSet axes = analysis_.listed_set(store);
  CodeBuilder::Access access;
  const uint64_t* tile = tiles_.find(store->source(0));
  if (tile && tile_rows_ > 1) {
    access.buffer = *tile;
    access.lanes = lanes_of(axes);
    access.place = tile_place(store->source(1), at);
    code_.store(access, value(store->source(3), at));
    return;
  }
  access.buffer = tile ? *tile : analysis_.buffer_number(store->source(0));
  access.lanes = lanes_of(axes);
  const ValueId of_lanes = mask(axes, at);
  access.condition = code_.both(value(store->source(2), at), of_lanes);
  access.place = place(store->source(1), at, access.lanes).value;
  ValueId stored = value(store->source(3), at);
  if (store->op == Op::StoreAdd) {
    ValueId before = code_.load(access, false);
    const DType dtype = store->dtype;
    const bool narrow = is_float(dtype) && byte_size(dtype) < 4;
    const DType wide = narrow ? DType::F32 : dtype;
    if (narrow) before = code_.compute(Op::Cast, wide, {before});
    if (narrow) stored = code_.compute(Op::Cast, wide, {stored});
    stored = code_.compute(Op::Add, wide, {before, stored});
    if (narrow) stored = code_.compute(Op::Cast, dtype, {stored});
  }
  access.streaming = is_streaming(store, access.lanes);
  code_.store(access, stored);
}

// A store of every second element whose two copies fill the gaps of each other: their lanes in
// turns are neighbours. It happens with the first copy, the second answers that it was.
bool Emitter::store_zipped(NodeRef store, Coordinate at) {
  const AxisForm& form = analysis_.form(store->source(1));
  if (!plan_.simd || store->op != Op::Store || tiles_.contains(store->source(0)) || form.overflow)
    return false;
  if (!is_always(store->source(2)) || lanes_of(form.in_rest) > 1) return false;
  const Binding *lanes = nullptr, *copies = nullptr;
  for (const AxisForm::Term& term : form.terms) {
    const Binding& binding = bindings_[term.axis];
    const int64_t slope = is_constant(term.slope) ? term.slope.constant : 0;
    if (binding.tile.lanes > 1 && slope == 2)
      lanes = &binding;
    else if (binding.remaining != kNoValue)
      return false;
    else if (binding.slot >= 0 && binding.tile.copies == 2 && slope == 1)
      copies = &binding;
  }
  if (!lanes || !copies) return false;
  if (copy_of(*copies, at) > 0) return true;
  const Coordinate other = at | Coordinate{1} << copies->slot * kSlotBits;
  const int width = lanes->tile.lanes;
  ValueId low = code_.splat(value(store->source(3), at), width);
  ValueId high = code_.splat(value(store->source(3), other), width);
  ValueId first = place(store->source(1), at, 1).value;
  for (const bool upper : {false, true}) {
    const int64_t before = upper ? width : 0;
    CodeBuilder::Access access;
    access.buffer = analysis_.buffer_number(store->source(0));
    access.lanes = width;
    access.place = code_.add(first, code_.index(before));
    if (lanes->remaining != kNoValue) {
      const int64_t begin = 2 * int64_t{copy_of(*lanes, at)} * width + before;
      ValueId left = code_.mul(lanes->remaining, code_.index(2));
      if (code_.is_constant(left) && code_.constant_value(left) <= begin) break;
      const ValueId one = code_.index(1);
      ValueId number = code_.ramp(code_.index(begin), one, width);
      access.condition = code_.compute(Op::Lt, DType::Bool, {number, left});
    }
    code_.store(access, code_.zip(low, high, upper));
  }
  return true;
}

}  // namespace anneal
