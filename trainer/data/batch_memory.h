// SPDX-License-Identifier: Apache-2.0
//
// The memory of one batch of a source, in one piece: a device may want it to be memory that it
// reads at full speed (Backend::AllocateHost).

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/core/tensor.h"

namespace trainer {

class BatchMemory {
 public:
  BatchMemory(std::size_t images, std::size_t image_bytes, const AllocateMemory& allocate)
      : images_(images),
        pixel_bytes_(images * image_bytes),
        memory_(allocate(LabelsAt() + images * (sizeof(std::int32_t) + 1))) {}

  std::span<std::uint8_t> pixels() const { return {At<std::uint8_t>(0), pixel_bytes_}; }
  std::span<std::int32_t> labels() const { return {At<std::int32_t>(LabelsAt()), images_}; }
  std::span<std::uint8_t> mirror() const {
    return {At<std::uint8_t>(LabelsAt() + labels().size_bytes()), images_};
  }

 private:
  std::size_t LabelsAt() const { return (pixel_bytes_ + kAlignment - 1) / kAlignment * kAlignment; }
  template <typename T>
  T* At(std::size_t offset) const {
    return reinterpret_cast<T*>(memory_.data() + offset);
  }

  static constexpr std::size_t kAlignment = 64;
  std::size_t images_;
  std::size_t pixel_bytes_;
  Buffer memory_;
};

}  // namespace trainer
