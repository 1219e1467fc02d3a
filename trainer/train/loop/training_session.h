// SPDX-License-Identifier: Apache-2.0
//
// What a launch has in every mode: the network on its back end, and those whom it tells what it
// does.
//
// Used from one thread.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "trainer/model/network.h"
#include "trainer/train/logging/log_dispatcher.h"
#include "trainer/train/loop/loop_control.h"
#include "trainer/train/loop/trainer.h"
#include "trainer/train/state/snapshot.h"
#include "trainer/train/step/batch_feed.h"
#include "trainer/train/step/non_finite_guard.h"

namespace trainer {

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
  LogDispatcher report;
  LoopControl control;
};

}  // namespace trainer
