// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/global_batch.h"

#include <algorithm>

#include "support/counted.h"

namespace trainer {

std::string DescribeSplit(const GlobalBatch& batch) {
  const std::string ranks = support::Counted(batch.world_size, "rank");
  const std::string size = std::to_string(batch.batch_size);
  if (batch.short_ranks > 0) {
    return std::to_string(batch.batches()) + " batches of " + size + " over " + ranks;
  }
  const std::string batches =
      batch.accumulate == 1 ? "" : std::to_string(batch.accumulate) + " batches x ";
  return ranks + " x " + batches + size;
}

std::optional<GlobalBatch> SplitImages(std::int64_t images, std::int64_t max, int ranks) {
  const std::int64_t mean = images / ranks;
  const std::int64_t largest = max == 0 ? mean : std::min(max, mean);
  const std::int64_t smallest = (largest + 7) / 8;
  if (largest == 0) return std::nullopt;
  if (images % ranks == 0) {
    for (std::int64_t size = largest; size >= smallest; --size) {
      if (mean % size == 0) return GlobalBatch{size, ranks, mean / size, 0, true};
    }
  }
  std::optional<GlobalBatch> best;
  for (std::int64_t size = largest; size >= smallest; --size) {
    if (images % size != 0) continue;
    const std::int64_t batches = images / size;
    const std::int64_t of_busiest = (batches + ranks - 1) / ranks;
    const auto missing = static_cast<int>(of_busiest * ranks - batches);
    const GlobalBatch split = {size, ranks, of_busiest, missing, true};
    if (4 * of_busiest * size * ranks <= 5 * images) return split;
    const bool is_better = !best || of_busiest * size < best->accumulate * best->batch_size;
    if (is_better) best = split;
  }
  return best;
}

}  // namespace trainer
