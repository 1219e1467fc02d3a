// SPDX-License-Identifier: Apache-2.0
//
// Element types of tensors, in memory and in checkpoint files.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trainer {

enum class DType : std::uint8_t { kFloat32, kFloat16, kBFloat16, kUint8, kInt32, kInt64 };

// In bytes.
std::size_t SizeOf(DType dtype);

// As safetensors spells it: "F32", "F16", "BF16", "U8", "I32", "I64".
std::string_view NameOf(DType dtype);

// The value of the 16 bits of an IEEE binary16, or of a bfloat16; exact.
float WidenFloat16(std::uint16_t bits);
float WidenBFloat16(std::uint16_t bits);

}  // namespace trainer
