// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/scan_report.h"

#include <fmt/format.h>

#include <array>

#include "support/counted.h"

namespace trainer {

std::string DescribeScans(const ScanCost& own, const std::string& index_dir,
                          const std::string& scan_cache_dir, Communicator& communicator) {
  std::array<double, 3> sums = {static_cast<double>(own.headers), static_cast<double>(own.bytes),
                                own.scanned > 0 ? 1.0 : 0.0};
  std::array<double, 1> longest = {own.seconds};
  communicator.AllReduceSum(sums);
  communicator.AllReduceMax(longest);
  const auto [headers, bytes, ranks] = sums;
  const std::string found = fmt::format(
      "records of {} found in {:.2f} s: ", support::Counted(own.files, "file"), longest[0]);
  if (ranks > 0) {
    return found + fmt::format("{:.0f} headers, {:.1f} MB, read by {:.0f} of {}", headers,
                               bytes * 1e-6, ranks, support::Counted(communicator.size(), "rank"));
  }
  return found + (index_dir.empty() ? "an earlier scan is in " + scan_cache_dir
                                    : "index files are in " + index_dir);
}

}  // namespace trainer
