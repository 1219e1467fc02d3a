// SPDX-License-Identifier: Apache-2.0
//
// Says, in the log of rank 0, when the ranks wait longer for their sums than before
// (train/monitor/all_reduce_wait_monitor.h), and which link between hosts has become slower: no
// rank is slow then, and times of ranks say nothing.
//
// A link is from a rank to the next one, the last one's to the first, where they are on different
// hosts: in the order of the ranks, so one from each host where these are not dealt out in turn.
// They are measured before training, in milliseconds, and again when there is something to say.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/telemetry/meters/step_timer.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/monitor/all_reduce_wait_monitor.h"

namespace trainer {

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
