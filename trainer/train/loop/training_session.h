// SPDX-License-Identifier: Apache-2.0
//
// What a launch has in every mode: the network on its back end, and those whom it tells what it
// does.
//
// Used from one thread.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "trainer/control/run_control.h"
#include "trainer/model/network.h"
#include "trainer/train/config.h"
#include "trainer/train/logging/log_dispatcher.h"
#include "trainer/train/loop/trainer.h"
#include "trainer/train/monitor/hang_watchdog.h"
#include "trainer/train/monitor/stragglers.h"
#include "trainer/train/schedule.h"
#include "trainer/train/state/snapshot.h"
#include "trainer/train/step/batch_feed.h"
#include "trainer/train/step/non_finite_guard.h"

namespace trainer {

// The training loop's dealings with those who watch it and ask it for something: what it is asked
// for, whom it tells what it does, and the pause between two steps.
//
// Used from the thread of the loop, on every rank; where the functions are collective, they say so.

class LoopControl {
 public:
  // Both outlive it.
  LoopControl(const TrainerDeps& deps, LogDispatcher& report);

  // What this rank is asked for now.
  Requests Requested();

  // What the loop does.  `step` updates are done.
  void StartTraining(const Schedule& schedule);  // collective
  void Enter(Activity activity, std::int64_t step);
  void OnStepEnd(const StepResult& record);  // collective
  // There is a checkpoint, from before.
  void Found(std::int64_t step);
  // The evaluation that was asked for is done, or needless.
  void Evaluated();
  // What was asked for is done, without another checkpoint.
  void AckCheckpoint();
  // It ends early, since all ranks were asked to.
  void Stop();

  // Collective: rests until no rank is asked to pause any more, or one to stop, and calls `save`
  // where a checkpoint is asked for meanwhile.  Returns whether to stop.  All ranks meet after each
  // TrainerDeps::rest, so that signals and files are obeyed in a pause too, and none seems to hang.
  bool Rest(std::int64_t step, const std::function<void()>& save);

 private:
  void Tell(RunEvent event);

  const TrainerDeps& deps_;
  LogDispatcher& log_;
  RunControl* const control_;  // of rank 0, where there is one
  Schedule schedule_;
  StragglerReporter stragglers_;
  SlowLinkReporter links_;
};

struct Launch {
  // Both outlive it.  Weights are zero.  Throws what TrainerDeps::agree throws.
  Launch(const TrainConfig& config, const TrainerDeps& deps);
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  SnapshotDeps snapshot_deps();

  // That of a training that begins.
  LossScale FirstLossScale() const;

  // Collective: fresh weights, the same on all ranks.
  void InitializeAfresh();

  // Collective: one evaluation of the weights after `step` updates, told to the logs.  nullopt: it
  // was broken off, since some rank was asked to stop.  Throws as Evaluate and RequireNumbers do,
  // with the network as before.
  std::optional<EvaluationResult> RunEvaluation(std::int64_t step);

  // Collective: whether any rank was asked to stop.  Then all do, for the end of a run that was
  // stopped is collective.
  bool IsToStop() const;

  const TrainConfig& config;
  const TrainerDeps& deps;
  Network network;
  const std::unique_ptr<Stream> stream;
  DeviceBatch device_batch;
  // In kTrainAndEvaluate: the next training batch may be in the other one already.
  std::optional<DeviceBatch> evaluation_batch;
  LossScale loss_scale;
  DataIdentity data;  // of the weights, on rank 0
  LogDispatcher report;
  LoopControl control;
};

// That of a benchmark on images of `source`, warm-up included.  Throws Error(EX_USAGE) if nothing
// is left after warm-up.
Schedule BenchmarkSchedule(const Launch& launch, const DataLoader& source);

// kInferenceBenchmark: forward passes with fresh weights.
TrainResult BenchmarkInference(Launch& launch);

// The modes that use trained weights: those of config.init_from, else of the newest checkpoint in
// config.model_dir.  Throw Error(EX_USAGE) if there are neither.

// kEvaluate.  Collective.
TrainResult EvaluateSaved(Launch& launch);

// kPredict: config.to_predict, of which files that cannot be read do not stop the others; asked to
// stop, it has those so far.  No source is needed.  Collective.  Throws as FindImageFiles.
TrainResult PredictSaved(Launch& launch);

}  // namespace trainer
