// SPDX-License-Identifier: Apache-2.0
//
// Which ranks are slower than the others for long.  All ranks of a training take the same time for
// a step, since each waits for all; what is compared is how long each is busy itself (BusySeconds).
//
// Steps are judged in blocks: what is slow in single steps only, back and forth, is slow in their
// sum or not at all, and a single long step is one block.
//
// Pure: what it says follows from what it was told, so that all ranks that were told the same say
// the same.  Not thread-safe.

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/telemetry/meters/step_timer.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {

// A rank begins to be a straggler, or is none any more.
struct StragglerTransition {
  int rank = 0;
  bool begins = true;
  std::int64_t steps = 0;  // for which it has been slow; if it is over: from its first to its last
  // Mean of a step over the last StragglerDetector::kSteps.
  double seconds = 0;  // of the rank
  double median = 0;   // over the ranks
};

class StragglerDetector {
 public:
  static constexpr double kSlower = 0.2;  // than the median, as a share of it
  static constexpr std::int64_t kSteps = 100;
  static constexpr std::int64_t kBlock = 10;  // steps

  explicit StragglerDetector(int ranks);

  // `busy_seconds` of a step, by rank; what is no number, or not above 0, is not known, and leaves
  // that rank as it was.  In the order of the ranks: those that have now been kSlower or more above
  // the median in each block of the last kSteps; and of those told of before, the ones that have
  // not been in any.  The median of an even number is the lower of the middle two: of two ranks the
  // quicker one.
  std::vector<StragglerTransition> Add(std::span<const double> busy_seconds);

 private:
  static constexpr int kBlocks = kSteps / kBlock;

  struct Rank {
    double sum = 0;            // seconds, of this block
    bool is_known = true;      // in all steps of this block
    int slow_blocks = 0;       // in a row, up to now
    int quick_blocks = 0;      // the same
    std::int64_t begun = 0;    // blocks that there had been when it began to be slow
    std::int64_t slow_at = 0;  // the last block in which it was slow
    bool is_reported = false;
  };

  double MedianOfBlock();
  void EndBlock(std::vector<StragglerTransition>& changes);
  void Check(int rank, double median, std::vector<StragglerTransition>& changes);

  std::vector<Rank> ranks_;
  std::vector<double> sums_;     // room for MedianOfBlock
  std::vector<double> history_;  // sums of the last kBlocks blocks, those of a block together
  std::vector<double> medians_;  // of these blocks
  std::int64_t steps_ = 0;       // in this block
  std::int64_t blocks_ = 0;      // that are over
};

// Says, in the log of rank 0, which ranks are slower than the others for long,
// where each is, what it computes with, and when it is over.
struct StragglerReporterDeps {
  Communicator& communicator;
  Logger log;
  std::string host;  // of this rank, or ""
  // What it computes with, with its clocks and temperature of now, or ""; called on a straggler.
  std::function<std::string()> describe_device;
};

class StragglerReporter {
 public:
  explicit StragglerReporter(StragglerReporterDeps deps);

  // Collective, after each step: `busy_seconds` of each rank, the same on all of them, and the
  // times of this one.  Ranks exchange something only where there is something to say.
  void After(std::span<const double> busy_seconds, const StepTimes& times);

 private:
  static constexpr std::size_t kMaxLogged = 8;  // at a time

  std::string Own() const;
  void Tell(const StragglerTransition& change);

  const StragglerReporterDeps deps_;
  StragglerDetector watch_;
  StepTimer recent_{StragglerDetector::kSteps};
};

// "rank 3 on node7 has been 31 % slower than the median of the ranks for 100 steps: ...".  `rank`:
// its name; `own`: what it says of itself.  Pure.
std::string DescribeStraggler(const StragglerTransition& change, const std::string& rank,
                              const std::string& own);

}  // namespace trainer
