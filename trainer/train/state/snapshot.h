// SPDX-License-Identifier: Apache-2.0
//
// Saves a run so that it goes on as if it had never stopped, and starts it again: with any number
// of ranks, any batch and on any back end (doc/decisions/0022-resume-with-other-ranks.md).
//
// Rank 0 reads and writes; the others get what it has by broadcast, so model_dir need not be shared
// between nodes.  All functions but WriteSnapshot are collective: every rank calls them, in the
// same order.
//
// model.safetensors holds torchvision's state_dict, with the mean of the ranks' running statistics;
// optimizer.safetensors momentum by the same names and, of a run of several ranks,
// "rank_statistics" (ranks, n): each rank's own (train/state/network_state.h).  A run that goes
// on with as many ranks takes each rank's own, with another number of ranks the mean.  A run that
// keeps moving averages has them in average.safetensors as model.safetensors has the values, and
// "average_rank_statistics" beside the others.

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/writer.h"
#include "trainer/comm/communicator.h"
#include "trainer/data/shard_sampler.h"
#include "trainer/model/network.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/config.h"
#include "trainer/train/schedule.h"
#include "trainer/train/step/non_finite_guard.h"

namespace trainer {

// A copy of all that a checkpoint holds, in host memory of rank 0, from which it is written while
// training goes on.
//
// Of any thread, but of one at a time.

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

struct SnapshotDeps {
  const TrainConfig& config;
  Network& network;
  Communicator& communicator;
  Stream& stream;
  const Logger& log;
  DType compute_type = DType::kFloat32;  // Backend::compute_type
  DataIdentity* data = nullptr;          // of the weights at hand, on rank 0; null: config.data
};

// Rank 0: weights of `data`, which are in `where`, are to be used with those of deps.config.
// Throws Error(EX_DATAERR) where a label stands for another class in each, naming the first, but
// for config.ignore_mismatched_classes, where that is a warning.  What the run does not know of its
// data it takes over, and all of it where it does not train.  `advice` on what else to give, or "".
void TakeDataOfWeights(const SnapshotDeps& deps, const DataIdentity& data, const std::string& where,
                       const std::string& advice);

// Copies the state at `position` to `copy`, which rank 0 has; the others may have null.
// `samples` of the training set: a checkpoint has its position as epochs and images of this one.
// `top1` if these weights were evaluated.
void CopySnapshot(const SnapshotDeps& deps, const Position& position, const LossScale& loss_scale,
                  std::int64_t samples, SnapshotCopy* copy, std::optional<double> top1 = {});

struct WrittenSnapshot {
  std::filesystem::path directory;    // durable
  std::vector<std::string> warnings;  // of old ones that could not be removed
};

// For rank 0, on any thread: writes a checkpoint of `copy` into ModelDirectory(config) and removes
// those that config does not keep.  Throws as RejectNotFinite (train/state/network_state.h) and
// WriteCheckpoint; then there is no new one.  `hook` as WriteCheckpoint has it.
WrittenSnapshot WriteSnapshot(const SnapshotCopy& copy, const TrainConfig& config,
                              const WriteHook& hook = {});

// What a training that goes on has before it.
struct TrainingAhead {
  Schedule schedule;         // of a run that begins with these ranks and this batch
  std::int64_t samples = 0;  // of the training set
  bool is_rollback = false;  // of this launch, which has said all that a resume says
};

// Where to go on, after the newest valid checkpoint of ModelDirectory(config) has been loaded, or
// that of config.resume_from; nullopt, and nothing changed, if there is none.  For a training, rank
// 0 says what has changed since, and newer checkpoints that cannot be used are set aside; without
// `ahead` only the step counts.  Moving averages that the run keeps start from the weights where
// the checkpoint has none, and those that it does not keep are dropped, which rank 0 says; without
// `ahead` the values are the averages, if there are any.  A loss scale that adapts itself is taken
// over, unless the checkpoint is of another precision.  In a training set of another size it goes
// on after as many epochs, and images of this one, as before. Throws Error: EX_DATAERR for a
// checkpoint of another network, EX_CONFIG for one after the end of the training.
std::optional<Position> RestoreSnapshot(const SnapshotDeps& deps, LossScale& loss_scale,
                                        const std::optional<TrainingAhead>& ahead);

// For a run that starts afresh.  Throws Error(EX_CONFIG) if ModelDirectory(config) has checkpoints:
// the new ones would stand among them, and a later start would go on from the wrong run.
void RejectUsedDirectory(const SnapshotDeps& deps);

// Writes the values alone to `path`, as model.safetensors has them; of a run that keeps moving
// averages, these.
void ExportModel(const SnapshotDeps& deps, const std::filesystem::path& path);

// How a run resumes from a checkpoint: where, after a rollback, and what of it has changed since.

// Where a training resumes after a rollback to a checkpoint (--on_nan=rollback), and how often it
// may do so: doc/decisions/0040-rollback.md.
//
// It goes on with the weights of the checkpoint, behind the images of the step that found numbers
// that are none: those from the checkpoint up to there are skipped.  That is a position like any
// other, so a checkpoint of later holds all that a resume needs, and epochs and learning rate,
// which follow the images, never go back.
//
// Every rank is told the same, so all decide alike.  Pure.
class Rollbacks {
 public:
  // To one checkpoint: where no newer one comes of it, going back once more is no help.
  static constexpr int kMaxInARow = 3;

  // The run goes back to `checkpoint`, since the step that ended before image `behind` has found
  // what NonFiniteGuard says in `found`.  Returns where it goes on.  Throws Error(EX_SOFTWARE),
  // which says that, after kMaxInARow to this checkpoint, or an older one.
  Position Resume(const Position& checkpoint, std::int64_t behind, const std::string& found);

  // To the last checkpoint.
  int in_a_row() const { return in_a_row_; }

 private:
  std::int64_t step_ = -1;  // of the newest checkpoint that was gone back to
  int in_a_row_ = 0;
};

// What a run that goes on says of everything that is not as its checkpoint has it.  Pure.
// One text for each thing that has changed, "ranks 2 (now 3)", with what comes of it behind a
// semicolon where that is not plain.  `now`: the state in which the run goes on.  What one of the
// two does not know, as older versions noted less, is left out.
std::vector<std::string> ChangesSince(const CheckpointState& then, const CheckpointState& now);

}  // namespace trainer
