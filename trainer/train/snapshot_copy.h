// SPDX-License-Identifier: Apache-2.0
//
// A copy of all that a checkpoint holds, in host memory of rank 0, from which it is written while
// training goes on.
//
// Of any thread, but of one at a time.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/model/network.h"

namespace trainer {

// In optimizer.safetensors of a run of several ranks: (ranks, n), each rank's own statistics.
inline constexpr char kRankStatistics[] = "rank_statistics";

class SnapshotCopy {
 public:
  // Takes all memory that it needs (train/memory_needs.h), by Backend::AllocateHost.  `backend`
  // outlives it.
  SnapshotCopy(Backend& backend, const Network& network);

  // Copies weights and momentum of `network`, which is that of the constructor; waits for `stream`.
  // `rows`: the statistics of the ranks of `state` (train/rank_statistics.h), of which the model
  // gets the mean.
  void Take(const Network& network, CheckpointState state, std::vector<float> rows, Stream& stream);

  // Of the last Take.
  const CheckpointState& state() const { return state_; }
  std::span<const TensorSource> model() const { return model_; }          // torchvision's names
  std::span<const TensorSource> optimizer() const { return optimizer_; }  // momentum by these names

 private:
  Buffer values_;    // of model_, in its order
  Buffer momentum_;  // of optimizer_, but for kRankStatistics
  std::vector<float> rows_;
  CheckpointState state_;
  std::vector<TensorSource> model_;
  std::vector<TensorSource> optimizer_;
};

}  // namespace trainer
