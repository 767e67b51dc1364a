// Memory of a tensor, in the dtype's own format: on the host, and where a device has memory of its
// own there, too. Whoever reads gets what was written last, wherever that was.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "ir/dtype.h"

namespace anneal {

// What a device keeps of a tensor.
class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;
  virtual void fetch(std::span<std::byte> to) const = 0;
};

class Storage {
 public:
  Storage() = default;
  Storage(DType its_dtype, std::vector<int64_t> its_shape, Bytes bytes)
      : dtype(its_dtype),
        shape(std::move(its_shape)),
        size_(bytes.size()),
        host_(std::move(bytes)) {}
  // Without contents; the host's memory is taken when it is needed.
  Storage(DType its_dtype, std::vector<int64_t> its_shape, size_t size)
      : dtype(its_dtype), shape(std::move(its_shape)), size_(size) {}
  Storage(const Storage& other)
      : dtype(other.dtype), shape(other.shape), size_(other.size_), host_(other.read()) {}
  Storage& operator=(const Storage&) = delete;
  Storage(Storage&&) = default;
  Storage& operator=(Storage&&) = default;

  DType dtype = DType::F32;
  std::vector<int64_t> shape;

  size_t size() const { return size_; }  // bytes

  std::span<const std::byte> read() const {
    fetch();
    return {host_.data(), size_};
  }
  // Whether reading waits for no device.
  bool host_is_current() const { return host_.size() == size_ && newest_ != Newest::Remote; }
  // To change some of it: what others read from then on.
  std::span<std::byte> write() {
    fetch();
    return overwrite();
  }
  // To change all of it.
  std::span<std::byte> overwrite() {
    take_host();
    newest_ = Newest::Host;
    return {host_.data(), size_};
  }

  // ---- for devices with memory of their own

  const std::shared_ptr<RemoteMemory>& remote() const { return remote_; }
  bool remote_is_current() const { return remote_ && newest_ != Newest::Host; }
  // The device has what the host has.
  void set_remote(std::shared_ptr<RemoteMemory> memory) {
    remote_ = std::move(memory);
    newest_ = Newest::Both;
  }
  // The device has changed it.
  void changed_remotely() { newest_ = Newest::Remote; }

 private:
  enum class Newest : uint8_t { Host, Both, Remote };

  void take_host() const {
    if (host_.size() != size_) host_ = Bytes(size_);
  }
  void fetch() const {
    take_host();
    if (newest_ != Newest::Remote) return;
    remote_->fetch({host_.data(), size_});
    newest_ = Newest::Both;
  }

  size_t size_ = 0;
  mutable Bytes host_;
  mutable Newest newest_ = Newest::Host;
  std::shared_ptr<RemoteMemory> remote_;
};

}  // namespace anneal
