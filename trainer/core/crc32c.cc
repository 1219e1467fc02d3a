// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <bit>

namespace trainer {

std::uint32_t Crc32c(std::span<const std::byte> bytes) {
  constexpr std::size_t kChunk = 1u << 30;  // ISA-L takes the length as an int
  std::uint32_t crc = ~0u;
  while (!bytes.empty()) {
    const std::size_t length = std::min(bytes.size(), kChunk);
    // The buffer is only read; ISA-L's declaration lacks the const.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    crc = crc32_iscsi(data, static_cast<int>(length), crc);
    bytes = bytes.subspan(length);
  }
  return ~crc;
}

std::uint32_t MaskedCrc32c(std::span<const std::byte> bytes) {
  return std::rotr(Crc32c(bytes), 15) + 0xa282ead8u;
}

}  // namespace trainer
