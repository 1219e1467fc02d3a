// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/monitor/straggler_detector.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr double kRounding = 1e-9;  // of sums of seconds, as a share of them

}  // namespace

StragglerDetector::StragglerDetector(int ranks)
    : ranks_(static_cast<std::size_t>(ranks)),
      history_(ranks_.size() * kBlocks),
      medians_(kBlocks) {
  sums_.reserve(ranks_.size());
}

std::vector<StragglerTransition> StragglerDetector::Add(std::span<const double> busy_seconds) {
  DDL_CHECK(busy_seconds.size() == ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const double seconds = busy_seconds[i];
    ranks_[i].is_known = ranks_[i].is_known && std::isfinite(seconds) && seconds > 0;
    ranks_[i].sum += seconds;
  }
  std::vector<StragglerTransition> changes;
  if (++steps_ == kBlock) EndBlock(changes);
  return changes;
}

// 0 if nobody's is known.
double StragglerDetector::MedianOfBlock() {
  sums_.clear();
  for (const Rank& rank : ranks_) {
    if (rank.is_known) sums_.push_back(rank.sum);
  }
  if (sums_.empty()) return 0;
  const auto middle = sums_.begin() + static_cast<std::ptrdiff_t>((sums_.size() - 1) / 2);
  std::nth_element(sums_.begin(), middle, sums_.end());
  return *middle;
}

void StragglerDetector::EndBlock(std::vector<StragglerTransition>& changes) {
  const double median = MedianOfBlock();
  const auto place = static_cast<std::size_t>(blocks_ % kBlocks);
  ++blocks_;
  medians_[place] = median;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    history_[place * ranks_.size() + i] = ranks_[i].is_known ? ranks_[i].sum : median;
    if (ranks_[i].is_known) Check(static_cast<int>(i), median, changes);
    ranks_[i].sum = 0;
    ranks_[i].is_known = true;
  }
  steps_ = 0;
}

void StragglerDetector::Check(int rank, double median, std::vector<StragglerTransition>& changes) {
  const auto index = static_cast<std::size_t>(rank);
  Rank& judged = ranks_[index];
  if (judged.sum >= (1 + kSlower) * (1 - kRounding) * median) {
    if (judged.slow_blocks == 0 && !judged.is_reported) judged.begun = blocks_ - 1;
    ++judged.slow_blocks;
    judged.quick_blocks = 0;
    judged.slow_at = blocks_;
  } else {
    judged.slow_blocks = 0;
    ++judged.quick_blocks;
  }
  const bool begins = !judged.is_reported && judged.slow_blocks == kBlocks;
  const bool ends = judged.is_reported && judged.quick_blocks == kBlocks;
  if (!begins && !ends) return;
  judged.is_reported = begins;
  StragglerTransition change = {
      .rank = rank, .begins = begins, .steps = (judged.slow_at - judged.begun) * kBlock};
  for (std::size_t place = 0; place < medians_.size(); ++place) {
    change.seconds += history_[place * ranks_.size() + index] / kSteps;
  }
  change.median = std::accumulate(medians_.begin(), medians_.end(), 0.0) / kSteps;
  changes.push_back(change);
}

}  // namespace trainer
