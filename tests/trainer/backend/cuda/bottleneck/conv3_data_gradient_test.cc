// SPDX-License-Identifier: Apache-2.0
//
// The data gradient of a convolution to 512 or 1,024 channels between its batch norms, against
// loops and against the pass of the batch norm in front: on the GPU, and on the emulator.

#include "trainer/backend/cuda/bottleneck/conv3_data_gradient.h"

#include <random>
#include <type_traits>

#include "tests/trainer/backend/cuda/bottleneck/kernel_values.h"
#include "tests/trainer/backend/cuda/bottleneck/norm_backward_values.h"

namespace trainer {
namespace {

struct GradientSize {
  std::size_t pixels, filters, channels;
};

template <typename T>
struct GradientOperands {
  GradientSize size;
  NormOperands<T> norm;
  std::vector<T> gradient, filter, before;
  std::vector<std::uint8_t> mask;
  std::vector<float> saved;

  explicit GradientOperands(const GradientSize& of, ValueKind kind = ValueKind::kIntegers)
      : size(of),
        norm(of.pixels, of.filters, kind, of.filters - 3),
        gradient(Stored<T>(Draw(kind, of.pixels * of.filters, 1, 1))),
        filter(Stored<T>(Draw(kind, of.filters * of.channels, 2, 0.1F))),
        before(Stored<T>(Draw(kind, of.pixels * of.channels, 3, 1))),
        mask(of.pixels * of.channels / 8),
        saved(Draw(kind, 4 * of.channels, 4, 0.5F)) {
    std::mt19937 engine(5);
    for (std::uint8_t& bits : mask) bits = static_cast<std::uint8_t>(engine());
    for (std::size_t c = 0; c < of.channels; ++c) {
      saved[of.channels + c] = 0.5F + static_cast<float>(c % 3) / 2;
    }
  }
};

struct GradientResults {
  Doubles diff_z, diff_src, sums;  // sums of each channel, then products
};

// Sums of what was stored.
template <typename T>
Doubles SumsOf(const GradientOperands<T>& of, const Doubles& diff_src) {
  const std::size_t channels = of.size.channels;
  Doubles sums(2 * channels);
  for (std::size_t at = 0; at < diff_src.size(); ++at) {
    const std::size_t c = at % channels;
    sums[c] += diff_src[at];
    sums[channels + c] +=
        diff_src[at] * (ToFloat(of.before[at]) - of.saved[c]) * of.saved[channels + c];
  }
  return sums;
}

// Out of what the product reads.
template <typename T>
Doubles ExpectedGradient(const GradientOperands<T>& of, const Doubles& diff_z) {
  const Doubles filter = Loaded(of.filter);
  Doubles diff_src(of.size.pixels * of.size.channels);
  for (std::size_t at = 0; at < diff_src.size(); ++at) {
    if ((of.mask[at / 8] >> at % 8 & 1) == 0) continue;
    const std::size_t pixel = at / of.size.channels;
    for (std::size_t k = 0; k < of.size.filters; ++k) {
      diff_src[at] += diff_z[pixel * of.size.filters + k] *
                      filter[k * of.size.channels + at % of.size.channels];
    }
    diff_src[at] = Rounded<T>(diff_src[at]);
  }
  return diff_src;
}

template <typename T>
GradientResults RunGradient(const GradientOperands<T>& of, int sms, const NormMemory<T>& norm) {
  const Conv3DataGradientShape shape = {
      .pixels = static_cast<std::int64_t>(of.size.pixels),
      .filters = static_cast<int>(of.size.filters),
      .channels = static_cast<int>(of.size.channels),
      .dtype = std::is_same_v<T, __half> ? DType::kFloat16 : DType::kBFloat16,
      .sms = sms,
      .compute_capability = 8,
      .max_shared_bytes = kSharedBytes};
  EXPECT_TRUE(HasConv3DataGradient(shape));
  const auto blocks = static_cast<std::size_t>(Conv3DataGradientBlocks(shape));
  EXPECT_LE(blocks, static_cast<std::size_t>(sms));
  const DeviceValues<T> gradient(of.gradient);
  const DeviceValues<T> filter(of.filter);
  const DeviceValues<T> before(of.before);
  const DeviceValues<std::uint8_t> mask(of.mask);
  const DeviceValues<float> saved(of.saved);
  const DeviceValues<T> diff_src(of.before.size());
  const DeviceValues<float> partial(blocks * 2 * of.size.channels);
  RunConv3DataGradient(shape,
                       {.gradient = gradient.data(),
                        .norm = norm.WithCoefficients(),
                        .filter = filter.data(),
                        .mask = mask.data(),
                        .before = before.data(),
                        .saved = saved.data(),
                        .diff_src = diff_src.data(),
                        .partial = partial.data()},
                       nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  GradientResults results = {Loaded(norm.diff_src.Download()), Loaded(diff_src.Download()),
                             Doubles(2 * of.size.channels)};
  const std::vector<float> values = partial.Download();
  for (std::size_t i = 0; i < values.size(); ++i) {
    results.sums[i % results.sums.size()] += values[i];
  }
  return results;
}

bool HasKernel() { return Capabilities().back() >= 8; }

// Fewer pixels than a tile has, several tiles of a block, a rest in each direction, padding; then
// the same with a filter in chunks, of which the number is odd and even, and one has eight of the
// depth.
constexpr GradientSize kSizes[] = {{1, 264, 8},    {31, 512, 128},  {150, 512, 72},
                                   {97, 392, 128}, {1, 520, 8},     {130, 264, 136},
                                   {40, 584, 256}, {257, 640, 120}, {300, 320, 200}};

template <typename T>
void ExpectExactGradients() {
  if (!HasKernel()) GTEST_SKIP() << "no such tensor cores";
  for (const GradientSize& size : kSizes) {
    const GradientOperands<T> operands(size);
    const Doubles diff_z = Loaded(ExpectedDiffSrc(operands.norm, operands.gradient));
    const Doubles diff_src = ExpectedGradient(operands, diff_z);
    for (const int sms : {1, 3, 108}) {
      SCOPED_TRACE(std::to_string(size.pixels) + " x " + std::to_string(size.filters) + ", " +
                   std::to_string(sms));
      const GradientResults results = RunGradient(operands, sms, NormMemory<T>(operands.norm, sms));
      EXPECT_EQ(results.diff_z, diff_z);
      EXPECT_EQ(results.diff_src, diff_src);
      EXPECT_EQ(results.sums, SumsOf(operands, diff_src));
    }
  }
}

using Conv3DataGradientKernel = SharedMemoryTest;

TEST_F(Conv3DataGradientKernel, IsExactForSmallIntegersInFp16) { ExpectExactGradients<__half>(); }
TEST_F(Conv3DataGradientKernel, IsExactForSmallIntegersInBf16) {
  ExpectExactGradients<__nv_bfloat16>();
}

// What it writes in front is what the pass writes, to the bit; the sums are those of what it has
// stored.
template <typename T>
void ExpectGradientOfPass() {
  if (!HasKernel()) GTEST_SKIP() << "no such tensor cores";
  for (const GradientSize& size : {GradientSize{130, 512, 128}, GradientSize{260, 1024, 256}}) {
    const GradientOperands<T> operands(size, ValueKind::kNoise);
    for (const bool of_batch : {true, false}) {
      const NormMemory<T> norm(operands.norm, 2);
      norm.MakeCoefficients(of_batch);
      const GradientResults results = RunGradient(operands, 2, norm);
      const NormMemory<T> of_pass(operands.norm, 2);
      EXPECT_EQ(results.diff_z,
                Loaded(of_pass.RunPass(operands.gradient, of_batch, /*in_parts=*/true)));
      EXPECT_EQ(norm.diff_scale.Download(), of_pass.diff_scale.Download());
      EXPECT_EQ(norm.diff_shift.Download(), of_pass.diff_shift.Download());
      ExpectNear(results.diff_src, ExpectedGradient(operands, results.diff_z),
                 std::is_same_v<T, __half> ? 1e-3 : 8e-3, "diff_src");
      ExpectNear(results.sums, SumsOf(operands, results.diff_src), 2e-6, "sums");
    }
  }
}
TEST_F(Conv3DataGradientKernel, HasBatchNormOfThePassInFrontInFp16) {
  ExpectGradientOfPass<__half>();
}
TEST_F(Conv3DataGradientKernel, HasBatchNormOfThePassInFrontInBf16) {
  ExpectGradientOfPass<__nv_bfloat16>();
}

// A step whose gradients are NaN is seen to be bad; behind a ReLU that stops it, it is none.
TEST_F(Conv3DataGradientKernel, KeepsWhatIsNotANumber) {
  if (!HasKernel()) GTEST_SKIP() << "no such tensor cores";
  for (const std::size_t filters : {512, 520}) {
    GradientOperands<__half> operands({40, filters, 64});
    Assign(operands.gradient[5 * filters + 9], NAN);
    operands.mask[5 * 8] = 0x01;
    const GradientResults results = RunGradient(operands, 2, NormMemory<__half>(operands.norm, 2));
    EXPECT_TRUE(std::isnan(results.diff_z[5 * filters + 9]));
    EXPECT_TRUE(std::isnan(results.diff_src[5 * 64]));
    EXPECT_EQ(results.diff_src[5 * 64 + 1], 0);
    EXPECT_TRUE(std::isnan(results.sums[0]));
    EXPECT_FALSE(std::isnan(results.sums[1]));
  }
}

// Without a GPU too.
TEST(HasConv3DataGradient, IsForWhatFitsIntoSharedMemory) {
  const auto has = [](DType dtype, int capability, int filters, int channels, int shared_kb) {
    return HasConv3DataGradient({.filters = filters,
                                 .channels = channels,
                                 .dtype = dtype,
                                 .compute_capability = capability,
                                 .max_shared_bytes = static_cast<std::size_t>(shared_kb) << 10});
  };
  EXPECT_TRUE(has(DType::kFloat16, 8, 512, 128, 155));
  EXPECT_FALSE(has(DType::kFloat16, 8, 512, 128, 154));
  EXPECT_TRUE(has(DType::kBFloat16, 10, 264, 8, 227));
  EXPECT_FALSE(has(DType::kFloat16, 9, 256, 128, 227));
  EXPECT_TRUE(has(DType::kFloat16, 8, 1024, 256, 119));
  EXPECT_FALSE(has(DType::kFloat16, 8, 1024, 256, 118));
  EXPECT_TRUE(has(DType::kBFloat16, 9, 264, 136, 119));
  EXPECT_FALSE(has(DType::kFloat16, 9, 1032, 128, 227));
  EXPECT_FALSE(has(DType::kFloat16, 9, 512, 264, 227));
  EXPECT_FALSE(has(DType::kFloat16, 7, 512, 128, 227));
  EXPECT_FALSE(has(DType::kFloat32, 9, 512, 128, 227));
}

}  // namespace
}  // namespace trainer
