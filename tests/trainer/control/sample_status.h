// SPDX-License-Identifier: Apache-2.0
//
// A status in the midst of a training, every member with a value of its own.

#pragma once

#include "trainer/control/run_status.h"

namespace trainer {

inline RunStatus SampleStatus() {
  RunStatus status;
  status.state = RunState::kTraining;
  status.step = 1200;
  status.steps = 25000;
  status.epoch = 2;
  status.epochs = 50;
  status.loss = 2.4141;
  status.images_per_second = 365.1;
  status.eta_seconds = 2527;
  status.checkpoint_step = 1000;
  status.times.step = 0.7;
  status.times.phases = {0.01, 0.2, 0.4, 0.02, 0.07};
  status.median_busy_seconds = 0.55;
  status.loads = {
      {.rank = 0,
       .host = "gpu025.cluster",
       .busy_seconds = 0.55,
       .input_wait_seconds = 0.0125,
       .gpu_percent = 98,
       .compute_mhz = 1980,
       .celsius = 61},
      {.rank = 1, .host = "gpu026", .busy_seconds = 0.688, .input_wait_seconds = 0.275}};
  status.display_every = 10;
  status.requested = {ControlCommand::kPause, ControlCommand::kCheckpoint};
  status.identity = {.ranks = 2, .host = "gpu025", .pid = 4711, .version = "0.1.0", .job = "123"};
  return status;
}

}  // namespace trainer
