// SPDX-License-Identifier: Apache-2.0
//
// One update of the weights: batch, forward, backward with the all-reduce beside it, update, and
// what the ranks tell each other about it.
//
// With config.accumulate a step takes several batches, one after the other, some ranks one fewer
// than others (config.short_ranks): their gradients are added up (train/step/gradients.h), and the
// last batch's backward pass has the all-reduce beside it. Loss, accuracy and gradient are the mean
// over all images of the step, the times of a phase the sum over its batches; batch norm sees one
// batch at a time, and each updates the running statistics.
//
// What becomes of a loss or a gradient that is not finite is for NonFiniteGuard to say.  A step
// that it leaves out leaves no trace: the running statistics are set back too.  Moving averages of
// the weights, where they are kept, move with each update and stay where it is left out.
//
// On a device with graphs the next step is queued while one runs, where nothing stands between the
// two (train/step/queue_ahead.h).  It is taken back where the first turns out not to be a good one,
// without a trace, and is queued once more by its own Run.
//
// With config.replay_check each so many steps, by the count of the run, are replayed
// (train/step/replay_check.h): forward and backward twice, kernel by kernel and without the
// all-reduce beside it, which follows.  Their second half is part of the time of backward.

#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "trainer/backend/backend.h"
#include "trainer/comm/communicator.h"
#include "trainer/core/error.h"
#include "trainer/core/span_recorder.h"
#include "trainer/data/data_loader.h"
#include "trainer/model/network.h"
#include "trainer/telemetry/meters/device_state.h"
#include "trainer/train/config.h"
#include "trainer/train/step/batch_feed.h"
#include "trainer/train/step/gradients.h"
#include "trainer/train/step/metrics.h"
#include "trainer/train/step/non_finite_guard.h"
#include "trainer/train/step/queue_ahead.h"
#include "trainer/train/step/replay_check.h"

namespace trainer {

struct TrainingStepDeps {
  const TrainConfig& config;
  Backend& backend;
  Network& network;
  DeviceBatch& device_batch;
  Communicator& communicator;
  Stream& stream;
  LossScale& loss_scale;
  DataLoader& source;
  std::int64_t end = 0;                            // steps from this one on are not run
  SpanRecorder* spans = nullptr;                   // of phases; may be null
  std::function<DeviceState()> device_state = {};  // of this rank, now; may be null
  GradientBucketBytes bucket_bytes = {};
  ReplayRank replay_rank = {};  // of this rank
};

class TrainingStep {
 public:
  struct Outcome {
    StepResult record;  // launch_step is the caller's
    // Of some rank, in this step or, where this one was queued by then or the loop rolled back, in
    // the one before.
    Requests requested;
    std::string warning;  // for the log of this rank; as a rule there is none
    // What was no number, by OnNan::kRollback, which the caller does: weights, statistics and loss
    // scale are not to be used.  "": all is well.
    std::string found;
  };

  // All parts outlive it.  Throws Error(EX_USAGE) if config.graph is kOn and cannot be had.
  explicit TrainingStep(const TrainingStepDeps& deps);

  // The batches of a rank are numbered through the run: where the source is to go for the step that
  // begins at `start`.
  Position FirstBatch(const Position& start) const { return {start.step * batches_, start.sample}; }

  // Runs step `step` on the next batches of the source, which must be those of this step; takes the
  // batch after them too, unless that is of `end`.  Collective; the outcome is the same on every
  // rank, its times aside.  Waits until all of the step is done.  Throws as NonFiniteGuard::Check,
  // on every rank; and RankFault where a rank had no batch or computes two results from one: then
  // all is as it was before the step.
  // `next_rate`: that of the next step, on every rank, where nothing is done between the two with
  // what this one leaves (IsLookedAt).  Then that one may be queued on return (has_next), unless
  // the outcome has requests or found; the next call is its Run, at that rate, or Restart.
  Outcome Run(std::int64_t step, double learning_rate, const Requests& requested,
              std::optional<double> next_rate = std::nullopt);
  bool has_next() const { return next_.has_value(); }

  // After weights and all else were set back: steps from `end` on are not run, and the next is one
  // for which the source has been sent to its FirstBatch.
  void Restart(std::int64_t end) {
    DDL_CHECK(!next_);
    feed_.Restart(end * batches_);
  }

