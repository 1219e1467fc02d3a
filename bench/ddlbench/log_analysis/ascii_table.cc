// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/log_analysis/ascii_table.h"

#include <algorithm>
#include <vector>

#include "bench/base/statistics.h"

namespace bench {

AsciiTable BoxOf(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return {QuantileOf(sorted, 0.25), QuantileOf(sorted, 0.5), QuantileOf(sorted, 0.75)};
}

}  // namespace bench
