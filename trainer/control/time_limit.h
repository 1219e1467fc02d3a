// SPDX-License-Identifier: Apache-2.0
//
// When a training has to stop so that its last checkpoint is written before its job's time ends.
// Pure: all times are told, in seconds, points of time since 1970.

#pragma once

#include <cstddef>
#include <deque>
#include <optional>

namespace trainer {

class TimeLimit {
 public:
  // What is kept for the checkpoint before one of this launch was timed.
  static constexpr double kUnmeasured = 60;
  // Later it is kFactor times the longest of the last kCheckpoints, for a file system that others
  // use has worse hours, and kSpare for the ranks to end.  While one is being written it counts
  // twice: that one is finished before the last one begins.
  static constexpr double kFactor = 2;
  static constexpr std::size_t kCheckpoints = 5;
  static constexpr double kSpare = 10;
  // kUnmeasured and kSpare are no more than this share of what was left when the launch began: a
  // job of a minute is to train as well.
  static constexpr double kShare = 0.25;
  // A step that has begun is finished first: the longest of the last kSteps is kept for it too.
  static constexpr std::size_t kSteps = 20;

  // The job's time ends at `end`, the launch began at `start`.  `margin`: what is kept for a
  // checkpoint instead of what is measured.  REQUIRES: start < end.
  TimeLimit(double start, double end, std::optional<double> margin);

  void StepTook(double seconds);
  void CheckpointBegan();
  // The one that began.
  void CheckpointTook(double seconds);

  double end() const { return end_; }
  // How long before the end the last step has to begin.
  double margin() const;
  bool IsDue(double now) const { return now >= end_ - margin(); }

 private:
  const double end_;
  const double at_most_;  // of kUnmeasured and kSpare
  const std::optional<double> margin_;
  std::deque<double> steps_;
  std::deque<double> checkpoints_;
  bool is_writing_ = false;
};

}  // namespace trainer
