// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/record_cache_report.h"

#include <fmt/format.h>

namespace trainer {
namespace {

double Gigabytes(std::uint64_t bytes) { return static_cast<double>(bytes) * 1e-9; }

std::string DescribeNote(const RecordCacheUse& use) {
  return use.note.empty() ? "" : "; no more is kept: " + use.note;
}

}  // namespace

std::string DescribeRecordCacheAtStart(const RecordCacheUse& use) {
  if (use.path.empty()) return "records are not kept on this node: " + use.note;
  return fmt::format("records are kept in {}, up to {:.3f} GB: {:.3f} of {:.3f} GB are there",
                     use.path, Gigabytes(use.max_bytes), Gigabytes(use.bytes),
                     Gigabytes(use.set_bytes));
}

std::string DescribeRecordCacheAtEnd(const RecordCacheUse& use) {
  if (use.path.empty()) return "records were not kept on this node: " + use.note;
  return fmt::format(
      "{} of {} records that rank 0 has read were in {}, which has {:.3f} of {:.3f} "
      "GB now{}",
      use.hits, use.hits + use.misses, use.path, Gigabytes(use.bytes), Gigabytes(use.set_bytes),
      DescribeNote(use));
}

}  // namespace trainer
