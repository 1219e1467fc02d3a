// SPDX-License-Identifier: Apache-2.0

#include "scaling/memory.h"

#include <gtest/gtest.h>

namespace scaling {
namespace {

TEST(LargestBatch, IsTheLastMultipleOfEightThatFits) {
  for (const char* precision : {"fp16", "bf16", "amp", "tf32", "fp32"}) {
    for (const double memory : {8e9, 16e9, 32e9, 80e9, 141e9}) {
      const auto batch = LargestBatch(precision, memory);
      EXPECT_GT(batch, 0);
      EXPECT_EQ(batch % 8, 0);
      EXPECT_LE(MemoryNeeded(precision, batch), memory) << precision << " " << memory;
      EXPECT_GT(MemoryNeeded(precision, batch + 8), memory) << precision << " " << memory;
    }
  }
}

TEST(LargestBatch, IsNoneWhereNothingFits) {
  EXPECT_EQ(LargestBatch("fp16", 1e9), 0);
  EXPECT_EQ(LargestBatch("fp32", 0), 0);
}

// What people train with: 256 images in fp16 and 128 in fp32 on 16 GB of a V100.
TEST(LargestBatch, HoldsWhatAV100IsKnownToHold) {
  EXPECT_GE(LargestBatch("fp16", MemoryOf("V100")), 256);
  EXPECT_GE(LargestBatch("fp32", MemoryOf("V100")), 128);
  EXPECT_LT(LargestBatch("fp32", MemoryOf("V100")), 256);
}

TEST(MemoryOf, IsAsTheNameSaysOrElseTheLeastThatIsSold) {
  EXPECT_EQ(MemoryOf("V100-SXM2-32GB"), 32e9);
  EXPECT_EQ(MemoryOf("Tesla V100-SXM2-16GB"), 16e9);
  EXPECT_EQ(MemoryOf("v100"), 16e9);
  EXPECT_EQ(MemoryOf("A100"), 40e9);
  EXPECT_EQ(MemoryOf("NVIDIA A100-SXM4-80GB"), 80e9);
  EXPECT_EQ(MemoryOf("H100"), 80e9);
  EXPECT_EQ(MemoryOf("h200"), 141e9);
  EXPECT_EQ(MemoryOf("Some 12GB card"), 12e9);
  EXPECT_EQ(MemoryOf("GB10"), 0) << "no number before it";
  EXPECT_EQ(MemoryOf("K80"), 0);
  EXPECT_EQ(MemoryOf(""), 0);
}

}  // namespace
}  // namespace scaling
