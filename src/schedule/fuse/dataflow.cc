#include "schedule/fuse/dataflow.h"

#include <algorithm>
#include <queue>

#include "schedule/fuse/code_size.h"

namespace anneal {
namespace {

void sort_unique(std::vector<int>& numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

void insert(std::vector<int>& sorted, int number) {
  auto place = std::ranges::lower_bound(sorted, number);
  if (place == sorted.end() || *place != number) sorted.insert(place, number);
}

void replace(std::vector<int>& sorted, int old, int number) {
  if (std::erase(sorted, old)) insert(sorted, number);
}

}  // namespace

void Fragment::refresh() {
  reads.clear();
  writes.clear();
  operations = 0;
  for (const std::vector<NodeRef>& stores : phases) {
    for (NodeRef node : topological_order(stores)) {
      operations += code_size(node);
      if (node->op == Op::Load) reads.push_back(schedule_buffer_of(node->source(0)));
    }
    for (NodeRef store : stores) writes.push_back(schedule_buffer_of(store->source(0)));
  }
  sort_unique(reads);
  sort_unique(writes);
}

Dataflow::Dataflow(const Rangified& program)
    : before_(program.fragments.size()),
      after_(program.fragments.size()),
      readers_(program.buffers.size()),
      buffers_(program.fragments.size()),
      writer_(program.buffers.size(), -1),
      merged_(program.fragments.size(), 0) {
  for (size_t i = 0; i < program.fragments.size(); ++i) {
    const int fragment = static_cast<int>(i);
    note_buffers(program.fragments[i], fragment);
    for (int buffer : program.fragments[i].reads) readers_[index(buffer)].push_back(fragment);
    for (int buffer : program.fragments[i].writes) {
      add(writer(buffer), fragment);  // of two assignments to one buffer the later wins
      writer_[index(buffer)] = fragment;
    }
  }
  for (size_t buffer = 0; buffer < readers_.size(); ++buffer)
    for (int reader : readers_[buffer]) read(program, static_cast<int>(buffer), reader);
}

void Dataflow::note_buffers(const Fragment& fragment, int number) {
  std::vector<int>& buffers = buffers_[index(number)];
  buffers = fragment.reads;
  buffers.insert(buffers.end(), fragment.writes.begin(), fragment.writes.end());
}

void Dataflow::read(const Rangified& program, int buffer, int reader) {
  if (program.buffers[index(buffer)].external)
    add(reader, writer(buffer));
  else
    add(writer(buffer), reader);
}

void Dataflow::extend(const Rangified& program) {
  const int fragment = static_cast<int>(program.fragments.size()) - 1;
  before_.emplace_back();
  after_.emplace_back();
  merged_.push_back(0);
  buffers_.emplace_back();
  note_buffers(program.fragments.back(), fragment);
  if (!ranks_.empty()) ranks_.push_back(0);
  readers_.resize(program.buffers.size());
  writer_.resize(program.buffers.size(), -1);
  for (int buffer : program.fragments.back().writes) writer_[index(buffer)] = fragment;
  for (int buffer : program.fragments.back().reads) {
    readers_[index(buffer)].push_back(fragment);
    read(program, buffer, fragment);
  }
}

void Dataflow::add(int from, int to) {
  if (from < 0 || to < 0 || from == to) return;
  insert(after_[index(from)], to);
  insert(before_[index(to)], from);
  if (!ranks_.empty()) raise(to, ranks_[index(from)] + 1);
}

const std::vector<int>& Dataflow::ranks() const {
  if (ranks_.empty()) ranks_ = levels();
  return ranks_;
}

void Dataflow::raise(int fragment, int least) {
  struct Raise {
    int fragment, least;
  };
  std::vector<Raise> waiting{{fragment, least}};
  while (!waiting.empty()) {
    const Raise next = waiting.back();
    waiting.pop_back();
    int& rank = ranks_[index(next.fragment)];
    if (rank >= next.least) continue;
    rank = next.least;
    if (index(rank) > 4 * after_.size()) throw InternalError("kernels wait for each other");
    for (int later : after(next.fragment)) waiting.push_back({later, rank + 1});
  }
}

void Dataflow::write_after_reads(const AssignedBuffer& assigned) {
  for (int reader : readers(assigned.target)) add(reader, writer(assigned.value));
}

void Dataflow::merge(int fragment, int into) {
  for (int other : before_[index(fragment)]) {
    std::erase(after_[index(other)], fragment);
    add(other, into);
  }
  for (int other : after_[index(fragment)]) {
    std::erase(before_[index(other)], fragment);
    add(into, other);
  }
  before_[index(fragment)].clear();
  after_[index(fragment)].clear();
  merged_[index(fragment)] = 1;
  std::vector<int> buffers = std::move(buffers_[index(fragment)]);
  for (int buffer : buffers) {
    if (writer(buffer) == fragment) writer_[index(buffer)] = into;
    replace(readers_[index(buffer)], fragment, into);
  }
  std::vector<int>& all = buffers_[index(into)];
  all.insert(all.end(), buffers.begin(), buffers.end());
  sort_unique(all);
}

void Dataflow::search(std::span<const int> from, std::vector<int>& wanted) const {
  const std::vector<int>& rank = ranks();
  int highest = 0;
  for (int fragment : wanted) highest = std::max(highest, rank[index(fragment)]);
  searches_.resize(after_.size(), 0);
  ++search_;
  std::vector<int> waiting;
  auto visit = [&](int fragment) {
    if (rank[index(fragment)] > highest || searches_[index(fragment)] == search_) return;
    searches_[index(fragment)] = search_;
    if (rank[index(fragment)] < highest) waiting.push_back(fragment);
  };
  const bool one = wanted.size() == 1;
  for (int fragment : from) visit(fragment);
  while (!waiting.empty() && !(one && searches_[index(wanted[0])] == search_)) {
    const int fragment = waiting.back();
    waiting.pop_back();
    for (int next : after(fragment)) visit(next);
  }
  std::erase_if(wanted, [&](int fragment) { return searches_[index(fragment)] == search_; });
}

bool Dataflow::has_detour(int from, int to) const {
  std::vector<int> next = after(from), wanted{to};
  std::erase(next, to);
  search(next, wanted);
  return wanted.empty();
}

std::vector<int> Dataflow::not_reached(int from, std::vector<int> among) const {
  search({&from, 1}, among);
  return among;
}

std::vector<int> Dataflow::order() const {
  std::vector<size_t> waiting;
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (size_t i = 0; i < before_.size(); ++i) {
    waiting.push_back(before_[i].size());
    if (waiting[i] == 0 && !merged_[i]) ready.push(static_cast<int>(i));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int fragment = ready.top();
    ready.pop();
    order.push_back(fragment);
    for (int next : after(fragment))
      if (--waiting[index(next)] == 0) ready.push(next);
  }
  return order;
}

std::vector<int> Dataflow::levels() const {
  std::vector<int> levels(before_.size(), 0);
  for (int fragment : order())
    for (int earlier : before(fragment))
      levels[index(fragment)] = std::max(levels[index(fragment)], levels[index(earlier)] + 1);
  return levels;
}

}  // namespace anneal
