// SPDX-License-Identifier: Apache-2.0
//
// The backward pass of a convolution from 64 to 256 channels with its batch norms, against loops:
// on the GPU, and on the emulator by the instructions of all generations.

#include "trainer/backend/cuda/bottleneck/conv3_backward.h"

#include <random>
#include <type_traits>

#include "tests/trainer/backend/cuda/bottleneck/kernel_values.h"

namespace trainer {
namespace {

constexpr std::size_t kIn = kConv3Channels;
constexpr std::size_t kOut = kConv3Filters;

template <typename T>
struct KernelOperands {
  std::size_t pixels;
  std::vector<T> gradient, convolved, filter, before;
  std::vector<std::uint8_t> mask;
  std::vector<float> means, coefficients, saved;

  explicit KernelOperands(std::size_t count)
      : pixels(count),
        gradient(Stored<T>(Noise(count * kOut, 1, 1))),
        convolved(Stored<T>(Noise(count * kOut, 2, 1))),
        filter(Stored<T>(Noise(kOut * kIn, 3, 0.1F))),
        before(Stored<T>(Noise(count * kIn, 4, 1))),
        mask(count * kOut / 8),
        means(Noise(kOut, 5, 0.5F)),
        coefficients(Noise(3 * kOut, 6, 0.5F)),
        saved(Noise(4 * kIn, 7, 0.5F)) {
    std::mt19937 engine(8);
    for (std::uint8_t& bits : mask) bits = static_cast<std::uint8_t>(engine());
    for (std::size_t c = 0; c < kIn; ++c) saved[kIn + c] = 0.75F + std::abs(saved[kIn + c]);
  }
};

struct KernelResults {
  Doubles diff_residual, diff_src, diff_filter, products, sums;
};

template <typename T>
KernelResults Expected(const KernelOperands<T>& of) {
  const Doubles gradient = Loaded(of.gradient);
  const Doubles convolved = Loaded(of.convolved);
  const Doubles filter = Loaded(of.filter);
  const Doubles before = Loaded(of.before);
  KernelResults to = {Doubles(of.pixels * kOut), Doubles(of.pixels * kIn), Doubles(kOut * kIn),
                      Doubles(kIn), Doubles(kIn)};
  for (std::size_t pixel = 0; pixel < of.pixels; ++pixel) {
    Doubles src(kIn);
    Doubles moved(kIn);
    for (std::size_t c = 0; c < kIn; ++c) {
      moved[c] = before[pixel * kIn + c] - of.saved[c];
      const double normed =
          moved[c] * of.saved[kIn + c] * of.saved[2 * kIn + c] + of.saved[3 * kIn + c];
      src[c] = Rounded<T>(std::max(normed, 0.0));
    }
    Doubles diff_src(kIn);
    for (std::size_t k = 0; k < kOut; ++k) {
      const std::size_t at = pixel * kOut + k;
      const bool passes = (of.mask[at / 8] >> at % 8 & 1) != 0;
      to.diff_residual[at] = passes ? gradient[at] : 0;
      const double dx = Rounded<T>(of.coefficients[k] * to.diff_residual[at] +
                                   of.coefficients[kOut + k] * (convolved[at] - of.means[k]) +
                                   of.coefficients[2 * kOut + k]);
      for (std::size_t c = 0; c < kIn; ++c) {
        diff_src[c] += dx * filter[k * kIn + c];
        to.diff_filter[k * kIn + c] += dx * src[c];
      }
    }
    for (std::size_t c = 0; c < kIn; ++c) {
      if (src[c] == 0) diff_src[c] = 0;
      to.diff_src[pixel * kIn + c] = diff_src[c];
      to.sums[c] += diff_src[c];
      to.products[c] += diff_src[c] * moved[c] * of.saved[kIn + c];
    }
  }
  return to;
}

template <typename T>
KernelResults RunKernel(const KernelOperands<T>& of, int capability, int sms,
                        bool has_residual = true) {
  constexpr bool kIsHalf = std::is_same_v<T, __half>;
  const Conv3BackwardShape shape = {.pixels = static_cast<std::int64_t>(of.pixels),
                                    .dtype = kIsHalf ? DType::kFloat16 : DType::kBFloat16,
                                    .sms = sms,
                                    .compute_capability = capability};
  EXPECT_TRUE(HasConv3Backward(shape));
  const DeviceValues<T> gradient(of.gradient);
  const DeviceValues<std::uint8_t> mask(of.mask);
  const DeviceValues<T> convolved(of.convolved);
  const DeviceValues<float> means(of.means);
  const DeviceValues<float> coefficients(of.coefficients);
  const DeviceValues<T> filter(of.filter);
  const DeviceValues<T> before(of.before);
  const DeviceValues<float> saved(of.saved);
  const DeviceValues<T> diff_residual(of.pixels * kOut);
  const DeviceValues<T> diff_src(of.pixels * kIn);
  const DeviceValues<T> diff_filter(of.filter.size());
  const DeviceValues<float> sums(2 * kIn);
  const DeviceValues<float> scratch(static_cast<std::size_t>(Conv3BackwardScratchFloats(shape)));
  Conv3Backward call;
  call.gradient = gradient.data();
  call.mask = mask.data();
  call.convolved = convolved.data();
  call.means = means.data();
  call.coefficients = coefficients.data();
  call.diff_residual = has_residual ? diff_residual.data() : nullptr;
  call.filter = filter.data();
  call.diff_filter = diff_filter.data();
  call.before = before.data();
  call.saved = saved.data();
  call.diff_src = diff_src.data();
  call.sums = sums.data();
  call.scratch = scratch.data();
  RunConv3Backward(shape, call, nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const std::vector<float> two = sums.Download();
  return {has_residual ? Loaded(diff_residual.Download()) : Doubles(), Loaded(diff_src.Download()),
          Loaded(diff_filter.Download()), Doubles(two.begin(), two.begin() + kIn),
          Doubles(two.begin() + kIn, two.end())};
}

template <typename T>
void ExpectRight(int capability) {
  const double tolerance = std::is_same_v<T, __half> ? 2e-3 : 1.6e-2;
  // Fewer pixels than a turn has, several turns with a rest, several blocks.
  for (const std::size_t pixels : {1, 15, 33, 150}) {
    const KernelOperands<T> operands(pixels);
    const KernelResults expected = Expected(operands);
    for (const int sms : {1, 2, 108}) {
      SCOPED_TRACE(std::to_string(pixels) + " pixels, " + std::to_string(sms));
      const KernelResults results = RunKernel(operands, capability, sms);
      EXPECT_EQ(results.diff_residual, expected.diff_residual);
      ExpectNear(results.diff_src, expected.diff_src, tolerance, "diff_src");
      ExpectNear(results.diff_filter, expected.diff_filter, tolerance, "diff_filter");
      ExpectNear(results.products, expected.products, tolerance, "products");
      ExpectNear(results.sums, expected.sums, tolerance, "sums");
    }
  }
}

using Conv3BackwardKernel = GpuTest;

TEST_F(Conv3BackwardKernel, GivesWhatLoopsGiveInFp16) {
  for (const int capability : Capabilities()) ExpectRight<__half>(capability);
}
TEST_F(Conv3BackwardKernel, GivesWhatLoopsGiveInBf16) {
  for (const int capability : Capabilities()) {
    if (capability >= 8) ExpectRight<__nv_bfloat16>(capability);
  }
}

TEST_F(Conv3BackwardKernel, GivesTheSameBitsWithoutAResidual) {
  const KernelOperands<__half> operands(70);
  for (const int capability : Capabilities()) {
    const KernelResults with = RunKernel(operands, capability, 2);
    const KernelResults without = RunKernel(operands, capability, 2, /*has_residual=*/false);
    EXPECT_EQ(with.diff_src, without.diff_src);
    EXPECT_EQ(with.diff_filter, without.diff_filter);
    EXPECT_EQ(with.products, without.products);
    EXPECT_EQ(with.sums, without.sums);
  }
}

// A step whose gradients are NaN is seen to be bad, wherever the first one was.
TEST_F(Conv3BackwardKernel, KeepsWhatIsNotANumber) {
  for (const int capability : Capabilities()) {
    KernelOperands<__half> operands(40);
    Assign(operands.gradient[5 * kOut + 9], NAN);
    operands.mask[(5 * kOut + 9) / 8] = 0xFF;
    const KernelResults of_gradient = RunKernel(operands, capability, 1);
    EXPECT_TRUE(std::isnan(of_gradient.diff_filter[9 * kIn]));
    EXPECT_FALSE(std::isnan(of_gradient.diff_filter[8 * kIn]));
    operands = KernelOperands<__half>(40);
    Assign(operands.before[3 * kIn + 6], NAN);
    const KernelResults of_input = RunKernel(operands, capability, 1);
    EXPECT_TRUE(std::isnan(of_input.diff_filter[6]));
    EXPECT_FALSE(std::isnan(of_input.diff_filter[7]));
  }
}

// Without a GPU too.
TEST(HasConv3Backward, IsForWhatTensorCoresMultiply) {
  const auto has = [](DType dtype, int capability) {
    return HasConv3Backward({.dtype = dtype, .compute_capability = capability});
  };
  EXPECT_FALSE(has(DType::kFloat16, 6));
  EXPECT_TRUE(has(DType::kFloat16, 7));
  EXPECT_FALSE(has(DType::kBFloat16, 7));
  EXPECT_TRUE(has(DType::kBFloat16, 10));
  EXPECT_FALSE(has(DType::kFloat32, 9));
}

}  // namespace
}  // namespace trainer
