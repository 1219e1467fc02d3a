// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <bit>
#include <cstddef>

namespace trainer {

std::uint32_t Crc32c(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kChunk = 1u << 30;  // ISA-L takes the length as an int
  std::uint32_t crc = ~0u;
  while (!bytes.empty()) {
    const std::size_t length = std::min(bytes.size(), kChunk);
    // The buffer is only read; ISA-L's declaration lacks the const.
    crc = crc32_iscsi(const_cast<unsigned char*>(bytes.data()), static_cast<int>(length), crc);
    bytes = bytes.subspan(length);
  }
  return ~crc;
}

std::uint32_t MaskedCrc32c(std::span<const std::uint8_t> bytes) {
  return std::rotr(Crc32c(bytes), 15) + 0xa282ead8u;
}

}  // namespace trainer
