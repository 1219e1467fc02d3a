// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C (Castagnoli; RFC 3720 B.4), by ISA-L with the processor's instructions.  Pure.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace trainer {

std::uint32_t Crc32c(std::span<const std::byte> bytes);

// As TFRecord and TensorBoard files store it: rotated right by 15 bits, plus 0xa282ead8
// (TensorFlow, tsl/lib/hash/crc32c.h), so that the checksum of data that holds checksums stays a
// good one.
std::uint32_t MaskedCrc32c(std::span<const std::byte> bytes);

}  // namespace trainer
