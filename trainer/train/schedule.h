// SPDX-License-Identifier: Apache-2.0
//
// How long training takes, and its learning-rate schedule: the rules of NVIDIA's TensorFlow
// ResNet-50 (DeepLearningExamples, TensorFlow/Classification/ConvNets at fed7ba99:
// runtime/runner.py, utils/learning_rate.py), and the polynomial of MLPerf's reference
// (mlcommons/training, image_classification/tensorflow2/lars_util.py).  Pure.
//
//   global batch     batch per rank * ranks
//   steps per epoch  floor(samples / global batch); the rest of an epoch belongs to the next
//   unit epoch       steps = steps per epoch * num_iter; decay steps = steps
//   unit batch       steps = num_iter; epochs = ceil(steps / floor(samples / global batch));
//                    steps per epoch = steps / epochs, a fraction; decay steps = 90 * samples
//                    / global batch, rounded down
//   rescaled rate    linear: lr_init * global batch / 256
//                    sqrt: lr_init * sqrt(global batch / 256)
//                    none: lr_init
//   warm-up          W = int(steps per epoch * lr_warmup_epochs); at step s < W: rescaled * s / W,
//                    so 0 at step 0
//   cosine           rescaled * (1 + cos(pi * min(s, D) / D)) / 2 with D = decay steps, counted
//                    from step 0 and not from W
//   steps            rescaled * 1, 0.1, 0.01, 0.001, 0.0001; the next one holds from the step after
//                    int(steps per epoch * e) for e = 30, 60, 80, 90
//   polynomial       lr_end + (rescaled - lr_end) * (1 - min(s - W, D) / D)^2 with D = decay steps,
//                    counted from W: lr_decay_steps, or those from W to the last step of training,
//                    at least 1; MLPerf's D is one more in that case
//
// A run that goes on with another global batch has a schedule made anew of that; all learning rates
// then follow the images that were taken: s = images / global batch, which need not be whole.
// Training of N epochs ends before the step that would go beyond them, training of N batches after
// N updates in all.

#pragma once

#include <cstdint>

#include "trainer/data/shard_sampler.h"

namespace trainer {

enum class IterationUnit : std::uint8_t { kEpoch, kBatch };

// Behind the warm-up.
enum class RateDecay : std::uint8_t { kSteps, kCosine, kPolynomial };

// What the images of a step make of lr_init.
enum class RateScaling : std::uint8_t { kLinear, kSqrt, kNone };

struct ScheduleConfig {
  IterationUnit iter_unit = IterationUnit::kEpoch;
  std::int64_t num_iter = 1;   // length of training, in `iter_unit`
  std::int64_t run_iter = -1;  // how much of it in this launch, in `iter_unit`; -1: all
  double lr_init = 0.1;        // at a global batch of 256, unless lr_scaling is kNone
  RateScaling lr_scaling = RateScaling::kLinear;
  std::int64_t lr_warmup_epochs = 5;
  RateDecay lr_schedule = RateDecay::kSteps;
  double lr_end = 0.0001;           // of kPolynomial; the first rate where that is less
  std::int64_t lr_decay_steps = 0;  // of kPolynomial; 0: to the end of training
};

struct Schedule {
  IterationUnit iter_unit = IterationUnit::kEpoch;
  std::int64_t global_batch = 0;
  std::int64_t whole_steps_per_epoch = 0;  // floor(samples / global batch)
  double steps_per_epoch = 0;              // as the formulas above use it
  std::int64_t total_steps = 0;            // of the whole run, those before `start` among them
  std::int64_t epochs = 0;
  std::int64_t decay_steps = 0;
  std::int64_t warmup_steps = 0;
  double rescaled_rate = 0;
  double end_rate = 0;  // of kPolynomial
  RateDecay decay = RateDecay::kSteps;
  std::int64_t steps_per_launch = 0;  // of run_iter
  Position start;                     // from which on steps take global_batch images

  // This schedule, of a run from its start, for one that came to `position` in whatever way.  Its
  // total_steps are fewer than position.step where the run has gone beyond its end.
  Schedule From(const Position& position) const;
  // After `step` updates.
  Position PositionAt(std::int64_t step) const { return start.At(step, global_batch); }
  // Of the update that leads from `step` to `step` + 1.
  double LearningRate(std::int64_t step) const;
  // The epoch, from 0, to which that update belongs.
  std::int64_t EpochOf(std::int64_t step) const {
    return PositionAt(step).sample / (whole_steps_per_epoch * global_batch);
  }
  // Whether the last of `step` updates has ended the `every`-th, 2 * `every`-th, ... of
  // `iter_unit`.
  bool EndsPeriod(std::int64_t step, std::int64_t every) const;
  // Where a launch that starts at `step` ends.
  std::int64_t EndOfLaunch(std::int64_t step) const;
};

// Throws Error: EX_CONFIG when `samples`, the size of `set`, is less than one global batch;
// EX_USAGE when num_iter is beyond all reason.
Schedule MakeSchedule(const ScheduleConfig& config, std::int64_t samples, const GlobalBatch& batch,
                      const char* set = "training");

}  // namespace trainer
