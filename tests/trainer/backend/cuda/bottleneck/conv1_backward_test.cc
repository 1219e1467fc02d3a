// SPDX-License-Identifier: Apache-2.0
//
// The data gradient of a 1x1 convolution through the end of the block below, against loops, and
// with the batch norm that follows the convolution in front also against the pass: on the GPU, and
// on the emulator by the instructions of all generations.

#include "trainer/backend/cuda/bottleneck/conv1_backward.h"

#include <functional>
#include <span>
#include <type_traits>

#include "tests/trainer/backend/cuda/bottleneck/conv1_backward_values.h"
#include "tests/trainer/backend/cuda/bottleneck/kernel_values.h"
#include "tests/trainer/backend/cuda/bottleneck/norm_backward_values.h"

namespace trainer {
namespace {

// With `norm`, if it is there, in front.
template <typename T>
DgradResults RunDgrad(const DgradOperands<T>& of, const DgradRun& run,
                      const NormBackwardFront* norm = nullptr) {
  return RunDgradBy(of, run, [&](const Conv1BackwardShape& shape, const Conv1Backward& call) {
    if (norm != nullptr) {
      RunConv1BackwardWithNorm(shape, call, *norm, nullptr);
    } else {
      RunConv1Backward(shape, call, nullptr);
    }
  });
}

// One column of tiles and several, with and without a rest in each direction; fewer pixels than a
// tile has, and several tiles of a block; then the same with a filter in chunks, of which the
// number is odd and even, and one has eight of the depth.
constexpr Product kProducts[] = {{1, 8, 8},       {31, 40, 16},  {33, 64, 256},  {150, 64, 264},
                                 {130, 128, 256}, {70, 72, 136}, {40, 256, 128}, {65, 200, 144},
                                 {1, 320, 8},     {31, 264, 16}, {130, 512, 48}, {257, 384, 264},
                                 {140, 264, 520}};
constexpr Product kProductsOfStride2[] = {{70, 64, 256, 5, 7},  {48, 128, 40, 4, 4},
                                          {3, 40, 24, 1, 1},    {90, 256, 136, 6, 5},
                                          {294, 272, 40, 7, 7}, {100, 512, 264, 4, 5}};

template <typename T>
void ExpectExactDgrads(std::span<const Product> sizes) {
  for (const Product& size : sizes) {
    const DgradOperands<T> operands(size);
    for (const bool is_dual : {false, true}) {
      if (is_dual && size.height > 0) continue;
      const DgradResults expected = ExpectedDgrad(operands, is_dual);
      for (const int capability : Capabilities()) {
        const bool is_half = std::is_same_v<T, __half>;
        if (capability < 8 && (!is_half || size.filters > 128)) continue;
        for (const int sms : {1, 3, 108}) {
          SCOPED_TRACE(std::to_string(size.pixels) + " x " + std::to_string(size.filters) + " x " +
                       std::to_string(size.channels) + ", " + std::to_string(capability) + ", " +
                       std::to_string(sms));
          const bool in_place = sms == 3 && size.height == 0;
          const DgradResults results = RunDgrad(operands, {capability, sms, is_dual, in_place});
          EXPECT_EQ(results.diff_src, expected.diff_src);
          EXPECT_EQ(results.sums[0], expected.sums[0]);
          EXPECT_EQ(results.sums[1], expected.sums[1]);
        }
      }
    }
  }
}

using Conv1BackwardKernel = SharedMemoryTest;

TEST_F(Conv1BackwardKernel, IsExactForSmallIntegersInFp16) {
  ExpectExactDgrads<__half>(kProducts);
  ExpectExactDgrads<__half>(kProductsOfStride2);
}
TEST_F(Conv1BackwardKernel, IsExactForSmallIntegersInBf16) {
  ExpectExactDgrads<__nv_bfloat16>(kProducts);
  ExpectExactDgrads<__nv_bfloat16>(kProductsOfStride2);
}

// Runs with a batch norm in front: one block of columns and two, pixels and channels with and
// without a rest, padding.
template <typename T>
void ForEachWithNorm(const std::function<void(const Product& size, const DgradRun& run)>& call) {
  for (const Product& size : {Product{1, 8, 8},
                              {33, 64, 256},
                              {150, 40, 264},
                              {70, 128, 512},
                              {65, 72, 136},
                              {70, 64, 256, 5, 7},
                              {48, 128, 40, 4, 4}}) {
    for (const bool is_dual : {false, true}) {
      for (const int capability : Capabilities()) {
        for (const int sms : {1, 5, 108}) {
          const DgradRun run = {capability, sms, is_dual};
          if (!HasConv1BackwardWithNorm(ShapeOf<T>(size, run))) continue;
          SCOPED_TRACE(std::to_string(size.pixels) + " x " + std::to_string(size.filters) + " x " +
                       std::to_string(size.channels) + ", " + std::to_string(capability) + ", " +
                       std::to_string(sms) + (is_dual ? ", dual" : ""));
          call(size, run);
        }
      }
    }
  }
}

template <typename T>
void ExpectExactWithNorm() {
  ForEachWithNorm<T>([](const Product& size, const DgradRun& run) {
    DgradOperands<T> operands(size);
    const NormOperands<T> norm(size.pixels, size.filters, ValueKind::kIntegers);
    const NormMemory<T> memory(norm, run.sms);
    const NormBackwardFront front = memory.WithCoefficients();
    const DgradResults results = RunDgrad(operands, run, &front);
    operands.gradient = ExpectedDiffSrc(norm, operands.gradient);
    EXPECT_EQ(Loaded(memory.diff_src.Download()), Loaded(operands.gradient));
    const DgradResults expected = ExpectedDgrad(operands, run.is_dual);
    EXPECT_EQ(results.diff_src, expected.diff_src);
    EXPECT_EQ(results.sums[0], expected.sums[0]);
    EXPECT_EQ(results.sums[1], expected.sums[1]);
  });
}
TEST_F(Conv1BackwardKernel, WithNormIsExactForSmallIntegersInFp16) {
  ExpectExactWithNorm<__half>();
}
TEST_F(Conv1BackwardKernel, WithNormIsExactForSmallIntegersInBf16) {
  ExpectExactWithNorm<__nv_bfloat16>();
}

// To the bit.
template <typename T>
void ExpectWhatPassAndKernelGive() {
  ForEachWithNorm<T>([](const Product& size, const DgradRun& run) {
    for (const bool of_batch : {true, false}) {
      DgradOperands<T> operands(size, ValueKind::kNoise);
      // One channel less than there is room for.
      const NormOperands<T> norm(size.pixels, size.filters, ValueKind::kNoise, size.filters - 1);
      const NormMemory<T> memory(norm, run.sms);
      const NormMemory<T> of_pass(norm, run.sms);
      const NormBackwardFront front = memory.WithSums(of_batch);
      const DgradResults results = RunDgrad(operands, run, &front);
      operands.gradient = of_pass.RunPass(operands.gradient, of_batch);
      const DgradResults expected = RunDgrad(operands, run);
      EXPECT_EQ(Loaded(memory.diff_src.Download()), Loaded(operands.gradient));
      EXPECT_EQ(memory.diff_scale.Download(), of_pass.diff_scale.Download());
      EXPECT_EQ(memory.diff_shift.Download(), of_pass.diff_shift.Download());
      EXPECT_EQ(results.diff_src, expected.diff_src);
      EXPECT_EQ(results.sums[0], expected.sums[0]);
      EXPECT_EQ(results.sums[1], expected.sums[1]);
    }
  });
}
TEST_F(Conv1BackwardKernel, WithNormGivesWhatPassAndKernelGiveInFp16) {
  ExpectWhatPassAndKernelGive<__half>();
}
TEST_F(Conv1BackwardKernel, WithNormGivesWhatPassAndKernelGiveInBf16) {
  ExpectWhatPassAndKernelGive<__nv_bfloat16>();
}

// The sums are those of what was stored: rounding all of it would differ by much more.
TEST_F(Conv1BackwardKernel, AddsUpWhatItHasStored) {
  for (const std::size_t filters : {64, 328}) {
    const DgradOperands<__half> operands({400, filters, 72}, ValueKind::kNoise);
    for (const int capability : Capabilities()) {
      if (capability < 8 && filters > 128) continue;
      const DgradResults results = RunDgrad(operands, {.capability = capability, .is_dual = true});
      const DgradResults expected = ExpectedDgrad(operands, /*is_dual=*/true);
      ExpectNear(results.diff_src, expected.diff_src, 1e-3, "diff_src");
      for (std::size_t n = 0; n < 2; ++n) {
        const auto of = [&](std::size_t at) {
          return results.diff_src[at] * (ToFloat(operands.z[n][at]) - operands.saved[n][at % 72]);
        };
        Doubles sums(2 * 72);
        for (std::size_t at = 0; at < results.diff_src.size(); ++at) {
          const std::size_t c = at % 72;
          sums[c] += results.diff_src[at];
          sums[72 + c] += of(at) * operands.saved[n][72 + c];
        }
        ExpectNear(results.sums[n], sums, 2e-6, "sums");
      }
    }
  }
}

// A step whose gradients are NaN is seen to be bad; behind a ReLU that stops it, it is none.
TEST_F(Conv1BackwardKernel, KeepsWhatIsNotANumber) {
  for (const std::size_t filters : {64, 264}) {
    for (const int capability : Capabilities()) {
      if (capability < 8 && filters > 128) continue;
      DgradOperands<__half> operands({40, filters, 64});
      Assign(operands.gradient[5 * filters + 9], NAN);
      operands.mask[5 * 8] = 0x01;
      const DgradResults results = RunDgrad(operands, {.capability = capability});
      EXPECT_TRUE(std::isnan(results.diff_src[5 * 64]));
      EXPECT_EQ(results.diff_src[5 * 64 + 1], 0);
      EXPECT_TRUE(std::isnan(results.sums[0][0]));
      EXPECT_TRUE(std::isnan(results.sums[0][64]));
      EXPECT_FALSE(std::isnan(results.sums[0][1]));
    }
  }
}

// Without a GPU too.
TEST(HasConv1Backward, IsForWhatFitsIntoRegistersOrSharedMemory) {
  const auto has = [](DType dtype, int capability, int filters, int shared_kb = 0) {
    return HasConv1Backward({.filters = filters,
                             .dtype = dtype,
                             .compute_capability = capability,
                             .max_shared_bytes = static_cast<std::size_t>(shared_kb) << 10});
  };
  EXPECT_FALSE(has(DType::kFloat16, 6, 64));
  EXPECT_TRUE(has(DType::kFloat16, 7, 128));
  EXPECT_FALSE(has(DType::kFloat16, 7, 136));
  EXPECT_FALSE(has(DType::kBFloat16, 7, 64));
  EXPECT_TRUE(has(DType::kFloat16, 8, 256));
  EXPECT_TRUE(has(DType::kBFloat16, 12, 256));
  EXPECT_FALSE(has(DType::kFloat32, 9, 64));
  EXPECT_TRUE(has(DType::kFloat16, 8, 264, 104));
  EXPECT_FALSE(has(DType::kFloat16, 8, 264, 103));
  EXPECT_TRUE(has(DType::kBFloat16, 10, 512, 163));
  EXPECT_FALSE(has(DType::kFloat16, 9, 520, 227));
  EXPECT_FALSE(has(DType::kFloat16, 7, 512, 227));
  EXPECT_FALSE(has(DType::kFloat32, 9, 512, 227));
  Conv1BackwardShape shape = {.filters = 64, .stride = 2, .compute_capability = 8};
  EXPECT_TRUE(HasConv1Backward(shape));
  shape.is_dual = true;
  EXPECT_FALSE(HasConv1Backward(shape));
  shape.stride = 3;
  shape.is_dual = false;
  EXPECT_FALSE(HasConv1Backward(shape));
}

TEST(HasConv1BackwardWithNorm, IsForTwoBlocksOfColumns) {
  const auto has = [](int capability, int filters, int channels) {
    return HasConv1BackwardWithNorm({.filters = filters,
                                     .channels = channels,
                                     .dtype = DType::kFloat16,
                                     .compute_capability = capability});
  };
  EXPECT_TRUE(has(9, 128, 512));
  EXPECT_FALSE(has(9, 128, 520));
  EXPECT_FALSE(has(9, 136, 256));
  EXPECT_TRUE(has(7, 64, 512));
  EXPECT_TRUE(has(7, 128, 256));
  EXPECT_FALSE(has(7, 128, 264));
  EXPECT_FALSE(has(6, 64, 256));
}

}  // namespace
}  // namespace trainer
