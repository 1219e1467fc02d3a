// SPDX-License-Identifier: Apache-2.0
//
// Which record a sample number means.  Pure: a function of (seed, sample number), so that nothing
// has to be kept to resume, and any rank can ask for any sample.
//
// Training: sample k is place k % records of epoch k / records.  The order of an epoch is a
// permutation of the records: a Feistel network over the place's bits whose round function is
// Philox, walked on until it falls below `records` (Black and Rogaway, "Ciphers with arbitrary
// finite domains", CT-RSA 2002).  Its numbers are those of (seed, kShuffle, epoch).

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainer {

// How far a training has come, which a checkpoint keeps and RestoreSnapshot
// (train/state/snapshot.h) resumes from.  It means the same to any number of ranks, with any batch.
struct Position {
  std::int64_t step = 0;    // updates done
  std::int64_t sample = 0;  // images taken by all ranks together: the number of the next one
  // Images among them from which nothing was learnt (train/state/snapshot.h).
  std::int64_t skipped = 0;

  // That of `other_step`, where from here on each step takes, or up to here each took,
  // `global_batch` images.
  Position At(std::int64_t other_step, std::int64_t global_batch) const {
    return {other_step, sample + (other_step - step) * global_batch, skipped};
  }

  bool operator==(const Position&) const = default;
};

// The images that all ranks take in one step, and how they are split into equal batches.  Nothing
// else multiplies them out.  Pure.
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

class ShardSampler {
 public:
  // REQUIRES: 0 < records <= 2^32.  `shuffle` false: file order in every epoch.
  ShardSampler(std::int64_t records, std::uint64_t seed, bool shuffle);

  // REQUIRES: sample >= 0.
  std::int64_t RecordOf(std::int64_t sample) const;

 private:
  std::int64_t Permute(std::int64_t epoch, std::int64_t place) const;

  std::int64_t records_;
  std::uint64_t seed_;
  bool shuffle_;
  int half_bits_;
};

// How one rank's batch of one step lies among the sample numbers (data_loader.h).
struct BatchRange {
  std::int64_t first_sample;  // of place 0
  std::int64_t valid;         // evaluation: places below this are images, the others are nothing
};

// Training: the first image that the ranks take with their batch `number`, where the batches of a
// rank are numbered one after the other and batch `start.step` begins the step at `start`.
std::int64_t FirstOfRound(const Position& start, std::int64_t number, const GlobalBatch& batch,
                          int rank);
// Training: all of the batch is valid.  `round_sample`: the first of all ranks.
BatchRange TrainingRange(std::int64_t round_sample, std::int64_t batch, int rank);
// Evaluation of `samples` images.
BatchRange EvaluationRange(std::int64_t step, const GlobalBatch& batch, int rank,
                           std::int64_t samples);
// Steps in which every image is evaluated once.
std::int64_t EvaluationSteps(const GlobalBatch& batch, std::int64_t samples);

}  // namespace trainer
