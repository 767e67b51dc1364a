#include "runtime/program/program_cache.h"

#include <algorithm>

namespace anneal {
namespace {

// Of one structure, with numbers that rules look for as part of the code. Then they are inputs like
// others.
constexpr size_t kMostSought = 4;

}  // namespace

std::vector<ProgramCache::Position> ProgramCache::of_structure(
    const CanonicalProgram& program) const {
  std::vector<Position> result;
  auto [begin, end] = by_key_.equal_range(program.key().low);
  for (auto entry = begin; entry != end; ++entry)
    if (entry->second->words == program.words()) result.push_back(entry->second);
  return result;
}

std::shared_ptr<CompiledProgram> ProgramCache::find(const CanonicalProgram& program,
                                                    Numbers numbers) {
  const Position none = programs_.end();
  Position best = none;
  for (Position entry : of_structure(program)) {
    const NumberInputs& inputs = entry->program->numbers();
    if (numbers == Numbers::InCode && !inputs.empty()) continue;
    if ((best == none || inputs.empty()) && inputs.serve(program.numbers())) best = entry;
  }
  if (best == none) return nullptr;
  programs_.splice(programs_.begin(), programs_, best);
  return best->program;
}

NumberInputs ProgramCache::inputs_for(const CanonicalProgram& program) const {
  const NumberInputs* nearest = nullptr;  // the one with inputs, else that which differs least
  size_t least = 0, in_code = 0;
  for (Position entry : of_structure(program)) {
    const NumberInputs& inputs = entry->program->numbers();
    in_code += inputs.empty() ? 1 : 0;
    const size_t differing = inputs.empty() ? 1 + inputs.differing(program.numbers()).size() : 0;
    if (nearest && differing >= least) continue;
    nearest = &inputs;
    least = differing;
  }
  if (!nearest) return NumberInputs(program.numbers());
  const bool sought = std::ranges::any_of(nearest->differing(program.numbers()),
                                          [&](size_t number) { return program.is_sought(number); });
  return sought && in_code < kMostSought ? NumberInputs(program.numbers())
                                         : nearest->widened(program.numbers());
}

size_t ProgramCache::add(const CanonicalProgram& program,
                         std::shared_ptr<CompiledProgram> compiled) {
  // Wider inputs serve whatever the narrower ones did.
  if (!compiled->numbers().empty())
    for (Position entry : of_structure(program))
      if (!entry->program->numbers().empty()) remove(entry);
  programs_.push_front({program.key(), program.words(), std::move(compiled)});
  by_key_.emplace(program.key().low, programs_.begin());
  size_t forgotten = 0;
  for (; programs_.size() > std::max<size_t>(1, most_); ++forgotten)
    remove(std::prev(programs_.end()));
  return forgotten;
}

void ProgramCache::remove(Position entry) {
  auto [begin, end] = by_key_.equal_range(entry->key.low);
  by_key_.erase(std::find_if(begin, end, [&](const auto& each) { return each.second == entry; }));
  programs_.erase(entry);
}

}  // namespace anneal
