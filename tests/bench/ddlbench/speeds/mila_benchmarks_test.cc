// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/speeds/mila_benchmarks.h"

#include <gtest/gtest.h>

namespace bench {
namespace {

// The numbers of mila-iqia/training, profiles/fast.json.
TEST(MilaBenchmarkOf, HasMilasSettings) {
  EXPECT_EQ(MilaBenchmarkOf("convnet").batch_size, 64);
  EXPECT_FALSE(MilaBenchmarkOf("convnet").half);
  EXPECT_EQ(MilaBenchmarkOf("convnet").kind, MilaKind::kOne);
  EXPECT_EQ(MilaBenchmarkOf("convnet_fp16").batch_size, 128);
  EXPECT_TRUE(MilaBenchmarkOf("convnet_fp16").half);
  EXPECT_EQ(MilaBenchmarkOf("convnet_distributed").kind, MilaKind::kDistributed);
  EXPECT_EQ(MilaBenchmarkOf("convnet_distributed").batch_size, 64);
  EXPECT_TRUE(MilaBenchmarkOf("convnet_distributed_fp16").half);
  EXPECT_EQ(MilaBenchmarkOf("convnet_distributed_fp16").batch_size, 128);
  EXPECT_EQ(MilaBenchmarkOf("loader").kind, MilaKind::kLoader);
  EXPECT_EQ(MilaBenchmarkOf("loader").batch_size, 256);
}

TEST(MilaBenchmarkOf, TakesAnotherNameForConvnet) {
  EXPECT_EQ(MilaBenchmarkOf("mine").batch_size, 64);
  EXPECT_EQ(MilaBenchmarkOf("mine").kind, MilaKind::kOne);
  EXPECT_EQ(MilaBenchmarkOf("").kind, MilaKind::kOne);
}

}  // namespace
}  // namespace bench
