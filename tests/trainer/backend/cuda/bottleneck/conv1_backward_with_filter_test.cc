// SPDX-License-Identifier: Apache-2.0
//
// All that goes backward through a 1x1 convolution, its batch norm and the end of the block below,
// against loops and against the kernel that leaves the filter's gradient to others: on the GPU, and
// on the emulator by the instructions of all generations that have it.

#include "trainer/backend/cuda/bottleneck/conv1_backward_with_filter.h"

#include <algorithm>
#include <functional>
#include <type_traits>

#include "tests/trainer/backend/cuda/bottleneck/conv1_backward_values.h"
#include "tests/trainer/backend/cuda/bottleneck/kernel_values.h"
#include "tests/trainer/backend/cuda/bottleneck/norm_backward_values.h"

namespace trainer {
namespace {

// What the convolution has read, and the mask of where that is positive.
template <typename T>
std::vector<T> DrawSource(ValueKind kind, DgradOperands<T>& of) {
  const std::vector<float> values = Draw(kind, of.size.pixels * of.size.channels, 9, 1);
  std::ranges::fill(of.mask, std::uint8_t{0});
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (values[at] > 0) of.mask[at / 8] |= static_cast<std::uint8_t>(1U << at % 8);
  }
  return Stored<T>(values);
}

struct AllGradients {
  DgradResults data;
  Doubles filter;
};

// Scratch and the filter's gradient begin as not-a-number, and so does the mask, which none reads.
template <typename T>
AllGradients RunAll(const DgradOperands<T>& of, const DgradRun& run, const NormBackwardFront& norm,
                    const std::vector<T>& src) {
  const DeviceValues<T> source(src);
  const DeviceValues<T> diff_filter(of.filter.size());
  AllGradients results;
  results.data = RunDgradBy(of, run, [&](const Conv1BackwardShape& shape, Conv1Backward call) {
    ASSERT_TRUE(HasConv1BackwardWithFilter(shape));
    const DeviceValues<float> scratch(
        static_cast<std::size_t>(Conv1BackwardWithFilterScratchFloats(shape)));
    call.mask = nullptr;
    RunConv1BackwardWithFilter(shape, call, norm,
                               {source.data(), diff_filter.data(), scratch.data()}, nullptr);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  });
  results.filter = Loaded(diff_filter.Download());
  return results;
}

// `gradient`: of what the convolution gives.
template <typename T>
Doubles ExpectedFilter(const Product& size, const std::vector<T>& gradient,
                       const std::vector<T>& src) {
  const Doubles by = Loaded(gradient);
  const Doubles read = Loaded(src);
  Doubles to(size.filters * size.channels);
  for (std::size_t pixel = 0; pixel < size.pixels; ++pixel) {
    for (std::size_t k = 0; k < size.filters; ++k) {
      for (std::size_t c = 0; c < size.channels; ++c) {
        to[k * size.channels + c] += by[pixel * size.filters + k] * read[pixel * size.channels + c];
      }
    }
  }
  for (double& value : to) value = Rounded<T>(value);
  return to;
}

// Fewer pixels than a tile has, some tiles of a block, so many that buffers come again, and a rest.
template <typename T>
void ForEachShape(const std::function<void(const Product& size, const DgradRun& run)>& call) {
  for (const Product& size : {Product{1, 64, 256},
                              {15, 64, 256},
                              {33, 64, 256},
                              {150, 64, 256},
                              {70, 128, 256, 5, 7},
                              {3, 128, 256, 1, 1},
                              {128, 128, 256, 4, 4}}) {
    for (const bool is_dual : {false, true}) {
      for (const int capability : Capabilities()) {
        for (const int sms : {1, 3, 108}) {
          const DgradRun run = {capability, sms, is_dual,
                                /*in_place=*/sms == 3 && size.height == 0};
          if (!HasConv1BackwardWithFilter(ShapeOf<T>(size, run))) continue;
          SCOPED_TRACE(std::to_string(size.pixels) + " x " + std::to_string(size.filters) + ", " +
                       std::to_string(capability) + ", " + std::to_string(sms) +
                       (is_dual ? ", dual" : ""));
          call(size, run);
        }
      }
    }
  }
}

using Conv1BackwardWithFilterKernel = SharedMemoryTest;

template <typename T>
void ExpectExact() {
  int runs = 0;
  ForEachShape<T>([&](const Product& size, const DgradRun& run) {
    ++runs;
    DgradOperands<T> operands(size);
    const std::vector<T> src = DrawSource(ValueKind::kIntegers, operands);
    const NormOperands<T> norm(size.pixels, size.filters, ValueKind::kIntegers);
    const NormMemory<T> memory(norm, run.sms);
    const AllGradients results = RunAll(operands, run, memory.WithCoefficients(), src);
    operands.gradient = ExpectedDiffSrc(norm, operands.gradient);
    const DgradResults expected = ExpectedDgrad(operands, run.is_dual);
    EXPECT_EQ(results.data.diff_src, expected.diff_src);
    EXPECT_EQ(results.data.sums[0], expected.sums[0]);
    EXPECT_EQ(results.data.sums[1], expected.sums[1]);
    EXPECT_EQ(results.filter, ExpectedFilter(size, operands.gradient, src));
  });
  // Of four sizes of 64 filters above one batch norm and two, and of three of 128 above one.
  int capabilities = 0;
  for (const int capability : Capabilities()) capabilities += capability >= 8 ? 1 : 0;
  EXPECT_EQ(runs, capabilities * (4 * 2 + 3) * 3);
}
TEST_F(Conv1BackwardWithFilterKernel, IsExactForSmallIntegersInFp16) { ExpectExact<__half>(); }
TEST_F(Conv1BackwardWithFilterKernel, IsExactForSmallIntegersInBf16) {
  ExpectExact<__nv_bfloat16>();
}

// To the bit, but for sums of several blocks, which share the pixels in other ways.
template <typename T>
void ExpectWhatKernelAndLoopsGive() {
  ForEachShape<T>([](const Product& size, const DgradRun& run) {
    for (const bool of_batch : {true, false}) {
      DgradOperands<T> operands(size, ValueKind::kNoise);
      const std::vector<T> src = DrawSource(ValueKind::kNoise, operands);
      // One channel less than there is room for.
      const NormOperands<T> norm(size.pixels, size.filters, ValueKind::kNoise, size.filters - 1);
      const NormMemory<T> memory(norm, run.sms);
      const NormMemory<T> of_other(norm, run.sms);
      NormBackwardFront front = memory.WithSums(of_batch);
      front.diff_src = nullptr;
      const AllGradients results = RunAll(operands, run, front, src);
      const NormBackwardFront other = of_other.WithSums(of_batch);
      const DgradResults expected = RunDgradBy(
          operands, run, [&](const Conv1BackwardShape& shape, const Conv1Backward& call) {
            RunConv1BackwardWithNorm(shape, call, other, nullptr);
          });
      EXPECT_EQ(memory.diff_scale.Download(), of_other.diff_scale.Download());
      EXPECT_EQ(memory.diff_shift.Download(), of_other.diff_shift.Download());
      EXPECT_EQ(results.data.diff_src, expected.diff_src);
      for (int n = 0; n < (run.is_dual ? 2 : 1); ++n) {
        if (run.sms == 1) {
          EXPECT_EQ(results.data.sums[n], expected.sums[n]);
        } else {
          ExpectNear(results.data.sums[n], expected.sums[n], 1e-5, "sums");
        }
      }
      ExpectNear(results.filter, ExpectedFilter(size, of_other.diff_src.Download(), src),
                 std::is_same_v<T, __half> ? 1e-3 : 8e-3, "diff_filter");
    }
  });
}
TEST_F(Conv1BackwardWithFilterKernel, GivesWhatTheOtherAndLoopsGiveInFp16) {
  ExpectWhatKernelAndLoopsGive<__half>();
}
TEST_F(Conv1BackwardWithFilterKernel, GivesWhatTheOtherAndLoopsGiveInBf16) {
  ExpectWhatKernelAndLoopsGive<__nv_bfloat16>();
}

// A step whose gradients are NaN is seen to be bad, wherever the first one was.
TEST_F(Conv1BackwardWithFilterKernel, KeepsWhatIsNotANumber) {
  for (const int capability : Capabilities()) {
    if (capability < 8) continue;
    const Product size = {40, 64, 256};
    const NormOperands<__half> norm(size.pixels, size.filters, ValueKind::kIntegers);
    const NormMemory<__half> memory(norm, 1);
    NormBackwardFront front = memory.WithCoefficients();
    DgradOperands<__half> operands(size);
    std::vector<__half> src = DrawSource(ValueKind::kIntegers, operands);
    Assign(src[5 * 256], 1);
    Assign(src[5 * 256 + 1], 0);
    Assign(operands.gradient[5 * 64 + 9], NAN);
    const AllGradients of_gradient = RunAll(operands, {.capability = capability}, front, src);
    EXPECT_TRUE(std::isnan(of_gradient.data.diff_src[5 * 256]));
    EXPECT_EQ(of_gradient.data.diff_src[5 * 256 + 1], 0);
    EXPECT_TRUE(std::isnan(of_gradient.filter[9 * 256 + 1]));
    EXPECT_FALSE(std::isnan(of_gradient.filter[8 * 256 + 1]));
    Assign(operands.gradient[5 * 64 + 9], 1);
    Assign(src[5 * 256 + 7], NAN);
    const AllGradients of_src = RunAll(operands, {.capability = capability}, front, src);
    EXPECT_TRUE(std::isnan(of_src.filter[7]));
    EXPECT_FALSE(std::isnan(of_src.filter[6]));
    EXPECT_EQ(of_src.data.diff_src[5 * 256 + 7], 0);
  }
}

// Without a GPU too.
TEST(HasConv1BackwardWithFilter, IsForWhatFitsIntoRegistersAndSharedMemory) {
  const auto has = [](int capability, int filters, int channels, int stride, int kilobytes,
                      DType dtype = DType::kFloat16) {
    return HasConv1BackwardWithFilter(
        {.filters = filters,
         .channels = channels,
         .stride = stride,
         .dtype = dtype,
         .compute_capability = capability,
         .max_shared_bytes = static_cast<std::size_t>(kilobytes) << 10});
  };
  EXPECT_TRUE(has(8, 64, 256, 1, 163));
  EXPECT_TRUE(has(10, 64, 256, 1, 163, DType::kBFloat16));
  EXPECT_TRUE(has(9, 128, 256, 2, 163));
  EXPECT_FALSE(has(9, 64, 256, 1, 99));
  EXPECT_FALSE(has(9, 128, 256, 2, 140));
  EXPECT_FALSE(has(7, 64, 256, 1, 163));
  EXPECT_FALSE(has(9, 64, 256, 1, 163, DType::kFloat32));
  EXPECT_FALSE(has(9, 64, 248, 1, 163));
  EXPECT_FALSE(has(9, 56, 256, 1, 163));
  EXPECT_FALSE(has(9, 128, 256, 1, 163));
  EXPECT_FALSE(has(9, 64, 256, 2, 163));
}

}  // namespace
}  // namespace trainer
