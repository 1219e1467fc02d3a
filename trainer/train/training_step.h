// SPDX-License-Identifier: Apache-2.0
//
// One update of the weights: batch, forward, backward with the all-reduce beside it, update, and
// what the ranks tell each other about it.
//
// What becomes of a loss or a gradient that is not finite is for NanWatch to say.  A step that it
// leaves out leaves no trace: the running statistics are set back too.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "trainer/backend/backend.h"
#include "trainer/comm/communicator.h"
#include "trainer/core/span_recorder.h"
#include "trainer/data/source.h"
#include "trainer/model/network.h"
#include "trainer/telemetry/log.h"
#include "trainer/train/batch_feed.h"
#include "trainer/train/config.h"
#include "trainer/train/gradient_overlap.h"
#include "trainer/train/loss_scale.h"
#include "trainer/train/metrics.h"
#include "trainer/train/nan_watch.h"
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
  Source& source;
  std::int64_t end = 0;           // steps from this one on are not run
  SpanRecorder* spans = nullptr;  // of phases; may be null
};

class TrainingStep {
 public:
  struct Outcome {
    StepRecord record;    // launch_step is the caller's
    Requests asked;       // of some rank
    std::string warning;  // for the log of this rank; as a rule there is none
  };

  // All parts outlive it.  Throws Error(EX_USAGE) if config.graph is kOn and cannot be had.
  explicit TrainingStep(const TrainingStepParts& parts);

  // Runs step `step` on the next batch of the source, which must be that of this step; takes the
  // batch after it too, unless that is of `end`.  Collective; the outcome is the same on every
  // rank, its times aside.  Waits until all is done.  Throws as NanWatch::Judge, on every rank.
  Outcome Run(std::int64_t step, double learning_rate, const Requests& asked);

  // Whether steps after the first run as one graph.
  bool records() const { return records_; }
  // Says, on rank 0, how steps are going to run where that matters to people.
  void Announce(spdlog::logger& log) const;
  // Of the last update; times gradient_scale() they are the mean over the global batch.
  const FlatGradients& gradients() const { return overlap_.reduced(); }
  double gradient_scale() const { return gradient_scale_; }

 private:
  float MixupLambda(std::int64_t step) const;
  SgdCall UpdateCall(double learning_rate);
  // Everything from the numbers that the step is told to those that it finds.
  void Queue(const InputBatch& batch);
  void QueueCalls(const InputBatch& batch);
  StepTimes Times(double step_seconds) const;
  void KeepStatistics();
  void SetBackStatistics();

  TrainingStepParts parts_;
  const Mode mode_;
  BatchFeed feed_;
  GradientOverlap overlap_;
  std::unique_ptr<Sgd> sgd_;
  std::array<std::unique_ptr<Event>, 5> marks_;  // batch there, then the end of each phase
  double gradient_scale_ = 1;
  NanWatch nan_watch_;
  Buffer kept_statistics_;  // on the host, of before the step; empty unless they may be set back

  bool records_;              // false from a failure to record on
  std::string not_recorded_;  // why, until the next outcome tells
  bool ran_ = false;
  // By the pixels' address: one for each of the places where batches are.
  std::map<const std::uint8_t*, std::unique_ptr<RecordedWork>> recorded_;
};

}  // namespace trainer
