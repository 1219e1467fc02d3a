// SPDX-License-Identifier: Apache-2.0
//
// How sure a mean and a difference of means are: intervals of Student's t at 95 %.  They hold for
// observations that are independent and nearly normal; steps that follow one another are neither,
// so means of long stretches of them are taken in their place (BatchMeans).  Pure.

#pragma once

#include <optional>
#include <span>

namespace bench {

// Of all such intervals this share holds the true value.
inline constexpr double kConfidence = 0.95;

// P(T <= t) for Student's t with so many degrees of freedom, which need not be a whole number.
// REQUIRES: degrees > 0; t is finite.
double StudentProbability(double t, double degrees);

// The t with P(T <= t) = probability.  REQUIRES: 0.5 <= probability < 1; degrees >= 1.
double StudentQuantile(double probability, double degrees);

// Half of the interval around the mean: t sd / sqrt(n), with n - 1 degrees of freedom.  Nothing for
// fewer than two observations.
std::optional<double> MeanMargin(std::span<const double> observations);

// Half of the interval around the difference of the two means, without taking them to scatter alike
// (Welch): t sqrt(sd_a^2/n_a + sd_b^2/n_b), with Satterthwaite's degrees of freedom.  Nothing for
// fewer than two observations on either side.
std::optional<double> DifferenceMargin(std::span<const double> a, std::span<const double> b);

}  // namespace bench
