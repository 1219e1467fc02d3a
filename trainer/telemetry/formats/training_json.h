// SPDX-License-Identifier: Apache-2.0
//
// The file training.json that NVIDIA's TensorFlow ResNet-50 of 2019 and IBM's copy of it leave in
// their results directory (the JSON backend of dllogger 0.2.3):
//   {"run": {},
//    "epoch": {"x": [0, ...], "epoch": [0, ...], "final_cross_entropy": [...], ...},
//    "iter": {"x": [[0, 10, ...], [...], []], "iteration": [[...]], "imgs_per_sec": [[...]], ...},
//    "event": {}}
// Iterations are those that NVLOG prints, in a list for each epoch and one for what follows the
// last; their "x" counts from 0 in each epoch, "iteration" through the whole launch.  A later
// launch begins it anew, as there.
//
// It is written as a whole, at the end and when an epoch ends, but then no more often than every
// kSecondsBetweenWrites.  Not thread-safe; rank 0 alone writes it.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/telemetry/formats/training_log.h"
#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {

class TrainingJson : public TrainingLog {
 public:
  static constexpr double kSecondsBetweenWrites = 5;

  // `on_loss`: ReplacedFile.
  TrainingJson(std::filesystem::path path, std::function<void(int error)> on_loss,
               WallClock clock = SystemClock());

  void Step(const StepMetrics& metrics) override;
  void EndTraining(std::optional<double> /*images_per_second*/) override { file_.Write(Text()); }

 private:
  // What the file has of a step, whose other metrics are not kept: there may be a million.
  struct Entry {
    std::int64_t x;
    std::int64_t number;  // of the iteration or of the epoch
    double images_per_second;
    double cross_entropy;
    double l2_loss;
    double total_loss;
    double learning_rate;
  };
  static Entry EntryOf(std::int64_t x, std::int64_t number, const StepMetrics& metrics);
  std::string Text();

  ReplacedFile file_;
  WallClock clock_;
  TimePoint written_;
  std::int64_t steps_in_epoch_ = 0;
  std::vector<Entry> epochs_;
  std::vector<std::vector<Entry>> iterations_{1};  // by epoch
};

}  // namespace trainer
