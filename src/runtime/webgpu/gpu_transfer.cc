// Data to a GPU and back. WebGPU moves whole words of 4 bytes; here any stretch may move.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "runtime/webgpu/gpu_state.h"

namespace anneal::webgpu {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

constexpr int64_t kWord = 4;
// Larger ones are read in parts of this size, the next being copied while one is taken over.
constexpr uint64_t kReadAtOnce = 16 << 20;
constexpr uint64_t kLeastStaging = 64 << 10;

int64_t round_down(int64_t value) { return value / kWord * kWord; }
int64_t round_up(int64_t value) { return round_down(value + kWord - 1); }

void check_stretch(const Buffer& buffer, int64_t offset, size_t bytes) {
  if (offset < 0 || offset > buffer.bytes() ||
      static_cast<int64_t>(bytes) > buffer.bytes() - offset)
    throw InternalError(fmt::format("bytes {} to {} of a buffer of {} bytes", offset,
                                    offset + static_cast<int64_t>(bytes), buffer.bytes()));
}

// A stretch of whole words, of which some bytes are wanted.
struct Piece {
  abi::Buffer from;
  uint64_t offset, bytes;
  uint64_t skipped;  // before what is wanted
  std::span<std::byte> to;
};

std::vector<Piece> pieces_of(std::span<const ReadRequest> requests) {
  std::vector<Piece> pieces;
  for (const ReadRequest& request : requests) {
    check_stretch(*request.buffer, request.offset, request.to.size());
    int64_t at = request.offset;
    for (std::span<std::byte> left = request.to; !left.empty();) {
      const int64_t begin = round_down(at);
      const auto skipped = static_cast<uint64_t>(at - begin);
      const size_t count = std::min<size_t>(left.size(), kReadAtOnce - skipped);
      const int64_t end = round_up(at + static_cast<int64_t>(count));
      pieces.push_back({request.buffer->handle(), static_cast<uint64_t>(begin),
                        static_cast<uint64_t>(end - begin), skipped, left.first(count)});
      left = left.subspan(count);
      at += static_cast<int64_t>(count);
    }
  }
  return pieces;
}

// Pieces on their way through one buffer that the host can see.
class Transfer {
 public:
  Transfer(GpuState& state, std::span<const Piece> pieces) : state_(state), pieces_(pieces) {
    for (const Piece& piece : pieces) bytes_ += piece.bytes;
    capacity_ = std::bit_ceil(std::max(bytes_, kLeastStaging));
    staging_ = state.take_staging(capacity_);
    abi::CommandEncoder encoder = state.encoder();
    uint64_t at = 0;
    for (const Piece& piece : pieces) {
      state.library().copy_buffer(encoder, piece.from, piece.offset, staging_, at, piece.bytes);
      at += piece.bytes;
    }
    state.finish_and_submit(encoder);
  }
  ~Transfer() {
    if (staging_) state_.library().release_buffer(staging_);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  void finish() {
    struct Answer {
      std::string text;
      bool done = false, mapped = false;
    } answer;
    const Library& library = state_.library();
    const uint32_t mode = library.polled ? abi::kSpontaneous : abi::kWaitAnyOnly;
    state_.wait(library.map_buffer(staging_, abi::kMapRead, 0, bytes_,
                                   {nullptr, mode,
                                    [](uint32_t status, abi::StringView text, void* first, void*) {
                                      auto& to = *static_cast<Answer*>(first);
                                      to.text = text_of(text);
                                      to.mapped = status == abi::kSuccess;
                                      to.done = true;
                                    },
                                    &answer, nullptr}),
                answer.done);
    if (!answer.mapped) {
      state_.check();
      throw InternalError("what the GPU computed cannot be read: " + answer.text);
    }
    const auto* data =
        static_cast<const std::byte*>(library.const_mapped_range(staging_, 0, bytes_));
    for (const Piece& piece : pieces_) {
      std::memcpy(piece.to.data(), data + piece.skipped, piece.to.size());
      data += piece.bytes;
    }
    library.unmap_buffer(staging_);
    state_.give_back_staging(std::exchange(staging_, nullptr), capacity_);
    state_.check();
  }

 private:
  GpuState& state_;
  std::span<const Piece> pieces_;
  uint64_t bytes_ = 0, capacity_ = 0;
  abi::Buffer staging_ = nullptr;
};

}  // namespace

void Gpu::read(std::span<const ReadRequest> requests) {
  Lock lock(state_->mutex);
  state_->check();
  const std::vector<Piece> pieces = pieces_of(requests);
  std::unique_ptr<Transfer> before;
  for (size_t begin = 0, end = 0; begin < pieces.size(); begin = end) {
    for (uint64_t bytes = 0; end < pieces.size(); ++end) {
      bytes += pieces[end].bytes;
      if (end > begin && bytes > kReadAtOnce) break;
    }
    auto transfer =
        std::make_unique<Transfer>(*state_, std::span(pieces).subspan(begin, end - begin));
    if (before) before->finish();
    before = std::move(transfer);
  }
  if (before) before->finish();
  for (const ReadRequest& request : requests)
    state_->counters.bytes_read += static_cast<int64_t>(request.to.size());
}

void Gpu::read(const Buffer& from, int64_t offset, std::span<std::byte> bytes) {
  const ReadRequest request{&from, offset, bytes};
  read(std::span(&request, 1));
}

void Gpu::write(const Buffer& to, int64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  Lock lock(state_->mutex);
  state_->check();
  check_stretch(to, offset, bytes.size());
  auto put = [&](int64_t at, std::span<const std::byte> words) {
    if (!words.empty())
      state_->library().write_buffer(state_->queue(), to.handle(), static_cast<uint64_t>(at),
                                     words.data(), words.size());
  };
  const int64_t end = offset + static_cast<int64_t>(bytes.size());
  const int64_t first = round_down(offset), last = round_up(end);
  if (first == offset && (last == end || end == to.bytes())) {
    const auto whole = static_cast<size_t>(round_down(end) - offset);
    put(offset, bytes.first(whole));
    std::array<std::byte, kWord> rest{};  // what follows the buffer's last byte is nobody's
    std::ranges::copy(bytes.subspan(whole), rest.begin());
    if (whole < bytes.size()) put(round_down(end), rest);
  } else {
    // Words that are written in part keep the rest.
    std::vector<std::byte> words(static_cast<size_t>(last - first));
    const auto stay = std::min<int64_t>(last, to.bytes()) - (last - kWord);
    const ReadRequest edges[] = {
        {&to, first,
         std::span(words).first(static_cast<size_t>(std::min(kWord, to.bytes() - first)))},
        {&to, last - kWord, std::span(words).last(kWord).first(static_cast<size_t>(stay))}};
    read(edges);
    state_->counters.bytes_read -= static_cast<int64_t>(edges[0].to.size() + edges[1].to.size());
    std::ranges::copy(bytes, words.begin() + (offset - first));
    put(first, words);
  }
  state_->counters.bytes_written += static_cast<int64_t>(bytes.size());
  state_->check();
}

void Gpu::copy(const Buffer& from, int64_t from_offset, const Buffer& to, int64_t to_offset,
               int64_t bytes) {
  if (bytes == 0) return;
  Lock lock(state_->mutex);
  state_->check();
  check_stretch(from, from_offset, static_cast<size_t>(bytes));
  check_stretch(to, to_offset, static_cast<size_t>(bytes));
  const bool ends = from_offset + bytes == from.bytes() && to_offset + bytes == to.bytes();
  if (from_offset % kWord != 0 || to_offset % kWord != 0 || (bytes % kWord != 0 && !ends))
    throw InternalError(fmt::format("a copy of {} bytes from {} to {} is of no whole words", bytes,
                                    from_offset, to_offset));
  abi::CommandEncoder encoder = state_->encoder();
  state_->library().copy_buffer(encoder, from.handle(), static_cast<uint64_t>(from_offset),
                                to.handle(), static_cast<uint64_t>(to_offset),
                                static_cast<uint64_t>(round_up(bytes)));
  state_->finish_and_submit(encoder);
}

}  // namespace anneal::webgpu