  // Whether steps after the first run as one graph.
  bool records() const { return records_; }
  // Gives back all that was recorded, which must be gone before the communicator is or aborts.
  void ResetCapture() { captured_.clear(); }
  // Says, on rank 0, how steps are going to run where that matters to people.
  void Announce(spdlog::logger& log) const;
  // Of the last update; times gradient_scale() they are the mean over the global batch.
  const FlatGradients& gradients() const { return overlap_.reduced(); }
  double gradient_scale() const { return gradient_scale_; }

 private:
  // What there is once for each place of a batch on the device, so that of two batches under way
  // each has its own.
  struct PlaceState {
    SharedStepScalars* numbers = nullptr;
    std::array<std::unique_ptr<Event>, 5> marks;  // batch there, then the end of each phase
    std::unique_ptr<Event> end;                   // of the batch
    Buffer kept_statistics;  // of before the step; empty where a step leaves them alone
  };

  // A batch whose work is queued.
  struct QueuedBatch {
    std::int64_t step = 0;
    std::int64_t index = 0;  // of the step's batches
    double learning_rate = 0;
    PlaceState* place = nullptr;
    const PlaceState* first = nullptr;  // of the first batch of its step
    std::exception_ptr input_failure;   // why this rank has no batch; as a rule there is none
  };

  UpdateParameters UpdateCall(double learning_rate);
  // The batch `number` of the run, or black images in its place and why.
  InputBatch TakeBatch(std::int64_t number, std::exception_ptr& failure);
  // `before`: the batch before it, of the same step, or of one that is under way and not judged;
  // null: there is none of these.
  QueuedBatch QueueBatch(std::int64_t step, std::int64_t index, double learning_rate,
                         const QueuedBatch* before);
  // Waits for it; what it finds is in its numbers.  Queues the next step meanwhile, if it may.
  StepTimes FinishBatch(const QueuedBatch& batch, std::optional<double> next_rate);
  // Whether something comes between `step` and the next one.
  NextStep NextOf(std::int64_t step, bool is_looked_at) const;
  // As if the next step had never been queued.
  void TakeBackNext();
  bool IsReplayed(std::int64_t step) const {
    return replay_ && (step + 1) % deps_.config.replay_check == 0;
  }
  // In the place of Queue.  Collective for the last batch of a step.
  void RunTwice(const InputBatch& batch, BatchPlace place, const QueuedBatch& queued);
  // Everything from the numbers that a batch is told to those that it finds.
  void Queue(const InputBatch& batch, BatchPlace place);
  void QueueCalls(const InputBatch& batch, BatchPlace place);
  // Collective.  Where some rank cannot, nothing is recorded from here on.
  void Capture(const InputBatch& batch, BatchPlace place);
  void QueueForward(const InputBatch& batch);
  void QueueUpdate();
  BatchPlace PlaceInStep(std::int64_t index) const { return {index == 0, index + 1 == batches_}; }
  StepTimes Times(const QueuedBatch& batch) const;
  void KeepStatistics();
  void SetBackStatistics(const PlaceState& place);
  // Of the batch that was taken last.
  PlaceState& here() { return places_[deps_.device_batch.place()]; }

  TrainingStepDeps deps_;
  const GlobalBatch global_batch_;
  const std::int64_t batches_;  // of this rank in a step
  const Mode mode_;
  BatchFeed feed_;
  GradientOverlap overlap_;
  std::array<PlaceState, DeviceBatch::kPlaces> places_;
  double gradient_scale_ = 1;
  NonFiniteGuard non_finite_guard_;
  RankSeconds rank_seconds_;
  RankMetricsExchange rank_metrics_exchange_;
  std::optional<ReplayCheck> replay_;
  std::optional<ReplayDifference> difference_;  // of the step that is replayed

  std::optional<QueuedBatch> next_;      // the step behind the one that is run, or to be run
  Requests pending_;                     // until a step ends behind which nothing is queued
  const std::unique_ptr<Stream> watch_;  // has nothing but waits for PlaceState::end
  std::chrono::steady_clock::time_point ended_;  // the last step

  bool records_;              // false from a failure to record on
  std::string not_captured_;  // why, until the next outcome tells
  bool ran_ = false;
  // By the pixels' address and the place in the step: one for each of the places where batches are.
  std::map<std::pair<const std::uint8_t*, BatchPlace>, std::unique_ptr<CapturedGraph>> captured_;
};

}  // namespace trainer
