// SPDX-License-Identifier: Apache-2.0
//
// Whether the ranks wait longer for their sums than they did before: what a step takes beyond what
// the busiest of them computes.  A slow rank does not make that longer, a slow link does.
//
// Steps are judged in blocks, as stragglers.h has it.  The measure is the best that a run
// of blocks has shown so far, so that what is slow from the first step on is not noticed.
//
// Pure.  Not thread-safe.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/telemetry/meters/step_timer.h"
#include "trainer/telemetry/text/log.h"

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

// Says, in the log of rank 0, when the ranks wait longer for their sums than before, and
// which link between hosts has become slower: no rank is slow then, and times of ranks say nothing.
//
// A link is from a rank to the next one, the last one's to the first, where they are on different
// hosts: in the order of the ranks, so one from each host where these are not dealt out in turn.
// They are measured before training, in milliseconds, and again when there is something to say.

inline constexpr double kSlowLink = 0.7;

// What a rank hears from the rank before it.
struct MeasuredLink {
  int rank = 0;          // that hears
  double first = 0;      // bytes/s, before training
  double now = 0;        // bytes/s
  bool is_slow = false;  // now below kSlowLink of what it was, or of the median of all links
};

class SlowLinkReporter {
 public:
  SlowLinkReporter(Communicator& communicator, Logger log);

  // Collective, before the first step, and again when training has gone back: the host of each
  // rank.  The first time, links are measured.
  void Start(const std::vector<std::string>& hosts);
  // Collective, after each step: what StragglerReporter::After is told.  Ranks exchange a byte
  // after each AllReduceWaitMonitor::kBlock, and only where there is a link.
  void After(std::span<const double> busy_seconds, const StepTimes& times);

 private:
  std::vector<double> Measure();

  Communicator& communicator_;
  const Logger log_;
  std::vector<std::string> hosts_;
  std::vector<int> ranks_;     // that hear from another host
  std::vector<double> first_;  // bytes/s, by rank
  AllReduceWaitMonitor watch_;
  std::optional<AllReduceWaitChange> change_;  // of rank 0, that the others do not know of yet
  std::int64_t steps_ = 0;
};

// `ranks` hear from another host; rates are by rank.  Slowest first.  Pure.
std::vector<MeasuredLink> CompareLinks(std::span<const int> ranks, std::span<const double> first,
                                       std::span<const double> now);

// "for 100 steps ranks have waited for their sums 90.4 ms in each, 40.2 before ...".  `links`: as
// CompareLinks gives them, empty where it is over.  Pure.
std::string DescribeSums(const AllReduceWaitChange& change, std::span<const MeasuredLink> links,
                         std::span<const std::string> hosts);

}  // namespace trainer
