// SPDX-License-Identifier: Apache-2.0
//
// Owned memory, of a device or of the host, and who gives it.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace trainer {

// Owns memory of a device, or of the host for the device's use.  Movable, not copyable: a copy
// would be a silent transfer.
class Buffer {
 public:
  Buffer() = default;
  Buffer(void* data, std::size_t bytes, std::function<void(void*)> release)
      : data_(data, std::move(release)), bytes_(bytes) {}

  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<void, std::function<void(void*)>> data_{nullptr, [](void*) {}};
  std::size_t bytes_ = 0;
};

// Gives host memory, zeroed and aligned for any plain type.
using AllocateMemory = std::function<Buffer(std::size_t bytes)>;

inline Buffer AllocateOrdinaryMemory(std::size_t bytes) {
  return {new std::byte[bytes](), bytes,
          [](void* memory) { delete[] static_cast<std::byte*>(memory); }};
}

}  // namespace trainer
