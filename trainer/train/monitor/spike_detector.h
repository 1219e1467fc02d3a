// SPDX-License-Identifier: Apache-2.0
//
// Finds a loss or a gradient norm that is far above those before it: of a bad stretch of input, of
// a learning rate that is too high, or of memory that fails.  Pure.

#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace trainer {

// What an outlier was compared with.
struct Outlier {
  double mean = 0;
  double deviation = 0;  // standard
};

class SpikeDetector {
 public:
  static constexpr std::size_t kWindow = 128;  // numbers that one is compared with
  // An outlier is more than so many standard deviations above the mean of the window,
  static constexpr double kDeviations = 6;
  // and more than `share` of the mean: numbers that hardly change deviate by next to nothing.
  explicit SpikeDetector(double share) : share_(share) {}

  // Takes `value` into the window, one that is an outlier too, so that a new level is told once or
  // twice and not for ever.  What is no number is left out.
  std::optional<Outlier> Add(double value);

 private:
  const double share_;
  std::array<double, kWindow> window_ = {};
  std::size_t added_ = 0;
};

}  // namespace trainer
