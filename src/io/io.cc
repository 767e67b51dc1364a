// Tensors from and to files: what parsers found becomes tensors, what they refused an error.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <anneal/io.h>

#include "base/os/atomic_file.h"
#include "base/os/mapped_file.h"
#include "io/json_text.h"
#include "io/layout.h"
#include "ir/dtype.h"
#include "ir/graph.h"
#include "tensor/lift.h"

namespace anneal::io {
namespace {

MappedFile open(const std::string& path) {
  auto opened = MappedFile::open(path);
  if (const auto* reason = std::get_if<std::string>(&opened))
    fail(fmt::format("cannot read \"{}\": {}", path, *reason), "check the path");
  return std::get<MappedFile>(std::move(opened));
}

template <typename T>
T accepted(Parsed<T> parsed, const std::string& source, const char* hint) {
  if (const auto* problem = std::get_if<std::string>(&parsed))
    fail(fmt::format("{}: {}", source, *problem), hint);
  return std::get<T>(std::move(parsed));
}

Tensor tensor_of(std::span<const std::byte> file, const Layout& layout) {
  std::span<const std::byte> bytes = file.subspan(layout.begin, layout.end - layout.begin);
  std::vector<std::byte> changed;
  const size_t width = byte_size(layout.dtype);
  if (layout.swapped) {
    changed.assign(bytes.begin(), bytes.end());
    for (size_t i = 0; i < changed.size(); i += width)
      std::reverse(&changed[i], &changed[i] + width);
    bytes = changed;
  } else if (is_bool(layout.dtype)) {  // ours are 0 and 1, whatever a file has
    changed.assign(bytes.begin(), bytes.end());
    for (std::byte& b : changed) b = std::byte{b != std::byte{0}};
    bytes = changed;
  }
  Sizes sizes(layout.shape.begin(), layout.shape.end());
  if (!layout.columns_first) return from_bytes(bytes, sizes, layout.dtype);
  std::vector<int64_t> reversed;
  for (size_t i = sizes.size(); i-- > 0;) reversed.push_back(static_cast<int64_t>(i));
  std::ranges::reverse(sizes);
  return permute(from_bytes(bytes, sizes, layout.dtype), reversed);
}

// The memory of the values, in the order of the tensors.
std::vector<std::shared_ptr<Storage>> memory_of(const std::vector<Tensor>& tensors) {
  std::vector<std::shared_ptr<Storage>> memory;
  const std::vector<Tensor> values = evaluate(tensors);
  for (const Tensor& value : values)
    memory.push_back(current_graph().shared_storage(node_of(value)));
  return memory;
}

// What errors say that bytes are of.
std::string file_at(const std::string& path) { return fmt::format("\"{}\"", path); }
constexpr const char* kMemory = "the bytes";

void commit(AtomicFile& file, const std::string& path) {
  if (!file.commit())
    fail(fmt::format("cannot write \"{}\": {}", path, file.error()),
         "what was there before is unchanged");
}

}  // namespace

// ---- safetensors

struct Safetensors::File {
  MappedFile mapped;
  SafetensorsHeader header;
};

namespace {
constexpr const char* kDamaged = "it is damaged or of another format: fetch or save it again";
}

Safetensors::Safetensors(const std::string& path, const Limits& limits, Location where) {
  CallScope call("safetensors", where);
  MappedFile mapped = open(path);
  SafetensorsHeader header =
      accepted(parse_safetensors(mapped.bytes(), limits), file_at(path), kDamaged);
  file_ = std::make_unique<File>(std::move(mapped), std::move(header));
}
Safetensors::~Safetensors() = default;
Safetensors::Safetensors(Safetensors&& other) noexcept = default;
Safetensors& Safetensors::operator=(Safetensors&& other) noexcept = default;

std::vector<std::string> Safetensors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, layout] : file_->header.tensors) names.push_back(name);
  return names;
}

bool Safetensors::contains(std::string_view name) const {
  return std::ranges::any_of(file_->header.tensors, [&](auto& t) { return t.first == name; });
}

const Metadata& Safetensors::metadata() const& { return file_->header.metadata; }
Metadata Safetensors::metadata() && { return std::move(file_->header.metadata); }

Tensor Safetensors::tensor(std::string_view name, Location where) const {
  CallScope call("safetensors", where);
  for (const auto& [known, layout] : file_->header.tensors)
    if (known == name) return tensor_of(file_->mapped.bytes(), layout);
  fail(fmt::format("there is no \"{}\" among the {} tensors of the file", name,
                   file_->header.tensors.size()),
       "names() lists them");
}

