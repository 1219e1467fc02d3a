// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/checksum.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace trainer {

void Checksum::Add(std::span<const std::byte> bytes) {
  constexpr std::size_t kChunk = std::size_t{1} << 30;  // ISA-L takes the length as an int
  while (!bytes.empty()) {
    const std::size_t length = std::min(bytes.size(), kChunk);
    // The buffer is only read; ISA-L's declaration lacks the const.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    state_ = crc32_iscsi(data, static_cast<int>(length), state_);
    bytes = bytes.subspan(length);
  }
}

std::uint32_t Crc32cOf(std::span<const std::byte> bytes) {
  Checksum checksum;
  checksum.Add(bytes);
  return checksum.value();
}

}  // namespace trainer
