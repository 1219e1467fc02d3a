// SPDX-License-Identifier: Apache-2.0
//
// Says, in the log of rank 0, which ranks are slower than the others for long
// (train/monitor/straggler_detector.h), where each is, what it computes with, and when it is over.

#pragma once

#include <functional>
#include <span>
#include <string>

#include "trainer/comm/communicator.h"
#include "trainer/telemetry/meters/step_timer.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/monitor/straggler_detector.h"

namespace trainer {

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
