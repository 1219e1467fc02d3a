// SPDX-License-Identifier: Apache-2.0
//
// The log of one training as MLPerf wants it (training 4.0), one line per event:
//   :::MLLOG {"namespace": "", "time_ms": 1605627653398, "event_type": "POINT_IN_TIME",
//             "key": "submission_benchmark", "value": "resnet", "metadata": {}}
// in one line.  It holds every key that the compliance checker asks for
// (github.com/mlcommons/logging, compliance_checker, training_4.0.0: common, open_common,
// open_resnet, closed_common, closed_resnet and closed_resnet_lars or _sgd).  Epochs count from 1,
// as in MLPerf's own logs.  Nothing is written per step.  Not thread-safe; rank 0 alone writes it.

#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "trainer/options/options.h"
#include "trainer/telemetry/formats/training_log.h"
#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/python_format.h"

namespace trainer {

extern const LogFormat kMlLog;

class MlLog : public TrainingLog {
 public:
  // `out` must stay alive.  Writes the submission that `options` tell, and the start of the
  // initialisation.
  MlLog(std::ostream& out, const Options& options, WallClock clock = SystemClock());

  // The end of the initialisation, and the beginning of the first epoch.
  void StartTraining(const TrainingSummary& summary) override;
  void Step(const StepMetrics& metrics) override;
  void RolledBack(const RollbackSummary& summary) override;
  void EndTraining(std::optional<double> images_per_second) override;
  // Also between epochs of the block.
  void StartEvaluation(const EvaluationSummary& summary) override;
  void EndEvaluation(const EvaluationMetrics& metrics) override;
  void EndRun(bool complete) override;

 private:
  void Optimizer(const TrainingSummary& summary);
  void StartEpoch(std::int64_t epoch);
  void EndEpoch(std::int64_t epoch, bool is_last);
  LogFields Epoch(std::int64_t epoch) const;
  void Point(std::string_view key, const LogValue& value, const LogFields& metadata = {});
  void Start(std::string_view key, const LogFields& metadata);
  void Stop(std::string_view key, const LogFields& metadata);
  void Line(std::string_view type, std::string_view key, std::string_view value,
            const LogFields& metadata);

  std::ostream& out_;
  WallClock clock_;
  std::int64_t first_epoch_ = 0;  // from 0
  std::int64_t open_epoch_ = -1;  // that has begun and not ended
  bool is_running_ = false;       // from run_start to run_stop
};

}  // namespace trainer
