// SPDX-License-Identifier: Apache-2.0
//
// What a training step of ResNet-50 takes of a GPU's memory, by its plan: NVIDIA's TensorFlow did
// not fit batch 256 into the 16 GB of a V100.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

#include "tests/trainer/backend/device.h"
#include "trainer/core/error.h"
#include "trainer/model/network.h"

namespace trainer {
namespace {

struct Memory {
  double arena = 0;  // grows with the batch
  double other = 0;  // does not
};

Memory MemoryOf(std::int64_t batch) {
  const auto backend = MakeTestedBackend("cuda_fp16", /*threads=*/1);
  const Network network(*backend, {.architecture = "resnet50", .batch = batch});
  Memory memory;
  for (const std::string& row : network.DescribeMemory()) {
    if (row.starts_with("  ")) continue;  // a part of the arena
    char name[40] = {};
    double bytes = 0;
    EXPECT_EQ(std::sscanf(row.c_str(), "%32c%lf bytes", name, &bytes), 2) << row;
    (std::strncmp(name, "arena ", 6) == 0 ? memory.arena : memory.other) += bytes;
  }
  return memory;
}

TEST(CudaMemory, ResNet50WithBatch256InFp16FitsAV100) {
  const Memory one = MemoryOf(1);
  const Memory three = MemoryOf(3);
  EXPECT_EQ(one.other, three.other);
  const double per_image = (three.arena - one.arena) / 2;
  constexpr double kGigabyte = 1e9;
  // Of 16.9 GB: CUDA and its libraries, and cuDNN's workspace, which the emulator does not have.
  constexpr double kRest = 1.5 * kGigabyte;
  const double needed = 256 * per_image + three.other + kRest;
  RecordProperty("megabytes_per_image", static_cast<int>(per_image / 1e6));
  std::printf("%.1f MB per image, %.2f GB for a batch of 256\n", per_image / 1e6,
              (256 * per_image + three.other) / kGigabyte);
  EXPECT_LT(needed, 16.9 * kGigabyte);
}

// The emulated GPU has 4 GiB.
TEST(CudaMemory, ABatchThatDoesNotFitIsRefusedWithOneThatMay) {
  try {
    MemoryOf(256);
    ADD_FAILURE() << "it fits";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_OSERR);
    EXPECT_THAT(error.what(),
                testing::MatchesRegex("a batch of 256 needs 1[0-9][.]. GB beside the weights, "
                                      "3[.]. GB are free: --batch_size=[0-9]+ may fit"));
  }
}

}  // namespace
}  // namespace trainer
