// SPDX-License-Identifier: Apache-2.0
//
// Log lines in the two forms of NVIDIA's DLLogger (github.com/NVIDIA/dllogger, dllogger/logger.py):
// on stdout
//   DLL 2020-07-01 10:00:00.123456 - (0, 21) imgs_per_sec : 365.1  learning_rate : 0.0 <blank>
// and, one JSON object per line, in a file (results_dir/log.json)
//   DLLL {"timestamp": "...", "datetime": "...", "elapsedtime": "...", "type": "LOG", "step": [0,
//   21],
//         "data": {...}}
// Not thread-safe; rank 0 alone writes it.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "trainer/telemetry/formats/training_log.h"
#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/python_format.h"

namespace trainer {

// (epoch, global step): an iteration; (epoch): an epoch; (): the whole run.
using DlStep = std::vector<std::int64_t>;
using DlData = LogFields;

class DlLogger : public TrainingLog {
 public:
  // Lines of steps begin after this many of the launch, as in NVIDIA's hook: readers of its logs
  // count on it (DLPerf takes 100 lines out of 120 steps).
  static constexpr std::int64_t kUnloggedSteps = 20;

  // Either may be null; both must stay alive.  Elapsed time counts from here.
  DlLogger(std::ostream* text, std::ostream* json, WallClock clock = SystemClock());

  // Both are written by StartRun or before the first line of Log: a run that is refused leaves its
  // log as it was.  Properties of a metric, such as its unit; in the JSON alone: the text form is
  // that of NVIDIA's script of 2020, which tells none.
  void Metadata(const std::string& metric, const DlData& metadata);
  // How the run was started; the step is the word PARAMETER.
  void Parameters(const DlData& data);
  void StartRun() override;
  void Log(const DlStep& step, const DlData& data);

  void Step(const StepMetrics& metrics) override;
  void EndTraining(std::optional<double> images_per_second) override;
  void EndEvaluation(const EvaluationMetrics& metrics) override;
  void EndInferenceBenchmark(double images_per_second) override;

 private:
  void WriteMetadata(const std::string& metric, const DlData& metadata);
  void Write(const std::string& text_step, const std::string& json_step, const DlData& data);
  std::string ElapsedSeconds(TimePoint now) const;

  std::ostream* text_;
  std::ostream* json_;
  WallClock clock_;
  TimePoint start_;
  std::vector<std::function<void()>> waiting_;  // what is to be written first
};

}  // namespace trainer
