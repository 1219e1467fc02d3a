// SPDX-License-Identifier: Apache-2.0
//
// What a training step of ResNet-50 takes of a GPU's memory, by its plan: NVIDIA's TensorFlow did
// not fit batch 256 into the 16 GB of a V100.

#include <cstdio>

#include "scaling/machine.h"
#include "tests/support/test.h"
#include "tests/trainer/backend/device.h"
#include "trainer/model/network_definition.h"
#include "trainer/program/run_memory.h"

namespace trainer {
namespace {

NetworkDefinition PlanOf(Backend& backend, std::int64_t batch) {
  return DefineNetwork(backend, {.arch = "resnet50", .batch_size = batch});
}

TEST(CudaMemory, ResNet50WithBatch256InFp16FitsAV100) {
  const auto backend = MakeTestedBackend("cuda_fp16", /*threads=*/1);
  const NetworkDefinition one = PlanOf(*backend, 1);
  const NetworkDefinition three = PlanOf(*backend, 3);
  const auto of_batch = [](const NetworkDefinition& plan) {
    return static_cast<double>(plan.arena.total_bytes());
  };
  const double other = static_cast<double>(one.bytes().total()) - of_batch(one);
  EXPECT_EQ(other, static_cast<double>(three.bytes().total()) - of_batch(three));
  const double per_image = (of_batch(three) - of_batch(one)) / 2;
  constexpr double kGigabyte = 1e9;
  // Of 16.9 GB: CUDA and its libraries, and cuDNN's workspace, which the emulator does not have.
  constexpr double kRest = 1.5 * kGigabyte;
  const double needed = 256 * per_image + other + kRest;
  RecordProperty("megabytes_per_image", static_cast<int>(per_image / 1e6));
  std::printf("%.1f MB per image, %.2f GB for a batch of 256\n", per_image / 1e6,
              (256 * per_image + other) / kGigabyte);
  EXPECT_LT(needed, 16.9 * kGigabyte);
}

// What ddlrun --advise computes without a GPU.
TEST(CudaMemory, IsWhatScalingSays) {
  for (const auto& [name, precision] :
       {std::pair("cuda_fp16", "fp16"), {"cuda_bf16", "bf16"}, {"cuda", "fp32"}}) {
    const auto backend = MakeTestedBackend(name, /*threads=*/1);
    const auto bytes_of = [&](std::int64_t batch) {
      return static_cast<double>(
          Sum(MemoryItems(PlanOf(*backend, batch), {.is_host = false})).device);
    };
    const double one = bytes_of(1);
    const double per_image = (bytes_of(5) - one) / 4;
    const double said_of_one = scaling::EstimateMemory(precision, 1);
    const double said_per_image = (scaling::EstimateMemory(precision, 5) - said_of_one) / 4;
    EXPECT_NEAR(said_per_image / per_image, 1, 0.02) << precision << ": " << per_image / 1e6;
    // The plan has 1 GB in reserve, scaling/machine.h 1.5: cuDNN's workspace.
    EXPECT_NEAR(said_of_one - one, 0.5e9, 0.05e9) << precision << ": " << one / 1e9;
  }
}

// Where the stem computes its convolution again, its result, 1.6 MB of an image, is nowhere: nor in
// a network's memory when it needs most.
TEST(CudaMemory, TheConvolutionOfTheStemTakesNoneWhereItIsComputedAgain) {
  const auto bytes_of = [](const std::string& name) {
    const auto backend = MakeTestedBackend(name, /*threads=*/1);
    return PlanOf(*backend, 4).arena.total_bytes();
  };
  constexpr std::size_t kConvolved = std::size_t{4} * 112 * 112 * 64 * 2;
  EXPECT_LE(bytes_of("cuda_fp16") + kConvolved / 2,
            bytes_of("cuda_fp16" + std::string(kRepeating)));
}

// Of the emulated GPU's 4 GiB one GB is left to CUDA's libraries.
TEST(CudaMemory, TheLargestBatchThatFitsIsFoundWithoutAllocatingIt) {
  const auto backend = MakeTestedBackend("cuda_fp16", /*threads=*/1);
  const std::size_t free = backend->free_bytes();
  const auto bytes_of = [&](std::int64_t batch) -> std::optional<MemoryBytes> {
    return Sum(MemoryItems(PlanOf(*backend, batch), {.is_host = backend->is_host()}));
  };
  const MemoryBytes room{free, std::numeric_limits<std::size_t>::max()};
  const std::int64_t largest = LargestBatch(bytes_of, room, 256);
  EXPECT_EQ(backend->free_bytes(), free);
  EXPECT_GT(largest, 30);
  EXPECT_LT(largest, 100);
  EXPECT_TRUE(bytes_of(largest)->FitInto(room));
  EXPECT_FALSE(bytes_of(largest + 1)->FitInto(room));
}

}  // namespace
}  // namespace trainer
