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

#include <cstdint>
#include <ostream>
#include <string_view>

#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/python_format.h"

namespace trainer {

struct IterationMetrics {
  std::int64_t iteration = 0;    // from 0; NVLOG: steps since the start of the process
  double images_per_second = 0;  // all ranks together, of this one step
  double cross_entropy = 0;
  double l2_loss = 0;
  double total_loss = 0;
  double learning_rate = 0;
};

struct TrainingSummary {
  std::int64_t epochs = 0;
  std::int64_t total_steps = 0;
  double steps_per_epoch = 0;
  std::int64_t decay_steps = 0;
  double weight_decay = 0;
  double initial_learning_rate = 0;
  double momentum = 0;
  int world_size = 1;
  std::int64_t batch_per_rank = 0;
};

struct EvaluationSummary {
  std::int64_t epochs = 1;
  std::int64_t steps = 0;
  std::int64_t decay_steps = -1;
  std::int64_t global_batch = 0;
};

class NvLog {
 public:
  // `out` must stay alive.
  explicit NvLog(std::ostream& out, WallClock clock = SystemClock());

  void StartTraining(const TrainingSummary& summary);
  // The caller picks the iterations to print: every --display_every-th.
  void Iteration(const IterationMetrics& metrics);
  // `last` is the last iteration of the epoch, `epoch` counts from 0.
  void Epoch(std::int64_t epoch, const IterationMetrics& last);
  void EndTraining();

  void StartEvaluation(const EvaluationSummary& summary);
  // Fractions of 1; printed as percent with three decimals.
  void Accuracy(double top1, double top5);
  void EndEvaluation();

 private:
  void Text(std::string_view call_site, std::string_view text);
  void Value(std::string_view call_site, std::string_view key, const LogValue& value);

  std::ostream& out_;
  WallClock clock_;
};

}  // namespace trainer
