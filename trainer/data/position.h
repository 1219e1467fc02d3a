// SPDX-License-Identifier: Apache-2.0
//
// How far a training has come.  Images are numbered through all epochs (data/shard_sampler.h), so
// a position means the same to any number of ranks, with any batch.

#pragma once

#include <cstdint>

namespace trainer {

struct Position {
  std::int64_t step = 0;    // updates done
  std::int64_t sample = 0;  // images taken by all ranks together: the number of the next one
  // Images among them from which nothing was learnt (train/state/resume.h).
  std::int64_t skipped = 0;

  // That of `other_step`, where from here on each step takes, or up to here each took,
  // `global_batch` images.
  Position At(std::int64_t other_step, std::int64_t global_batch) const {
    return {other_step, sample + (other_step - step) * global_batch, skipped};
  }

  bool operator==(const Position&) const = default;
};

}  // namespace trainer