namespace {

State state_of(std::span<const std::byte> file, const SafetensorsHeader& header) {
  State state;
  for (const auto& [name, layout] : header.tensors)
    state.emplace_back(name, tensor_of(file, layout));
  return state;
}

// A file in two parts: its header, and the values in the order of their bytes.
struct SafetensorsContents {
  std::string header;
  std::vector<std::shared_ptr<Storage>> values;
};

SafetensorsContents contents_of(const State& state, const Metadata& metadata) {
  std::set<std::string_view> names{"__metadata__"};
  for (const auto& [name, tensor] : state) {
    if (!names.insert(name).second)
      fail(fmt::format("the name \"{}\" is used twice or reserved", name), "give each its own");
    if (!is_utf8(name)) fail(fmt::format("the name {} is not UTF-8", quote(name)), "rename it");
  }
  for (const auto& [key, value] : metadata)
    if (!is_utf8(key) || !is_utf8(value))
      fail(fmt::format("the metadata {} is not UTF-8", quote(key)), "encode it as text");

  // In the package's order: wide dtypes first, so that all are aligned; then by name.
  std::vector<const State::value_type*> sorted;
  for (const auto& entry : state) sorted.push_back(&entry);
  std::ranges::stable_sort(sorted, [](const auto* a, const auto* b) {
    const int left = safetensors_order(a->second.dtype()),
              right = safetensors_order(b->second.dtype());
    return left != right ? left > right : a->first < b->first;
  });
  std::vector<Tensor> tensors;
  for (const auto* entry : sorted) tensors.push_back(entry->second);
  std::vector<std::shared_ptr<Storage>> memory = memory_of(tensors);

  std::vector<std::pair<std::string, Layout>> layouts;
  uint64_t at = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const uint64_t end = at + memory[i]->size();
    layouts.emplace_back(sorted[i]->first, Layout{memory[i]->dtype, memory[i]->shape, at, end});
    at = end;
  }
  return {safetensors_header(layouts, metadata), std::move(memory)};
}

}  // namespace

State Safetensors::state(Location where) const {
  CallScope call("safetensors", where);
  return state_of(file_->mapped.bytes(), file_->header);
}

State load_safetensors(const std::string& path, Location where) {
  CallScope call("load_safetensors", where);
  return Safetensors(path).state();
}

void save_safetensors(const std::string& path, const State& state, const Metadata& metadata,
                      Location where) {
  CallScope call("save_safetensors", where);
  const SafetensorsContents contents = contents_of(state, metadata);
  AtomicFile file(path);
  file.write(contents.header);
  for (const auto& storage : contents.values) file.write(storage->read());
  commit(file, path);
}

State read_safetensors(std::span<const std::byte> file, const Limits& limits, Location where) {
  CallScope call("read_safetensors", where);
  return state_of(file, accepted(parse_safetensors(file, limits), kMemory, kDamaged));
}

std::vector<std::byte> write_safetensors(const State& state, const Metadata& metadata,
                                         Location where) {
  CallScope call("write_safetensors", where);
  const SafetensorsContents contents = contents_of(state, metadata);
  std::vector<std::byte> file;
  auto append = [&](std::span<const std::byte> part) {
    file.insert(file.end(), part.begin(), part.end());
  };
  append(std::as_bytes(std::span(contents.header)));
  for (const auto& storage : contents.values) append(storage->read());
  return file;
}

// ---- npy, IDX, text

static Tensor npy_tensor(std::span<const std::byte> file, const Limits& limits,
                         const std::string& source) {
  return tensor_of(file, accepted(parse_npy(file, limits), source,
                                  "save it again with numpy.save, as a plain array"));
}

Tensor load_npy(const std::string& path, const Limits& limits, Location where) {
  CallScope call("load_npy", where);
  const MappedFile file = open(path);
  return npy_tensor(file.bytes(), limits, file_at(path));
}

Tensor read_npy(std::span<const std::byte> file, const Limits& limits, Location where) {
  CallScope call("read_npy", where);
  return npy_tensor(file, limits, kMemory);
}

void save_npy(const std::string& path, const Tensor& tensor, Location where) {
  CallScope call("save_npy", where);
  const std::shared_ptr<Storage> memory = memory_of({tensor})[0];
  const std::optional<std::string> header = npy_header(memory->dtype, memory->shape);
  if (!header)
    fail(fmt::format("NumPy has no {}", name(memory->dtype)),
         "cast it to f32, or save it as safetensors");
  AtomicFile file(path);
  file.write(*header);
  file.write(memory->read());
  commit(file, path);
}

Tensor load_idx(const std::string& path, const Limits& limits, Location where) {
  CallScope call("load_idx", where);
  const MappedFile file = open(path);
  return tensor_of(file.bytes(), accepted(parse_idx(file.bytes(), limits), file_at(path),
                                          "fetch it again: MNIST's files are of this kind"));
}

std::string load_text(const std::string& path, const Limits& limits, Location where) {
  CallScope call("load_text", where);
  const MappedFile file = open(path);
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() > limits.text_bytes)
    fail(fmt::format("\"{}\" has {} bytes, {} are allowed", path, bytes.size(), limits.text_bytes),
         "raise Limits::text_bytes, or read a part of it");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void save_text(const std::string& path, std::string_view text, Location where) {
  CallScope call("save_text", where);
  AtomicFile file(path);
  file.write(text);
  commit(file, path);
}

}  // namespace anneal::io
