// SPDX-License-Identifier: Apache-2.0
//
// The images that all ranks take in one step, and how they are split into equal batches.  Nothing
// else multiplies them out.  Pure.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainer {

struct GlobalBatch {
  std::int64_t batch_size = 0;  // images of a batch
  int world_size = 1;           // ranks
  std::int64_t accumulate = 1;  // batches of a rank, of rank 0 at any rate
  int short_ranks = 0;          // the last ranks, which compute one batch fewer than the others
  bool is_fixed = false;        // images() was given (--global_batch_size), whatever the ranks

  // Of all ranks.
  std::int64_t batches() const { return world_size * accumulate - short_ranks; }
  std::int64_t batches_of(int rank) const {
    return rank < world_size - short_ranks ? accumulate : accumulate - 1;
  }
  std::int64_t images() const { return batch_size * batches(); }

  bool operator==(const GlobalBatch&) const = default;
};

// "2 ranks x 4 batches x 16", "2 ranks x 16", or "8 batches of 4 over 3 ranks" where not all ranks
// compute as many batches.
std::string DescribeSplit(const GlobalBatch& batch);

// Splits a step of `images` into equal batches for `ranks`.  No batch has more than `most` images
// (0: no limit), nor fewer than an eighth of the largest that `most` and the ranks allow.  All
// ranks get equally many batches where `ranks` divides `images`.  Elsewhere some get one fewer:
// batches are then the largest with which no rank computes more than 1.25 times the mean, or,
// failing that, those with which the busiest rank computes least.  nullopt where there are no such
// batches, as for fewer images than ranks.  REQUIRES: images, ranks > 0, most >= 0.
std::optional<GlobalBatch> SplitImages(std::int64_t images, std::int64_t max, int ranks);

}  // namespace trainer
