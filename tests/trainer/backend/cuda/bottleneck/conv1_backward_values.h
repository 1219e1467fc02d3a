// SPDX-License-Identifier: Apache-2.0
//
// Operands and results of the data gradient of conv1 through the end of the block below, and what
// loops give.

#pragma once

#include <optional>
#include <random>
#include <type_traits>
#include <vector>

#include "tests/trainer/backend/cuda/bottleneck/kernel_values.h"
#include "trainer/backend/cuda/bottleneck/conv1_backward.h"

namespace trainer {

// Height and width: those of images of which the shortcut has read every second pixel of every
// second row; 0: all of them.
struct Product {
  std::size_t pixels, filters, channels;
  std::size_t height = 0, width = 0;

  // The row of the residual that belongs to a pixel, or none.
  std::optional<std::size_t> ResidualOf(std::size_t pixel) const {
    if (height == 0) return pixel;
    const std::size_t row = pixel / width % height;
    const std::size_t column = pixel % width;
    if (row % 2 == 1 || column % 2 == 1) return std::nullopt;
    return residuals(pixel / width / height) + row / 2 * ((width + 1) / 2) + column / 2;
  }
  std::size_t residuals() const {
    return height == 0 ? pixels : residuals(pixels / height / width);
  }
  std::size_t residuals(std::size_t images) const {
    return images * ((height + 1) / 2) * ((width + 1) / 2);
  }
};

template <typename T>
struct DgradOperands {
  Product size;
  std::vector<T> gradient, filter, residual;
  std::vector<std::uint8_t> mask;
  std::vector<T> z[2];
  std::vector<float> saved[2];

  explicit DgradOperands(const Product& of, ValueKind kind = ValueKind::kIntegers)
      : size(of),
        gradient(Stored<T>(Draw(kind, of.pixels * of.filters, 1, 1))),
        filter(Stored<T>(Draw(kind, of.filters * of.channels, 2, 0.1F))),
        residual(Stored<T>(Draw(kind, of.residuals() * of.channels, 3, 1))),
        mask(of.pixels * of.channels / 8) {
    std::mt19937 engine(4);
    for (std::uint8_t& bits : mask) bits = static_cast<std::uint8_t>(engine());
    for (unsigned n = 0; n < 2; ++n) {
      z[n] = Stored<T>(Draw(kind, of.pixels * of.channels, 5 + n, 1));
      saved[n] = Draw(kind, 4 * of.channels, 7 + n, 0.5F);
      for (std::size_t c = 0; c < of.channels; ++c) {
        saved[n][of.channels + c] = 0.5F + static_cast<float>(c % 3) / 2;
      }
    }
  }
  bool Passes(std::size_t at) const { return (mask[at / 8] >> at % 8 & 1) != 0; }
};

// Sums are of first and second batch norm: of each channel those of the gradient, then the
// products.
struct DgradResults {
  Doubles diff_src, sums[2];
};

// From what was stored: T is what sums see.
template <typename T>
DgradResults ExpectedDgrad(const DgradOperands<T>& of, bool is_dual) {
  const std::size_t pixels = of.size.pixels;
  const std::size_t filters = of.size.filters;
  const std::size_t channels = of.size.channels;
  const Doubles gradient = Loaded(of.gradient);
  const Doubles filter = Loaded(of.filter);
  DgradResults to = {Doubles(pixels * channels), {Doubles(2 * channels), {}}};
  if (is_dual) to.sums[1].resize(2 * channels);
  for (std::size_t at = 0; at < pixels * channels; ++at) {
    const std::size_t channel = at % channels;
    double& value = to.diff_src[at];
    const std::optional<std::size_t> residual = of.size.ResidualOf(at / channels);
    if (residual) value = ToFloat(of.residual[*residual * channels + channel]);
    for (std::size_t k = 0; k < filters; ++k) {
      value += gradient[at / channels * filters + k] * filter[k * channels + channel];
    }
    value = of.Passes(at) ? Rounded<T>(value) : 0;
    for (std::size_t n = 0; n < (is_dual ? 2 : 1); ++n) {
      to.sums[n][channel] += value;
      to.sums[n][channels + channel] +=
          value * (ToFloat(of.z[n][at]) - of.saved[n][channel]) * of.saved[n][channels + channel];
    }
  }
  return to;
}

struct DgradRun {
  int capability = 8;
  int sms = 2;
  bool is_dual = false;
  bool in_place = false;
};

template <typename T>
Conv1BackwardShape ShapeOf(const Product& size, const DgradRun& run) {
  const bool is_half = std::is_same_v<T, __half>;
  return {.pixels = static_cast<std::int64_t>(size.pixels),
          .filters = static_cast<int>(size.filters),
          .channels = static_cast<int>(size.channels),
          .is_dual = run.is_dual,
          .stride = size.height == 0 ? 1 : 2,
          .height = static_cast<int>(size.height),
          .width = static_cast<int>(size.width),
          .dtype = is_half ? DType::kFloat16 : DType::kBFloat16,
          .sms = run.sms,
          .compute_capability = run.capability,
          .max_shared_bytes = kSharedBytes};
}

// By run_kernel(shape, call).
template <typename T, typename RunKernel>
DgradResults RunDgradBy(const DgradOperands<T>& of, const DgradRun& run,
                        const RunKernel& run_kernel) {
  const std::size_t pixels = of.size.pixels;
  const std::size_t channels = of.size.channels;
  const Conv1BackwardShape shape = ShapeOf<T>(of.size, run);
  EXPECT_TRUE(HasConv1Backward(shape));
  const auto blocks = static_cast<std::size_t>(Conv1BackwardBlocks(shape));
  EXPECT_LE(blocks, static_cast<std::size_t>(run.sms));
  const DeviceValues<T> gradient(of.gradient);
  const DeviceValues<T> filter(of.filter);
  const DeviceValues<T> residual(of.residual);
  const DeviceValues<T> diff_src(pixels * channels);
  const DeviceValues<std::uint8_t> mask(of.mask);
  const DeviceValues<T> z[2] = {DeviceValues<T>(of.z[0]), DeviceValues<T>(of.z[1])};
  const DeviceValues<float> saved[2] = {DeviceValues<float>(of.saved[0]),
                                        DeviceValues<float>(of.saved[1])};
  const DeviceValues<float> partial[2] = {DeviceValues<float>(blocks * 2 * channels),
                                          DeviceValues<float>(blocks * 2 * channels)};
  Conv1Backward call;
  call.gradient = gradient.data();
  call.filter = filter.data();
  call.residual = residual.data();
  call.diff_src = run.in_place ? residual.data() : diff_src.data();
  call.mask = mask.data();
  call.first = {z[0].data(), saved[0].data(), partial[0].data()};
  if (run.is_dual) call.second = {z[1].data(), saved[1].data(), partial[1].data()};
  run_kernel(shape, call);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  DgradResults results = {Loaded((run.in_place ? residual : diff_src).Download()), {}};
  for (std::size_t n = 0; n < (run.is_dual ? 2 : 1); ++n) {
    results.sums[n].resize(2 * channels);
    const std::vector<float> values = partial[n].Download();
    for (std::size_t i = 0; i < values.size(); ++i) {
      results.sums[n][i % (2 * channels)] += values[i];
    }
  }
  return results;
}

}  // namespace trainer
