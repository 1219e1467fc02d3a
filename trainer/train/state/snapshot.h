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

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/writer.h"
#include "trainer/comm/communicator.h"
#include "trainer/data/shard_sampler.h"
#include "trainer/model/network.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/config.h"
#include "trainer/train/schedule.h"
#include "trainer/train/state/snapshot_copy.h"
#include "trainer/train/step/non_finite_guard.h"

namespace trainer {

struct SnapshotDeps {
  const TrainConfig& config;
  Network& network;
  Communicator& communicator;
  Stream& stream;
  const Logger& log;
  DType compute_type = DType::kFloat32;  // Backend::compute_type
};

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

// Where to go on, after the newest valid checkpoint of ModelDirectory(config) has been loaded;
// nullopt, and nothing changed, if there is none.  For a training, rank 0 says what has changed
// since, and newer checkpoints that cannot be used are set aside; without `ahead` only the step
// counts.  Moving averages that the run keeps start from the weights where the checkpoint has none,
// and those that it does not keep are dropped, which rank 0 says; without `ahead` the values are
// the averages, if there are any.  A loss scale that adapts itself is taken over, unless the
// checkpoint is of another precision.  In a training set of another size it goes on after as many
// epochs, and images of this one, as before. Throws Error: EX_DATAERR for a checkpoint of another
// network, EX_CONFIG for one after the end of the training.
std::optional<Position> RestoreSnapshot(const SnapshotDeps& deps, LossScale& loss_scale,
                                        const std::optional<TrainingAhead>& ahead);

// For a run that starts afresh.  Throws Error(EX_CONFIG) if ModelDirectory(config) has checkpoints:
// the new ones would stand among them, and a later start would go on from the wrong run.
void RejectUsedDirectory(const SnapshotDeps& deps);

// Writes the values alone to `path`, as model.safetensors has them; of a run that keeps moving
// averages, these.
void ExportModel(const SnapshotDeps& deps, const std::filesystem::path& path);

}  // namespace trainer
