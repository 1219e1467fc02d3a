// SPDX-License-Identifier: Apache-2.0
//
// One update of the weights: batch, forward, backward with the all-reduce beside it, update, and
// what the ranks tell each other about it.
//
// A loss that is not finite ends the run: Error(EX_SOFTWARE), on every rank, before anything is
// saved.  So does a gradient that is not finite, unless a dynamic loss scale can still be lowered:
// then the step updates nothing and training goes on.

#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "trainer/backend/backend.h"
#include "trainer/comm/communicator.h"
#include "trainer/data/source.h"
#include "trainer/model/network.h"
#include "trainer/train/config.h"
#include "trainer/train/device_batch.h"
#include "trainer/train/gradient_overlap.h"
#include "trainer/train/loss_scale.h"
#include "trainer/train/report.h"

namespace trainer {

struct TrainingStepParts {
  const TrainConfig& config;
  Backend& backend;
  Network& network;
  DeviceBatch& device_batch;
  Communicator& communicator;
  Stream& stream;
  LossScale& loss_scale;
};

class TrainingStep {
 public:
  struct Outcome {
    StepRecord record;  // launch_step is the caller's
    bool stop = false;  // some rank was asked to stop
  };

  // All parts outlive it.
  explicit TrainingStep(const TrainingStepParts& parts);

  // Runs step `step` on the next batch of `source`, which must be that of this step.  Collective;
  // the outcome is the same on every rank, its times aside.  Waits until all is done.
  Outcome Run(std::int64_t step, double learning_rate, Source& source, bool stop_requested);

  // Of the last update: 1 / (loss scale * ranks).
  double gradient_scale() const { return gradient_scale_; }

 private:
  float MixupLambda(std::int64_t step) const;
  UpdateSums Update(double learning_rate);
  StepTimes Times(double input_wait, double step_seconds) const;

  TrainingStepParts parts_;
  const Mode mode_;
  GradientOverlap overlap_;
  std::unique_ptr<Sgd> sgd_;
  Buffer update_sums_;
  std::array<std::unique_ptr<Event>, 5> marks_;  // batch there, then the end of each phase
  double gradient_scale_ = 1;
};

}  // namespace trainer
