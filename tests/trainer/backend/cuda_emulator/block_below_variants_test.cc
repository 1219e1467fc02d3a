// SPDX-License-Identifier: Apache-2.0
//
// The kernels of bottlenecks that know which one is below them are taken only where they are
// faster, and only where they give what the passes give.

#include <string>
#include <utility>

#include "tests/support/test.h"
#include "tests/trainer/backend/cuda_emulator/odd_libraries.h"
#include "tests/trainer/backend/cuda_emulator/tensor_cores.h"
#include "trainer/backend/cuda/bottleneck/bottleneck.h"
#include "trainer/backend/cuda/runtime/layout.h"

namespace trainer {
namespace {

bool IsConv1(const ConvolutionSpec& spec, const ConvolutionFusions& /*fusions*/) {
  return spec.adds_diff_src;
}

class Conv1VariantTest : public testing::Test {
 protected:
  // Of a block on one that reads `channels`: a pair is below unless they are 32.
  struct Variants {
    Conv1Variant forward, backward;
    bool operator==(const Variants&) const = default;
  };
  Variants Choose(Kind kind, std::int64_t channels = 32, DType dtype = DType::kFloat16,
                  std::int64_t stride = 1) {
    OddLibraries libraries(dtype, IsConv1, kind, plans_);
    CudaBottleneck below(libraries, {CudaImages({1, channels, 3, 5}, dtype), 8, 32, 1});
    CudaBottleneck above(libraries, {below.dst(), 8, 32, stride});
    above.set_below(below.end());
    const Variants variants = {above.conv1_forward_variant(), above.conv1_variant()};
    EXPECT_EQ(below.end()->is_left, variants.forward == Conv1Variant::kFused);
    EXPECT_EQ(below.end()->partial_blocks > 0, variants.backward == Conv1Variant::kFused);
    return variants;
  }

  static constexpr Variants kFused = {Conv1Variant::kFused, Conv1Variant::kFused};
  static constexpr Variants kSeparate = {Conv1Variant::kSeparate, Conv1Variant::kSeparate};
  static constexpr const char* kForward =
      "convolution of 15 pixels from 32 to 8 channels with the end of the block below, F16";
  static constexpr const char* kBackward =
      "data gradient of 15 pixels from 8 to 32 channels into the block below, F16";
  DevicePlanCache plans_{std::make_shared<PlanCache>(), "a GPU"};
};

TEST_F(Conv1VariantTest, IsTheKernelWhereThatIsFaster) {
  EXPECT_EQ(Choose(Kind::kSlow), kFused);
  EXPECT_EQ(plans_.Find(kForward), "kernel");
  EXPECT_EQ(plans_.Find(kBackward), "kernel");
  EXPECT_EQ(Choose(Kind::kSlow, 16), kFused);
  EXPECT_EQ(plans_.Find(kForward + std::string(", dual")), "kernel");
  EXPECT_EQ(plans_.Find(kBackward + std::string(", dual")), "kernel");
  EXPECT_EQ(Choose(Kind::kSlow, 32, DType::kBFloat16), kFused);
  EXPECT_EQ(Choose(Kind::kSlow, 32, DType::kFloat16, 2), kFused);
  EXPECT_EQ(plans_.Find(kBackward + std::string(", shortcut of stride 2")), "kernel");
}

TEST_F(Conv1VariantTest, AreThePassesWhereTheKernelIsSlower) {
  cuda_emulator::PretendProductsTake(std::chrono::seconds(1));
  EXPECT_EQ(Choose(Kind::kRight), kSeparate);
  EXPECT_EQ(plans_.Find(kForward), "separate");
  EXPECT_EQ(plans_.Find(kBackward), "separate");
  cuda_emulator::PretendProductsTake({});
}

// However slow they are.
TEST_F(Conv1VariantTest, AreThePassesWhereTheKernelGivesSomethingElse) {
  for (const std::int64_t channels : {16, 32}) {
    for (const Kind kind : {Kind::kWrongData, Kind::kNotANumber}) {
      plans_ = {std::make_shared<PlanCache>(), "a GPU"};
      plans_.Add(kForward, "kernel");
      EXPECT_EQ(Choose(kind, channels).backward, Conv1Variant::kSeparate);
    }
    plans_ = {std::make_shared<PlanCache>(), "a GPU"};
    plans_.Add(kBackward, "kernel");
    EXPECT_EQ(Choose(Kind::kWrongForward, channels).forward, Conv1Variant::kSeparate);
  }
}

TEST_F(Conv1VariantTest, IsAsThePlansHaveIt) {
  plans_.Add(kForward, "kernel");
  plans_.Add(kBackward, "separate");
  EXPECT_EQ(Choose(Kind::kWrongForward), (Variants{Conv1Variant::kFused, Conv1Variant::kSeparate}));
  plans_.Add(kForward, "separate");
  plans_.Add(kBackward, "kernel");
  EXPECT_EQ(Choose(Kind::kWrongData), (Variants{Conv1Variant::kSeparate, Conv1Variant::kFused}));
}

class Bn1VariantTest : public Conv1VariantTest {
 protected:
  // Of a block that goes through the end of another.
  Bn1Variant ChooseBn1(std::int64_t filters = 8, DType dtype = DType::kFloat16) {
    OddLibraries libraries(dtype, IsConv1, Kind::kSlow, plans_);
    CudaBottleneck below(libraries, {CudaImages({1, 32, 3, 5}, dtype), 8, 32, 1});
    CudaBottleneck above(libraries, {below.dst(), filters, 32, 1});
    above.set_below(below.end());
    EXPECT_EQ(above.conv1_variant(), Conv1Variant::kFused);
    return above.bn1_variant();
  }

