// SPDX-License-Identifier: Apache-2.0
//
// What a box plot shows of some values.  Pure.

#pragma once

#include <span>

namespace bench {

struct AsciiTable {
  double q1 = 0;
  double median = 0;
  double q3 = 0;

  // The whiskers: values outside of them are outliers.
  double lower() const { return q1 - 1.5 * (q3 - q1); }
  double upper() const { return q3 + 1.5 * (q3 - q1); }
  // Of 1: from whisker to whisker, over the median.
  double variation() const { return (upper() - lower()) / median; }
};

// Quartiles as pandas has them: between two values in proportion.  REQUIRES: there is a value.
AsciiTable BoxOf(std::span<const double> values);

}  // namespace bench
