// SPDX-License-Identifier: Apache-2.0
//
// The graphs that cudnn_fusions times are such that cuDNN has plans for them.  No GPU is needed.

#include "tests/trainer/backend/cuda/cudnn_fusions.h"

#include "tests/support/test.h"
#include "tests/trainer/backend/cuda/described_gpus.h"

namespace trainer {
namespace {

bool HasPlan(const CudnnTarget& target, const FusionGraph& graph) {
  const auto configs =
      RecommendedConfigs(target, MakeGraph(graph.operations(), target.handle), CUDNN_HEUR_MODE_A);
  return std::any_of(configs.begin(), configs.end(), [&](const CudnnDescriptor& config) {
    return MakePlan(target, config).has_value();
  });
}

class CudnnFusions : public testing::Test {
 protected:
  void SetUp() override {
    if (!kDevicesCanBeDescribed) GTEST_SKIP() << "cuDNN before 9.8 cannot be asked without a GPU";
  }
};

TEST_F(CudnnFusions, HavePlansOnAnH100) {
  const CudnnTarget target = Described(kH100);
  for (const Fusion fusion : kFusions) {
    const auto convolutions = ConvolutionsOfResNet50(fusion, 256);
    EXPECT_EQ(convolutions.size(), 12U);
    for (const FusedConvolution& of : convolutions) {
      EXPECT_TRUE(HasPlan(target, FusionGraph(of)))
          << NameOf(fusion) << ", " << of.size << " x " << of.size << ", " << of.channels << " to "
          << of.filters;
    }
  }
}

// conv1 of layer1.1 and 1.2 at batch 256: M bytes for 64 channels, 4 M for 256.
TEST_F(CudnnFusions, MoveWhatTheirTensorsHave) {
  constexpr std::size_t kM = std::size_t{256} * 56 * 56 * 64 * 2;
  constexpr std::size_t kFilter = 64 * 256 * 2;
  constexpr std::size_t kHalves = 256 * 2;
  constexpr std::size_t kFloats = 256 * 4;
  const struct {
    Fusion fusion;
    std::size_t tensors, bytes;
  } cases[] = {
      {Fusion::kForwardBehindNorm, 9, 13 * kM + kFilter + 2 * kHalves + 2 * 64 * 4},
      {Fusion::kForwardBehindDualNorm, 11, 13 * kM + kFilter + 4 * kHalves + 2 * 64 * 4},
      {Fusion::kBackwardToNorm, 15, 17 * kM + kFilter + 9 * kFloats},
      {Fusion::kBackwardToDualNorm, 24, 17 * kM + kFilter + 18 * kFloats},
  };
  for (const auto& [fusion, tensors, bytes] : cases) {
    const auto of = ConvolutionsOfResNet50(fusion, 256).at(2);
    ASSERT_EQ(of.channels, 256);
    const FusionGraph graph(of);
    EXPECT_EQ(graph.tensor_bytes().size(), tensors) << NameOf(fusion);
    EXPECT_EQ(graph.bytes(), bytes) << NameOf(fusion);
  }
}

}  // namespace
}  // namespace trainer
