// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C (Castagnoli; RFC 3720 B.4) of bytes that come in pieces, by ISA-L with the processor's
// instructions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace trainer {

class Checksum {
 public:
  void Add(std::span<const std::byte> bytes);
  std::uint32_t value() const { return ~state_; }

 private:
  std::uint32_t state_ = ~std::uint32_t{0};
};

std::uint32_t Crc32cOf(std::span<const std::byte> bytes);

}  // namespace trainer
