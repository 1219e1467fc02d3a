// SPDX-License-Identifier: Apache-2.0

#include "ddldata/shrink.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr int kWeightBits = 14;
constexpr std::int64_t kWeightOne = std::int64_t{1} << kWeightBits;
constexpr std::size_t kColors = 3;

// The old pixels of one axis that make a new one: from `first` on, with weights that sum to one.
struct WeightedRun {
  std::size_t first = 0;
  std::vector<std::int32_t> weights;
};

// Old pixel j has its centre at j + 1/2, the new pixel i at (i + 1/2) source / target; the triangle
// is source / target wide on each side.  All lengths times 2 target are whole numbers.
WeightedRun WeightsOf(std::int64_t i, std::int64_t source, std::int64_t target) {
  const std::int64_t centre = (2 * i + 1) * source;
  const std::int64_t reach = 2 * source;
  const auto height = [&](std::int64_t j) {
    return reach - std::abs((2 * j + 1) * target - centre);
  };
  std::int64_t first = std::max<std::int64_t>((centre - reach) / (2 * target), 0);
  while (height(first) <= 0) ++first;
  std::vector<std::int64_t> heights;
  std::int64_t sum = 0;
  for (std::int64_t j = first; j < source && height(j) > 0; ++j) {
    heights.push_back(height(j));
    sum += heights.back();
  }
  WeightedRun run{static_cast<std::size_t>(first), {}};
  std::int64_t rest = kWeightOne;
  for (const std::int64_t one : heights) {
    run.weights.push_back(static_cast<std::int32_t>(one * kWeightOne / sum));
    rest -= run.weights.back();
  }
  *std::ranges::max_element(run.weights) += static_cast<std::int32_t>(rest);
  return run;
}

std::vector<WeightedRun> AllWeights(int source, int target) {
  std::vector<WeightedRun> runs;
  for (int i = 0; i < target; ++i) runs.push_back(WeightsOf(i, source, target));
  return runs;
}

// The sum of run.weights[k] * values[k * stride], rounded.
std::uint8_t WeightedMean(const WeightedRun& run, const std::uint8_t* values, std::size_t stride) {
  std::int32_t sum = kWeightOne / 2;
  for (const std::int32_t weight : run.weights) {
    sum += weight * *values;
    values += stride;
  }
  return static_cast<std::uint8_t>(sum >> kWeightBits);
}

}  // namespace

ImageSize SizeWithShorterSide(ImageSize size, int shorter_side) {
  const std::int64_t shorter = std::min(size.width, size.height);
  const auto scaled = [&](std::int64_t side) {
    return static_cast<int>((side * shorter_side * 2 + shorter) / (2 * shorter));
  };
  return {scaled(size.width), scaled(size.height)};
}

std::vector<std::uint8_t> Shrink(std::span<const std::uint8_t> pixels, ImageSize size,
                                 ImageSize target) {
  DDL_CHECK(target.width > 0 && target.width <= size.width);
  DDL_CHECK(target.height > 0 && target.height <= size.height);
  const auto stride = static_cast<std::size_t>(size.width) * kColors;
  const auto target_stride = static_cast<std::size_t>(target.width) * kColors;
  DDL_CHECK(pixels.size() == stride * static_cast<std::size_t>(size.height));
  const std::vector<WeightedRun> columns = AllWeights(size.width, target.width);
  const std::vector<WeightedRun> rows = AllWeights(size.height, target.height);

  std::vector<std::uint8_t> narrow;  // height x target.width x 3
  narrow.reserve(target_stride * static_cast<std::size_t>(size.height));
  for (std::size_t row = 0; row < static_cast<std::size_t>(size.height); ++row) {
    for (const WeightedRun& column : columns) {
      const std::uint8_t* first = &pixels[row * stride + column.first * kColors];
      for (std::size_t color = 0; color < kColors; ++color) {
        narrow.push_back(WeightedMean(column, first + color, kColors));
      }
    }
  }
  std::vector<std::uint8_t> small;
  small.reserve(target_stride * static_cast<std::size_t>(target.height));
  for (const WeightedRun& row : rows) {
    for (std::size_t column = 0; column < target_stride; ++column) {
      small.push_back(
          WeightedMean(row, &narrow[row.first * target_stride + column], target_stride));
    }
  }
  return small;
}

}  // namespace trainer
