// SPDX-License-Identifier: Apache-2.0
//
// Numbers worked out by hand from the definitions in doc/reference/metrics.md.

#include "trainer/backend/op_work.h"

#include "tests/support/test.h"

namespace trainer {

void PrintTo(const OpWork& work, std::ostream* out) {
  *out << work.flop << " flop, " << work.bytes << " bytes";
}

namespace {

constexpr DType kFp32 = DType::kFloat32;
constexpr DType kFp16 = DType::kFloat16;

// 2 images of 4 channels and 6 x 6 pixels to 8 channels of 3 x 3.
class ConvolutionWork : public testing::Test {
 protected:
  ConvolutionSpec spec_ = {ChannelsLast({2, 4, 6, 6}, kFp16), 8, 3, 2, 1};
  TensorDesc filter_ = ChannelsLast({8, 4, 3, 3}, kFp16);
  TensorDesc dst_ = ChannelsLast({2, 8, 3, 3}, kFp16);
  // 2*8*3*3 values of 4*3*3 products each.
  static constexpr double kFlop = 2.0 * 144 * 36;
  static constexpr double kBytes = 2 * (288 + 288 + 144);
};

TEST_F(ConvolutionWork, IsTheSameInAllThreePasses) {
  const OpWork expected = {kFlop, kBytes};
  EXPECT_EQ(ConvolutionForwardWork(spec_, filter_, dst_), expected);
  EXPECT_EQ(ConvolutionBackwardDataWork(spec_, filter_, dst_), expected);
  EXPECT_EQ(ConvolutionBackwardFilterWork(spec_, filter_, dst_), expected);
}

TEST_F(ConvolutionWork, ReadsTheGradientThatItAddsTo) {
  spec_.adds_diff_src = true;
  EXPECT_EQ(ConvolutionBackwardDataWork(spec_, filter_, dst_), (OpWork{kFlop, kBytes + 2 * 288}));
  EXPECT_EQ(ConvolutionForwardWork(spec_, filter_, dst_), (OpWork{kFlop, kBytes}));
}

TEST_F(ConvolutionWork, LeavesPaddingOut) {
  spec_.src.bytes *= 2;
  filter_.bytes *= 2;
  dst_.bytes *= 2;
  EXPECT_EQ(ConvolutionForwardWork(spec_, filter_, dst_), (OpWork{kFlop, kBytes}));
}

TEST(OpWork, OfBatchNorm) {
  BatchNormSpec spec;
  spec.src = ChannelsLast({2, 4, 5, 5}, kFp32);  // 200 values, 800 bytes
  EXPECT_EQ(BatchNormForwardWork(spec, Mode::kTraining), (OpWork{1000, 1600}));
  EXPECT_EQ(BatchNormForwardWork(spec, Mode::kFrozen), (OpWork{400, 1600}));
  EXPECT_EQ(BatchNormForwardWork(spec, Mode::kInference), (OpWork{400, 1600}));
  EXPECT_EQ(BatchNormBackwardWork(spec, Mode::kTraining), (OpWork{1600, 2400}));
  EXPECT_EQ(BatchNormBackwardWork(spec, Mode::kFrozen), (OpWork{1000, 2400}));
  spec.relu = true;
  EXPECT_EQ(BatchNormForwardWork(spec, Mode::kTraining), (OpWork{1200, 1600}));
  EXPECT_EQ(BatchNormBackwardWork(spec, Mode::kTraining), (OpWork{1800, 3200}));
  spec.add = true;
  EXPECT_EQ(BatchNormForwardWork(spec, Mode::kTraining), (OpWork{1400, 2400}));
  EXPECT_EQ(BatchNormBackwardWork(spec, Mode::kTraining), (OpWork{1800, 4000}));
}

TEST(OpWork, OfPools) {
  const MaxPoolSpec pool = {ChannelsLast({2, 4, 6, 6}, kFp32), 3, 2, 1};
  const TensorDesc pooled = ChannelsLast({2, 4, 3, 3}, kFp32);
  EXPECT_EQ(MaxPoolForwardWork(pool, pooled), (OpWork{72 * 9, 4 * (288 + 72)}));
  EXPECT_EQ(MaxPoolBackwardWork(pool, pooled), (OpWork{72, 4 * (288 + 72)}));
  EXPECT_EQ(GlobalAveragePoolWork(pooled, RowMajor({2, 4}, kFp32)), (OpWork{72, 4 * (72 + 8)}));
}

TEST(OpWork, OfTheHead) {
  const LinearSpec linear = {RowMajor({2, 4}, kFp16), 10};
  const TensorDesc weight = RowMajor({10, 4}, kFp16);
  const TensorDesc logits = RowMajor({2, 10}, kFp32);
  EXPECT_EQ(LinearForwardWork(linear, weight, logits), (OpWork{160, 2 * 8 + 2 * 40 + 4 * 20}));
  EXPECT_EQ(LinearBackwardWork(linear, weight, logits), (OpWork{320, 4 * 8 + 4 * 40 + 4 * 20}));
  EXPECT_EQ(SoftmaxCrossEntropyWork(logits, true), (OpWork{100, 160}));
  EXPECT_EQ(SoftmaxCrossEntropyWork(logits, false), (OpWork{80, 80}));
}

TEST(OpWork, OfTheInput) {
  EXPECT_EQ(InputTransformWork(ChannelsLast({2, 3, 4, 4}, kFp32)), (OpWork{192, 96 + 4 * 96}));
}

// 100 weights with decay, 60 without; the last 80 have gradients in 16 bits.
TEST(OpWork, OfTheUpdate) {
  const std::vector<ParameterSegment> segments = {{0, 100, true}, {100, 60, false}};
  const double flop = 100 * 9 + 60 * 5;
  EXPECT_EQ(UpdateWork(OptimizerKind::kSgd, segments, {}, kFp32, false), (OpWork{flop, 160 * 20}));
  FlatGradients gradients{.compute_from = 80};
  EXPECT_EQ(UpdateWork(OptimizerKind::kSgd, segments, gradients, kFp16, true),
            (OpWork{flop, 160 * 16 + 80 * 4 + 80 * 2 + 160 * 2}));
  // Gradient and weight once more.
  EXPECT_EQ(UpdateWork(OptimizerKind::kLars, segments, gradients, kFp16, true),
            (OpWork{flop + 200, 160 * 16 + 2 * (80 * 4 + 80 * 2) + 160 * 2 + 160 * 4}));
}

TEST(OpWork, OfAFusedStem) {
  const StemSpec stem = {2, 11, 32, 64};
  const TensorDesc dst = ChannelsLast({2, 64, 3, 8}, kFp16);
  const double flop = 2.0 * (2 * 64 * 6 * 16) * (3 * 49);
  const double bytes = 2 * 3 * 11 * 32 + 2 * (64 * 3 * 49) + 2 * (2 * 64 * 3 * 8);
  EXPECT_EQ(StemForwardWork(stem, dst), (OpWork{flop, bytes}));
  EXPECT_EQ(StemBackwardWork(stem, dst), (OpWork{flop, bytes}));
}

}  // namespace
}  // namespace trainer