  const std::string name_ = "batch norm and " + std::string(kBackward);
};

TEST_F(Bn1VariantTest, IsFoundAndKept) {
  const bool is_fused = ChooseBn1() == Bn1Variant::kFused;  // the clock says so
  EXPECT_EQ(plans_.Find(name_), is_fused ? "kernel" : "separate");
}

TEST_F(Bn1VariantTest, IsAsThePlansHaveIt) {
  plans_.Add(name_, "kernel");
  EXPECT_EQ(ChooseBn1(), Bn1Variant::kFused);
  plans_.Add(name_, "separate");
  EXPECT_EQ(ChooseBn1(), Bn1Variant::kSeparate);
}

// As many filters as go without bn1; no sums of bn1's gradient.
TEST_F(Bn1VariantTest, IsSeparateWithoutAKernelOrSums) {
  EXPECT_EQ(ChooseBn1(136), Bn1Variant::kSeparate);
  EXPECT_EQ(ChooseBn1(8, DType::kBFloat16), Bn1Variant::kSeparate);
  EXPECT_FALSE(plans_.Find("batch norm and " + std::string(kBackward)));
}

// Together with the end below.
TEST_F(Bn1VariantTest, IsGivenUp) {
  plans_.Add(name_, "kernel");
  OddLibraries libraries(DType::kFloat16, IsConv1, Kind::kSlow, plans_);
  CudaBottleneck below(libraries, {CudaImages({1, 32, 3, 5}, DType::kFloat16), 8, 32, 1});
  CudaBottleneck above(libraries, {below.dst(), 8, 32, 1});
  above.set_below(below.end());
  EXPECT_EQ(above.bn1_variant(), Bn1Variant::kFused);
  above.set_below(nullptr);
  EXPECT_EQ(above.bn1_variant(), Bn1Variant::kSeparate);
}

class Conv1WithFilterTest : public testing::Test {
 protected:
  // Of a block of 64 filters on one that gives 256 channels.
  Bn1Variant Choose(Kind kind, DType dtype = DType::kFloat16) {
    OddLibraries libraries(dtype, IsConv1, kind, plans_);
    CudaBottleneck below(libraries, {CudaImages({1, 256, 3, 5}, dtype), 8, 256, 1});
    CudaBottleneck above(libraries, {below.dst(), 64, 256, 1});
    above.set_below(below.end());
    return above.bn1_variant();
  }
  void SetUp() override {
    plans_.Add(kBackward, "kernel");
    plans_.Add(bn1_, "kernel");
  }

