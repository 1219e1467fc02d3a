// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trainer {
namespace {

// The examples of IEEE 754 binary16: Wikipedia, "Half-precision floating-point format".
TEST(DType, WidensFloat16) {
  const struct {
    std::uint16_t bits;
    float value;
  } cases[] = {
      {0x0000, 0.0F},       {0x0001, 0x1p-24F}, {0x03ff, 0x3ffp-24F},      {0x0400, 0x1p-14F},
      {0x3555, 0x555p-12F}, {0x3c00, 1.0F},     {0x3c01, 1.0F + 0x1p-10F}, {0x7bff, 65504.0F},
      {0x7c00, INFINITY},   {0xc000, -2.0F},    {0xfc00, -INFINITY}};
  for (const auto& test : cases) EXPECT_EQ(WidenFloat16(test.bits), test.value) << test.bits;
  EXPECT_TRUE(std::isnan(WidenFloat16(0x7e00)));
  EXPECT_TRUE(std::signbit(WidenFloat16(0x8000)));
}

TEST(DType, WidensBFloat16) {
  EXPECT_EQ(WidenBFloat16(0x3f80), 1.0F);
  EXPECT_EQ(WidenBFloat16(0xc049), -0x1.92p1F);
  EXPECT_EQ(WidenBFloat16(0x0001), 0x1p-133F);
  EXPECT_TRUE(std::isinf(WidenBFloat16(0x7f80)));
}

}  // namespace
}  // namespace trainer
