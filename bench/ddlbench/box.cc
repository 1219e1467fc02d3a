// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/box.h"

#include <algorithm>
#include <vector>

#include "trainer/core/error.h"

namespace bench {
namespace {

double Quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Box BoxOf(std::span<const double> values) {
  DDL_CHECK(!values.empty());
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return {Quantile(sorted, 0.25), Quantile(sorted, 0.5), Quantile(sorted, 0.75)};
}

}  // namespace bench
