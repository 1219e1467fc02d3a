// SPDX-License-Identifier: Apache-2.0
//
// The back end names its GPU in front of what its libraries keep.

#include "tests/support/test.h"
#include "tests/trainer/backend/cuda_emulator/runtime_api.h"
#include "trainer/backend/cuda/cuda_backend.h"
#include "trainer/backend/cuda/runtime/layout.h"

namespace trainer {
namespace {

constexpr const char* kPlans =
    "ddltraind plans 1, crc32c 6d1163a7\n"
    "CUDA emulated on the CPU, compute capability 8.0, 108 multiprocessors, driver for CUDA 12.2: "
    "convolution\tloops\n";

void MakeAConvolution(const std::shared_ptr<PlanCache>& plans) {
  const auto backend = MakeCudaBackend({.plans = plans});
  backend->MakeConvolution({.src = CudaImages({1, 8, 4, 4}, DType::kFloat32),
                            .out_channels = 8,
                            .kernel = 1,
                            .stride = 1,
                            .padding = 0});
}

TEST(CudaPlans, AreKeptByTheNameOfTheGpu) {
  const auto plans = std::make_shared<PlanCache>();
  MakeAConvolution(plans);
  EXPECT_EQ(plans->TakeNewEntries(), kPlans);
}

TEST(CudaPlans, AreNoNewsWhereTheyAreKnown) {
  const auto plans = std::make_shared<PlanCache>();
  ASSERT_TRUE(plans->Read(kPlans));
  MakeAConvolution(plans);
  EXPECT_EQ(plans->TakeNewEntries(), std::nullopt);
}

// An earlier version timed more.
TEST(CudaPlans, ThatNobodyAsksForAreKept) {
  PlanCache earlier;
  earlier.Add(
      "A GPU: forward of a convolution 256x64x56x56 to 64 channels, of a batch norm, with sums",
      "cudnn 3 1 2");
  const auto plans = std::make_shared<PlanCache>();
  ASSERT_TRUE(plans->Read(*earlier.TakeNewEntries()));
  MakeAConvolution(plans);
  EXPECT_THAT(plans->TakeNewEntries(),
              testing::Optional(AllOf(HasSubstr(", of a batch norm, with sums\tcudnn 3 1 2\n"),
                                      HasSubstr(": convolution\tloops\n"))));
}

TEST(CudaPlans, NeedNotBeKept) { MakeAConvolution(nullptr); }

}  // namespace
}  // namespace trainer
