// SPDX-License-Identifier: Apache-2.0
//
// The training loop, from the first weight to the last evaluation.
//
// What main provides:
//   * TrainConfig, equal on all ranks (train/config.h).
//   * a back end; a communicator (comm/factory.h);
//   * `training`: a DataLoader of batches of config.batch_size images, endless; in the training
//   modes;
//   * `evaluation`: a DataLoader that ends, of the same batch and size; for kTrainAndEvaluate,
//     kEvaluate and kInferenceBenchmark;
//   * outputs: a log for people on every rank; most of the other logs are rank 0's;
//   * stop_requested: true once a signal (SIGTERM, SIGUSR1) or a request has asked this rank to
//     stop.  Requested once per step, from the thread of the loop.
//   * requests: on rank 0, in the training modes that keep weights (control/run_requests.h).
// All of it outlives the call.
//
// What main does with what comes back:
//   * kCompleted: exit 0.  kStopped: exit EX_TEMPFAIL (75): a checkpoint was written, start again.
//   * An exception: print its line, then Communicator::Abort(exit code), never plain exit: the
//     other ranks wait in a collective call and would wait for ever.  Every rank makes the same
//     collective calls in the same order; only an exception breaks that, which is why Abort must
//     follow it, and `failed` is the place.
//   * Before all that, once per model_dir and on rank 0 alone: RemoveStaleCheckpoints
//     (checkpoint/writer.h).

#pragma once

#include "trainer/train/config.h"
#include "trainer/train/loop/trainer_deps.h"

namespace trainer {

// Does what config.mode says:
//   kTrain, kTrainAndEvaluate  resume from model_dir, or init_from, or fresh weights; train to the
//       end of the schedule or of run_iter; checkpoint every checkpoint_every steps, at the end and
//       when stopped (train/state/checkpoints.h); then evaluate, and write
//       export_dir, unless stopped.
//   kEvaluate, kPredict  weights from init_from, else from model_dir; Error(EX_USAGE) if there are
//       neither.
//       kPredict needs no source; config.batch_size may be 1.
//   kTrainingBenchmark, kInferenceBenchmark  fresh weights; num_iter of schedule.iter_unit, the
//   first
//       warmup_steps steps of it not measured; Error(EX_USAGE) if nothing is left.  No file is
//       written.
TrainResult RunTrainer(const TrainConfig& config, const TrainerDeps& deps);

}  // namespace trainer