  static constexpr const char* kBackward =
      "data gradient of 15 pixels from 64 to 256 channels into the block below, F16";
  const std::string bn1_ = "batch norm and " + std::string(kBackward);
  const std::string name_ = "filter gradient, " + bn1_;
  DevicePlanCache plans_{std::make_shared<PlanCache>(), "a GPU"};
};

TEST_F(Conv1WithFilterTest, IsTheKernelWhereThatIsFaster) {
  EXPECT_EQ(Choose(Kind::kSlow), Bn1Variant::kFusedWithFilter);
  EXPECT_EQ(plans_.Find(name_), "kernel");
  plans_ = {std::make_shared<PlanCache>(), "a GPU"};
  plans_.Add(kBackward, "kernel");
  plans_.Add(bn1_, "separate");
  EXPECT_EQ(Choose(Kind::kSlow), Bn1Variant::kFusedWithFilter);
}
// However slow they are.
TEST_F(Conv1WithFilterTest, AreTheOtherKernelsWhereItGivesSomethingElse) {
  EXPECT_EQ(Choose(Kind::kWrongFilter), Bn1Variant::kFused);
  EXPECT_EQ(plans_.Find(name_), "separate");
}
TEST_F(Conv1WithFilterTest, IsAsThePlansHaveIt) {
  plans_.Add(name_, "kernel");
  EXPECT_EQ(Choose(Kind::kWrongFilter), Bn1Variant::kFusedWithFilter);
  plans_.Add(name_, "separate");
  EXPECT_EQ(Choose(Kind::kSlow), Bn1Variant::kFused);
  plans_.Add(bn1_, "separate");
  EXPECT_EQ(Choose(Kind::kSlow), Bn1Variant::kSeparate);
}
TEST_F(Conv1WithFilterTest, IsNotThereWithoutSums) {
  EXPECT_EQ(Choose(Kind::kSlow, DType::kBFloat16), Bn1Variant::kSeparate);
}

bool IsWideConv3(const ConvolutionSpec& spec, const ConvolutionFusions& fusions) {
  return fusions.drelu && spec.kernel == 1 && spec.out_channels >= 512;
}

class Conv3DataGradientTest : public testing::Test {
 protected:
  // Of the one in the middle of three.
  Conv3Variant Choose(Kind kind, DType dtype = DType::kFloat16, std::int64_t mid = 8,
                      std::int64_t out = 512) {
    OddLibraries libraries(dtype, IsWideConv3, kind, plans_);
    CudaBottleneck below(libraries, {CudaImages({1, out, 3, 5}, dtype), 8, out, 1});
    CudaBottleneck block(libraries, {below.dst(), mid, out, 1});
    CudaBottleneck above(libraries, {below.dst(), 8, out, 1});
    block.set_below(below.end());
    above.set_below(block.end());
    EXPECT_EQ(block.conv1_variant(), Conv1Variant::kFused);
    EXPECT_EQ(above.conv1_variant(), Conv1Variant::kFused);
    EXPECT_EQ(below.conv3_variant(), Conv3Variant::kSeparate);
    EXPECT_EQ(above.conv3_variant(), Conv3Variant::kSeparate);
    return block.conv3_variant();
  }
  void SetUp() override {
    // What the blocks have beside it, so that it is not timed.
    for (const std::string type : {"F16", "BF16"}) {
      using Sizes = std::pair<std::string, std::string>;
      for (const auto& [mid, out] : {Sizes{"8", "512"}, {"136", "512"}, {"8", "1032"}}) {
        const std::string backward = "data gradient of 15 pixels from " + mid + " to " + out +
                                     " channels into the block below, " + type;
        plans_.Add(backward, "kernel");
        plans_.Add("batch norm and " + backward, "separate");
        plans_.Add("convolution of 15 pixels from " + out + " to " + mid +
                       " channels with the end of the block below, " + type,
                   "separate");
      }
    }
  }

