// SPDX-License-Identifier: Apache-2.0
//
// NVLOG lines, as NVIDIA's TensorFlow ResNet-50 of 2019 and IBM's copy of it print them (dllogger
// 0.2.3):
//   :::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:100) iteration: 0
// Users and scripts search for these lines, so keys, their order and the call sites in parentheses
// are those of the logs that the Bede cluster's documentation shows
// (software/applications/wmlce.rst); call sites not shown there are those of NVIDIA's code at
// DeepLearningExamples 70c51ad7. Floats are printed as Python's repr.  Not thread-safe; rank 0
// alone writes it.

#pragma once

#include <optional>
#include <ostream>
#include <string_view>

#include "trainer/telemetry/formats/training_log.h"
#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/python_format.h"

namespace trainer {

class NvLog : public TrainingLog {
 public:
  // `out` must stay alive.
  explicit NvLog(std::ostream& out, WallClock clock = SystemClock());

  void StartTraining(const TrainingSummary& summary) override;
  // Prints those that are displayed, and the last of each epoch as such.
  void Step(const StepMetrics& metrics) override;
  void EndTraining(std::optional<double> images_per_second) override;
  void StartEvaluation(const EvaluationSummary& summary) override;
  // Accuracies as percent with three decimals.
  void EndEvaluation(const EvaluationMetrics& metrics) override;

 private:
  void Text(std::string_view call_site, std::string_view text);
  void Value(std::string_view call_site, std::string_view key, const LogValue& value);

  std::ostream& out_;
  WallClock clock_;
};

}  // namespace trainer
