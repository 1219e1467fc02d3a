// SPDX-License-Identifier: Apache-2.0
//
// The log of one training as MLPerf wants it (training 4.0, open division), one line per event:
//   :::MLLOG {"namespace": "", "time_ms": 1605627653398, "event_type": "POINT_IN_TIME",
//             "key": "submission_benchmark", "value": "resnet", "metadata": {}}
// in one line.  It holds every key that the compliance checker asks for
// (github.com/mlcommons/logging, compliance_checker, training_4.0.0: common, open_common and
// open_resnet), and those of the closed division that are true of ddltraind.  Epochs count from 1,
// as in MLPerf's own logs.  Nothing is written per step.  Not thread-safe; rank 0 alone writes it.

#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/python_format.h"

namespace trainer {

// Who submits, what on.  Each must have a value.
struct MlLogSubmission {
  std::string org;
  std::string platform;
  std::string status;  // "cloud", "onprem", "preview" or "research"
};

// The training that this launch is to make.
struct MlLogTraining {
  std::uint64_t seed = 0;
  std::int64_t global_batch = 0;
  std::int64_t batches_per_step = 1;  // of a rank
  std::int64_t batch_per_rank = 0;
  std::int64_t train_samples = 0;  // of the sets
  std::int64_t eval_samples = 0;
  double base_learning_rate = 0;  // scaled to the global batch
  std::int64_t warmup_epochs = 0;
  std::int64_t decay_steps = 0;
  double momentum = 0;
  double weight_decay = 0;
  std::int64_t first_epoch = 0;  // from 0; the one that it goes on in
  std::int64_t epochs = 0;       // of the whole run, those before first_epoch among them
};

class MlLog {
 public:
  // `out` must stay alive.  Writes the submission and the start of the initialisation.
  MlLog(std::ostream& out, const MlLogSubmission& submission, WallClock clock = SystemClock());

  // The end of the initialisation, and the beginning of the first epoch.
  void StartTraining(const MlLogTraining& training);
  // The steps of `epoch`, from 0, are done.  `more`: this launch makes others.
  void EndEpoch(std::int64_t epoch, bool more);
  void EndTraining();
  // Of the weights after `epoch`, from 0, or in its midst; also between epochs of the block.
  void StartEvaluation(std::int64_t epoch);
  // `top1`: a fraction of 1.
  void EndEvaluation(std::int64_t epoch, double top1);
  // `success`: all of it, the evaluation too, was done.
  void EndRun(bool success);

 private:
  void StartEpoch(std::int64_t epoch);
  LogFields Epoch(std::int64_t epoch) const;
  void Point(std::string_view key, const LogValue& value, const LogFields& metadata = {});
  void Start(std::string_view key, const LogFields& metadata);
  void Stop(std::string_view key, const LogFields& metadata);
  void Line(std::string_view type, std::string_view key, std::string_view value,
            const LogFields& metadata);

  std::ostream& out_;
  WallClock clock_;
  MlLogTraining training_;
  std::int64_t open_epoch_ = -1;  // that has begun and not ended
  bool is_running_ = false;       // from run_start to run_stop
};

}  // namespace trainer
