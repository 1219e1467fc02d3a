// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/monitor/all_reduce_wait_monitor.h"

#include <algorithm>
#include <cstddef>

namespace trainer {

std::optional<AllReduceWaitChange> AllReduceWaitMonitor::Add(double step_seconds,
                                                             std::span<const double> busy_seconds) {
  double busiest = 0;
  for (const double seconds : busy_seconds) {
    if (seconds > busiest) busiest = seconds;  // NaN is not
  }
  if (busiest > 0) block_.waited += std::max(step_seconds - busiest, 0.0);
  block_.steps += step_seconds;
  if (++steps_ < kBlock) return std::nullopt;
  steps_ = 0;
  return EndBlock();
}

AllReduceWaitMonitor::Block AllReduceWaitMonitor::Window() const {
  Block sum;
  for (const Block& block : last_) {
    sum.waited += block.waited;
    sum.steps += block.steps;
  }
  return sum;
}

std::optional<AllReduceWaitChange> AllReduceWaitMonitor::EndBlock() {
  const Block ended = block_;
  block_ = {};
  last_[static_cast<std::size_t>(blocks_) % kBlocks] = ended;
  ++blocks_;
  if (best_ >= 0) {
    if (ended.waited / kBlock - best_ >= kLonger * ended.steps / kBlock) {
      if (long_blocks_ == 0 && !is_logged_) begun_ = blocks_ - 1;
      ++long_blocks_;
      short_blocks_ = 0;
      long_at_ = blocks_;
    } else {
      long_blocks_ = 0;
      ++short_blocks_;
    }
  }
  if (blocks_ < static_cast<std::int64_t>(kBlocks)) return std::nullopt;

  const Block window = Window();
  std::optional<AllReduceWaitChange> change;
  const bool begins = !is_logged_ && long_blocks_ == kBlocks;
  const bool ends = is_logged_ && short_blocks_ == kBlocks;
  if (begins || ends) {
    is_logged_ = begins;
    change = {.begins = begins,
              .steps = (long_at_ - begun_) * kBlock,
              .seconds = window.waited / kSteps,
              .best = best_,
              .step = window.steps / kSteps};
  }
  best_ = best_ < 0 ? window.waited / kSteps : std::min(best_, window.waited / kSteps);
  return change;
}

}  // namespace trainer
