// SPDX-License-Identifier: Apache-2.0
//
// Whether the ranks wait longer for their sums than they did before: what a step takes beyond what
// the busiest of them computes.  A slow rank does not make that longer, a slow link does.
//
// Steps are judged in blocks, as straggler_detector.h has it.  The measure is the best that a run
// of blocks has shown so far, so that what is slow from the first step on is not noticed.
//
// Pure.  Not thread-safe.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace trainer {

// The ranks begin to wait longer, or no longer do.
struct AllReduceWaitChange {
  bool begins = true;
  std::int64_t steps = 0;  // for which they have; if it is over: from the first to the last of them
  // Means of a step.
  double seconds = 0;  // waited, in the last AllReduceWaitMonitor::kSteps
  double best = 0;     // waited, in the best kSteps before
  double step = 0;     // the whole step, in the last kSteps
};

class AllReduceWaitMonitor {
 public:
  static constexpr double kLonger = 0.05;  // than the best, as a share of a step
  static constexpr std::int64_t kSteps = 100;
  static constexpr std::int64_t kBlock = 10;  // steps

  // A step, and `busy_seconds` of each rank in it, of which those not above 0 are not known.  Says
  // when ranks have waited longer in each block of the last kSteps, and when, after that, in none.
  std::optional<AllReduceWaitChange> Add(double step_seconds, std::span<const double> busy_seconds);

 private:
  static constexpr std::size_t kBlocks = kSteps / kBlock;

  struct Block {  // sums over its steps, in seconds
    double waited = 0;
    double steps = 0;
  };

  std::optional<AllReduceWaitChange> EndBlock();
  Block Window() const;

  std::array<Block, kBlocks> last_{};
  Block block_;
  std::int64_t steps_ = 0;         // in this block
  std::int64_t blocks_ = 0;        // that are over
  double best_ = -1;               // waited in the best window; below 0: there was none
  std::int64_t long_blocks_ = 0;   // in a row, up to now
  std::int64_t short_blocks_ = 0;  // the same
  std::int64_t begun_ = 0;         // blocks that there had been when they began to be long
  std::int64_t long_at_ = 0;       // the last block that was
  bool is_logged_ = false;
};

}  // namespace trainer
