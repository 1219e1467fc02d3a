// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/loader_table.h"

#include <fmt/format.h>

#include "bench/base/statistics.h"
#include "support/number.h"

namespace bench {

std::string FormatLoader(const LoaderOptions& options, std::span<const LoaderSpeeds> all,
                         int ranks) {
  const bool has_rate = options.take_rate > 0;
  const std::string consumer =
      has_rate ? fmt::format(", taken at {} images/s", options.take_rate) : std::string();
  std::string text =
      fmt::format("{}, each with batches of {} images of {} pixels{}; {} of {} steps\n\n",
                  support::Counted(ranks, "rank"), options.batch_size, options.image_size, consumer,
                  support::Counted(options.rounds, "round"), options.steps);
  text += "| threads | images/s  | per thread | min       | max       |";
  text += has_rate ? " % of rate | waited, s |\n" : "\n";
  text += "| ------- | --------- | ---------- | --------- | --------- |";
  text += has_rate ? " --------- | --------- |\n" : "\n";
  for (const LoaderSpeeds& speeds : all) {
    const Statistics rounds = StatisticsOf(speeds.images_per_second);
    const double median = MedianOf(speeds.images_per_second);
    text += fmt::format("| {:<7} | {:<9.1f} | {:<10.1f} | {:<9.1f} | {:<9.1f} |", speeds.threads,
                        median, median / (speeds.threads * ranks), rounds.min, rounds.max);
    if (has_rate) {
      const double wanted = static_cast<double>(options.take_rate * ranks);
      text += fmt::format(" {:<9.1f} | {:<9.3f} |", 100 * median / wanted,
                          MedianOf(speeds.waited_seconds));
    }
    text += "\n";
  }
  return text;
}

}  // namespace bench
