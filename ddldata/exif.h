// SPDX-License-Identifier: Apache-2.0
//
// The orientation that a camera has noted in a JPEG (EXIF 2.3, tag 0x0112).  Pure.

#pragma once

#include <cstdint>
#include <span>

namespace trainer {

// 1 to 8; 1, as it is, where there is none.  What is damaged says nothing.
int ExifOrientation(std::span<const std::uint8_t> jpeg);

}  // namespace trainer
