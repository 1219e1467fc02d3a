// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/loader_table.h"

#include <fmt/format.h>

#include "bench/base/statistics.h"
#include "support/counted.h"

namespace bench {

std::string FormatLoader(const LoaderOptions& options, std::span<const LoaderSpeeds> all,
                         int ranks) {
  std::string text =
      fmt::format("{}, each with batches of {} images of {} pixels; {} of {} steps\n\n",
                  support::Counted(ranks, "rank"), options.batch_size, options.image_size,
                  support::Counted(options.rounds, "round"), options.steps);
  text +=
      "| threads | images/s  | per thread | min       | max       |\n"
      "| ------- | --------- | ---------- | --------- | --------- |\n";
  for (const LoaderSpeeds& speeds : all) {
    const Statistics rounds = StatisticsOf(speeds.images_per_second);
    const double median = MedianOf(speeds.images_per_second);
    text += fmt::format("| {:<7} | {:<9.1f} | {:<10.1f} | {:<9.1f} | {:<9.1f} |\n", speeds.threads,
                        median, median / (speeds.threads * ranks), rounds.min, rounds.max);
  }
  return text;
}

}  // namespace bench