  static constexpr const char* kName =
      "data gradient of 15 pixels from 512 to 8 channels between batch norms, F16";
  DevicePlanCache plans_{std::make_shared<PlanCache>(), "a GPU"};
};

TEST_F(Conv3DataGradientTest, IsTheKernelWhereThatIsFaster) {
  EXPECT_EQ(Choose(Kind::kSlow), Conv3Variant::kFusedDataGradient);
  EXPECT_EQ(plans_.Find(kName), "kernel");
  EXPECT_EQ(Choose(Kind::kSlow, DType::kBFloat16), Conv3Variant::kFusedDataGradient);
  EXPECT_EQ(Choose(Kind::kSlow, DType::kFloat16, 136), Conv3Variant::kFusedDataGradient);
}
// However slow they are.
TEST_F(Conv3DataGradientTest, ArePassesWhereTheKernelGivesSomethingElse) {
  for (const Kind kind : {Kind::kWrongData, Kind::kNotANumber}) {
    plans_.Add(kName, "nothing known");
    EXPECT_EQ(Choose(kind), Conv3Variant::kSeparate);
  }
}
TEST_F(Conv3DataGradientTest, IsAsThePlansHaveIt) {
  plans_.Add(kName, "kernel");
  EXPECT_EQ(Choose(Kind::kWrongData), Conv3Variant::kFusedDataGradient);
  plans_.Add(kName, "separate");
  EXPECT_EQ(Choose(Kind::kSlow), Conv3Variant::kSeparate);
}
TEST_F(Conv3DataGradientTest, ArePassesWithoutAKernel) {
  EXPECT_EQ(Choose(Kind::kSlow, DType::kFloat16, 8, 1032), Conv3Variant::kSeparate);
}

// The lower one of the two that are timed has a block below it, which is not there then.
TEST_F(Conv1VariantTest, IsFoundAboveABlockThatHasOne) {
  OddLibraries libraries(DType::kFloat16, IsConv1, Kind::kSlow, plans_);
  CudaBottleneck bottom(libraries, {CudaImages({1, 16, 3, 5}, DType::kFloat16), 8, 32, 1});
  CudaBottleneck middle(libraries, {bottom.dst(), 8, 32, 1});
  CudaBottleneck top(libraries, {middle.dst(), 8, 32, 1});
  middle.set_below(bottom.end());
  const int blocks = bottom.end()->partial_blocks;
  top.set_below(middle.end());
  EXPECT_EQ(top.conv1_variant(), Conv1Variant::kFused);
  EXPECT_EQ(top.conv1_forward_variant(), Conv1Variant::kFused);
  EXPECT_EQ(middle.below(), bottom.end());
  EXPECT_EQ(middle.below_forward(), bottom.end());
  EXPECT_EQ(bottom.end()->partial_blocks, blocks);
  EXPECT_GT(blocks, 0);
  EXPECT_TRUE(bottom.end()->is_left);
  middle.set_below(nullptr);
  EXPECT_EQ(bottom.end()->partial_blocks, 0);
  EXPECT_FALSE(bottom.end()->is_left);
}

// Where there is no kernel, and where results must not depend on a clock.
TEST(Conv1Variant, IsSeparateWithoutAKernel) {
  struct Case {
    DType dtype;
    std::int64_t filters, channels;
    bool deterministic;
    Conv1Variant forward, backward;
  };
  constexpr Conv1Variant kFused = Conv1Variant::kFused;
  constexpr Conv1Variant kSeparate = Conv1Variant::kSeparate;
  for (const Case& of : {Case{DType::kFloat16, 128, 512, false, kFused, kFused},
                         {DType::kFloat16, 256, 1024, false, kFused, kFused},
                         {DType::kBFloat16, 256, 1032, false, kSeparate, kFused},
                         {DType::kBFloat16, 512, 32, false, kSeparate, kFused},
                         {DType::kFloat16, 520, 32, false, kSeparate, kSeparate},
                         {DType::kFloat16, 8, 32, true, kSeparate, kSeparate},
                         {DType::kFloat32, 8, 32, false, kSeparate, kSeparate}}) {
    const auto libraries = MakeCudaLibraries({.storage = of.dtype}, of.deterministic, nullptr, "");
    CudaBottleneck below(*libraries, {CudaImages({1, 32, 3, 5}, of.dtype), 8, of.channels, 1});
    CudaBottleneck above(*libraries, {below.dst(), of.filters, 32, 1});
    above.set_below(below.end());
    EXPECT_EQ(above.conv1_forward_variant(), of.forward) << of.filters << " " << of.channels;
    EXPECT_EQ(above.conv1_variant(), of.backward) << of.filters << " " << of.channels;
  }
}

}  // namespace
}  // namespace trainer
