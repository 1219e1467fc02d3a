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

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/telemetry/meters/step_timer.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {

// What is slow in each of some blocks of steps in a row, until it is in none of as many.
class SlowBlocks {
 public:
  explicit SlowBlocks(std::int64_t needed) : needed_(needed) {}

  // Block number `block`, from 1, is over.  Whether it begins to be slow, or is no longer.
  bool Add(bool is_slow, std::int64_t block);
  bool is_slow() const { return is_slow_; }
  // From the first to the last slow one.
  std::int64_t count() const { return last_ - before_; }

 private:
  const std::int64_t needed_;
  bool is_slow_ = false;
  std::int64_t slow_ = 0;    // in a row, up to now
  std::int64_t quick_ = 0;   // the same
  std::int64_t before_ = 0;  // blocks that there had been when it began to be slow
  std::int64_t last_ = 0;    // slow block
};

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

  // `busy_seconds` of a step, by rank; what is NaN, or not above 0, is not known, and leaves
  // that rank as it was.  In the order of the ranks: those that have now been kSlower or more above
  // the median in each block of the last kSteps; and of those told of before, the ones that have
  // not been in any.  The median of an even number is the lower of the middle two: of two ranks the
  // quicker one.
  std::vector<StragglerTransition> Add(std::span<const double> busy_seconds);

 private:
  static constexpr int kBlocks = kSteps / kBlock;

  struct Rank {
    double sum = 0;        // seconds, of this block
    bool is_known = true;  // in all steps of this block
    SlowBlocks slow{kBlocks};
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

// Whether the ranks wait longer for their sums than they did before: what a step takes beyond what
// the busiest of them computes.  A slow rank does not make that longer, a slow link does.
//
// Steps are judged in blocks, as above.  The measure is the best that a run of blocks has shown so
// far, so that what is slow from the first step on is not noticed.  Pure.  Not thread-safe.

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
  std::int64_t steps_ = 0;   // in this block
  std::int64_t blocks_ = 0;  // that are over
  double best_ = -1;         // waited in the best window; below 0: there was none
  SlowBlocks long_{kBlocks};
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

// Finds a loss or a gradient norm that is far above those before it: of a bad stretch of input, of
// a learning rate that is too high, or of memory that fails.  Pure.

// What an outlier was compared with.
struct Outlier {
  double mean = 0;
  double deviation = 0;  // standard
};

class SpikeDetector {
 public:
  static constexpr std::size_t kWindow = 128;  // numbers that one is compared with
  // An outlier is more than so many standard deviations above the mean of the window,
  static constexpr double kDeviations = 6;
  // and more than `share` of the mean: numbers that hardly change deviate by next to nothing.
  explicit SpikeDetector(double share) : share_(share) {}

  // Takes `value` into the window, one that is an outlier too, so that a new level is told once or
  // twice and not for ever.  NaN is left out.
  std::optional<Outlier> Add(double value);

 private:
  const double share_;
  std::array<double, kWindow> window_ = {};
  std::size_t added_ = 0;
};

}  // namespace trainer
