// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/time_limit.h"

#include <algorithm>

namespace trainer {
namespace {

void Remember(std::deque<double>& last, double seconds, std::size_t max) {
  last.push_back(seconds);
  if (last.size() > max) last.pop_front();
}

double Longest(const std::deque<double>& last) {
  return last.empty() ? 0 : *std::max_element(last.begin(), last.end());
}

}  // namespace

TimeLimit::TimeLimit(double start, double end, std::optional<double> margin)
    : end_(end), at_most_(kShare * (end - start)), margin_(margin) {}

void TimeLimit::StepTook(double seconds) { Remember(steps_, seconds, kSteps); }

void TimeLimit::CheckpointBegan() { is_writing_ = true; }

void TimeLimit::CheckpointTook(double seconds) {
  Remember(checkpoints_, seconds, kCheckpoints);
  is_writing_ = false;
}

double TimeLimit::margin() const {
  double of_checkpoint = std::min(kUnmeasured, at_most_);
  if (margin_) {
    of_checkpoint = *margin_;
  } else if (!checkpoints_.empty()) {
    const int checkpoints = is_writing_ ? 2 : 1;
    of_checkpoint = std::min(kSpare, at_most_) + checkpoints * kFactor * Longest(checkpoints_);
  }
  return of_checkpoint + Longest(steps_);
}

}  // namespace trainer
