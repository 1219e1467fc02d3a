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

#include "trainer/data/global_batch.h"
#include "trainer/data/position.h"

namespace trainer {

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
