// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/split_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/counted.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// Those that can be split, the nearest below and the nearest above `images`: "36 or 38".
std::string NearestThatSplit(std::int64_t images, std::int64_t max, int ranks) {
  std::int64_t below = images - 1;
  while (below > 0 && !SplitImages(below, max, ranks)) --below;
  std::int64_t above = images + 1;
  while (!SplitImages(above, max, ranks)) ++above;
  return below > 0 ? fmt::format("{} or {}", below, above) : fmt::format("{}", above);
}

}  // namespace

void SplitStep(Options& options, int ranks) {
  const std::int64_t images = options.global_batch_size;
  if (images == 0) return;
  if (!IsTraining(options.mode)) {
    if (options.batch_size == 0) options.batch_size = std::max<std::int64_t>(1, images / ranks);
    return;
  }
  const std::int64_t max = options.batch_size;
  const auto split = SplitImages(images, max, ranks);
  if (!split && images < ranks) {
    throw Error(EX_CONFIG,
                fmt::format("--global_batch_size={} is less than an image for each of {} "
                            "ranks: give {} or more, or start fewer ranks",
                            images, ranks, ranks));
  }
  if (!split) {
    throw Error(
        EX_CONFIG,
        fmt::format("--global_batch_size={}: {} cannot compute so many images in batches of equal "
                    "size{}, but for very small ones: give {}, or start another number of ranks",
                    images, support::Counted(ranks, "rank"),
                    max == 0 ? "" : fmt::format(" up to --batch_size={}", max),
                    NearestThatSplit(images, max, ranks)));
  }
  options.batch_size = split->batch_size;
  options.accumulate = split->accumulate;
  options.short_ranks = split->short_ranks;
}

std::string DescribeStep(const Options& options, int ranks) {
  if (options.global_batch_size == 0 || !IsTraining(options.mode)) return "";
  const GlobalBatch batch = GlobalBatchOf(options, ranks);
  const std::string line =
      fmt::format("--global_batch_size={}: {}", batch.images(), DescribeSplit(batch));
  if (batch.short_ranks == 0) return line;
  return line + fmt::format("; {} {} {} in a step, the others {}", ranks - batch.short_ranks,
                            ranks - batch.short_ranks == 1 ? "computes" : "compute",
                            batch.accumulate, batch.accumulate - 1);
}

}  // namespace trainer
