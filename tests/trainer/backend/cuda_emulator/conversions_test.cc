// SPDX-License-Identifier: Apache-2.0
//
// __half and __nv_bfloat16 of the emulator convert as IEEE 754 and NVIDIA's GPUs do.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "tests/support/test.h"

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

unsigned ToHalf(float value) { return __half_as_ushort(__float2half_rn(value)); }
float FromHalf(unsigned bits) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}
unsigned ToBFloat16(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }
float FromBFloat16(unsigned bits) {
  return __bfloat162float(__ushort_as_bfloat16(static_cast<unsigned short>(bits)));
}

struct Row {
  float value;
  unsigned bits;
};

TEST(Half, RoundsToNearestEven) {
  const Row rows[] = {
      {0.0F, 0x0000},
      {-0.0F, 0x8000},
      {1.0F, 0x3C00},
      {-2.0F, 0xC000},
      {1 + 0x1p-11F, 0x3C00},             // half way, to even
      {1 + 0x3p-11F, 0x3C02},             // half way, to even
      {1 + 0x1p-11F + 0x1p-23F, 0x3C01},  // just above half way
      {2 - 0x1p-11F, 0x4000},             // a carry into the exponent
      {65504.0F, 0x7BFF},                 // the largest
      {65519.99F, 0x7BFF},
      {65520.0F, 0x7C00},
      {-1e30F, 0xFC00},
      {kInfinity, 0x7C00},
      {-kInfinity, 0xFC00},
      {kNan, 0x7FFF},
      {-kNan, 0x7FFF},
      {0x1p-14F, 0x0400},             // the smallest normal
      {0x1p-14F - 0x1p-24F, 0x03FF},  // the largest subnormal
      {0x1p-14F - 0x1p-25F, 0x0400},  // half way to normal, to even
      {-0x1p-24F, 0x8001},            // the smallest subnormal
      {0x1p-25F, 0x0000},             // half way to zero, to even
      {0x1p-25F + 0x1p-48F, 0x0001},
      {0x3p-25F, 0x0002},
      {-1e-30F, 0x8000},
  };
  for (const Row& row : rows) EXPECT_EQ(ToHalf(row.value), row.bits) << row.value;
}

TEST(Half, EveryBitPatternComesBack) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const bool nan = (bits & 0x7FFF) > 0x7C00;
    ASSERT_EQ(std::isnan(FromHalf(bits)), nan) << bits;
    ASSERT_EQ(ToHalf(FromHalf(bits)), nan ? 0x7FFFU : bits) << bits;
  }
}

// Each half against the next: what lies between goes to the nearer one.
TEST(Half, EveryNumberBetweenGoesToTheNearer) {
  for (unsigned bits = 0; bits < 0x7BFF; ++bits) {
    const float low = FromHalf(bits);
    const float high = FromHalf(bits + 1);
    const float middle = (low + high) / 2;  // exact
    ASSERT_LT(low, high);
    ASSERT_EQ(ToHalf(middle), bits + bits % 2) << bits;
    ASSERT_EQ(ToHalf(std::nextafter(middle, low)), bits) << bits;
    ASSERT_EQ(ToHalf(std::nextafter(middle, high)), bits + 1) << bits;
    ASSERT_EQ(ToHalf(-middle), 0x8000 + bits + bits % 2) << bits;
  }
}

TEST(BFloat16, RoundsToNearestEven) {
  const Row rows[] = {
      {0.0F, 0x0000},
      {-0.0F, 0x8000},
      {1.0F, 0x3F80},
      {-2.0F, 0xC000},
      {1 + 0x1p-8F, 0x3F80},             // half way, to even
      {1 + 0x3p-8F, 0x3F82},             // half way, to even
      {1 + 0x1p-8F + 0x1p-23F, 0x3F81},  // just above half way
      {2 - 0x1p-8F, 0x4000},             // a carry into the exponent
      {0x1.FEp127F, 0x7F7F},             // the largest
      {0x1.FFp127F, 0x7F80},             // half way past it
      {kInfinity, 0x7F80},
      {-kInfinity, 0xFF80},
      {kNan, 0x7FFF},
      {-kNan, 0x7FFF},
      {0x1p-126F, 0x0080},   // the smallest normal
      {0x1p-133F, 0x0001},   // the smallest subnormal
      {-0x1p-134F, 0x8000},  // half way to zero, to even
      {0x1p-134F + 0x1p-149F, 0x0001},
  };
  for (const Row& row : rows) EXPECT_EQ(ToBFloat16(row.value), row.bits) << row.value;
}

TEST(BFloat16, EveryBitPatternComesBack) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const bool nan = (bits & 0x7FFF) > 0x7F80;
    ASSERT_EQ(std::isnan(FromBFloat16(bits)), nan) << bits;
    ASSERT_EQ(ToBFloat16(FromBFloat16(bits)), nan ? 0x7FFFU : bits) << bits;
  }
}

}  // namespace
