// SPDX-License-Identifier: Apache-2.0
//
// On a GPU: the stem without its convolution's result in memory gives what cuDNN's convolution and
// the passes behind it give.  Which of them a training takes is a matter of speed.

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "trainer/backend/cuda/libraries/cuda_libraries.h"
#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/backend/cuda/stem/stem_autotune.h"

namespace trainer {
namespace {

TEST(FusedStem, GivesWhatItsPartsGive) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU";
  const StemImages all[] = {{16, 112, 112}, {2, 17, 24}, {3, 35, 33}};
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    if (dtype == DType::kBFloat16 && ComputeCapabilityMajor() < 8) continue;
    const auto libraries = MakeCudaLibraries({.storage = dtype}, false, nullptr, "");
    for (const StemImages& images : all) {
      const auto convolution = libraries->MakeConvolution(
          {.src = CudaImages({images.samples, kBlockChannels, images.height + kBlockKernel - 1,
                              images.width + kBlockKernel - 1},
                             dtype),
           .out_channels = 64,
           .kernel = kBlockKernel});
      const StemSize size = {.images = images,
                             .norm = NormShapeOf(convolution->dst()),
                             .cores = TensorCoresOf(ComputeCapabilityMajor())};
      ASSERT_TRUE(HasStemPasses(size));
      const double difference = StemVariantError(*convolution, size);
      std::printf("%s, %d x %d x %d: %.5f\n", std::string(NameOf(dtype)).c_str(),
                  static_cast<int>(images.samples), static_cast<int>(images.height),
                  static_cast<int>(images.width), difference);
      EXPECT_LE(difference, AllowedStemDifference(dtype));
    }
  }
}

}  // namespace
}  // namespace trainer
