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
// The same of the moving averages of the statistics, where they are kept.
inline constexpr char kAverageRankStatistics[] = "average_rank_statistics";

// The statistics of all ranks (train/state/network_state.h).
struct StatisticRows {
  std::vector<float> values;
  std::vector<float> ema;  // empty where none are kept
};

class SnapshotCopy {
 public:
  // Takes and touches all memory that it needs (program/run_memory.h), by
  // Backend::AllocateHost. `backend` outlives it.
  SnapshotCopy(Backend& backend, const Network& network);

  // Copies weights, momentum and averages of `network`, which is that of the constructor; waits for
  // `stream`.  `rows`: of the ranks of `state`, of which model and average get the mean.
  void Take(const Network& network, CheckpointState state, StatisticRows rows, Stream& stream);

  // Of the last Take.
  const CheckpointState& state() const { return state_; }
  std::span<const TensorReader> model() const { return model_; }          // torchvision's names
  std::span<const TensorReader> optimizer() const { return optimizer_; }  // momentum by these names
  std::span<const TensorReader> average() const { return average_; }      // of model(), or empty

 private:
  // Copies `part` of all parameters to `dst`; of statistics the mean of `rows`.
  void TakeValues(const Network& network, Network::Part part, const std::vector<float>& rows,
                  float* dst, Stream& stream) const;

  Buffer values_;    // of model_, in its order
  Buffer momentum_;  // of optimizer_, but for those of ranks
  Buffer ema_;       // of average_, in its order
  std::size_t momentum_tensors_ = 0;
  StatisticRows rows_;
  CheckpointState state_;
  std::vector<TensorReader> model_;
  std::vector<TensorReader> optimizer_;
  std::vector<TensorReader> average_;
};

}  // namespace trainer
