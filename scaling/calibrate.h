// SPDX-License-Identifier: Apache-2.0
//
// What a few measured speeds say of a step: how far ranks are apart, and whether sums are hidden.
// Pure.

#pragma once

#include <cstdint>
#include <string>

#include "scaling/links.h"
#include "scaling/step.h"

namespace scaling {

// Images/s, all GPUs together; 0: not measured.
struct Speeds {
  double one_gpu = 0;
  double one_node = 0;  // all its GPUs
  double two_nodes = 0;
};

enum class Overlap : std::uint8_t { kAuto, kYes, kNo };

// Ranks whose steps are further apart than this, of a step's time, wait for their hosts (the start
// of kernels, hooks, the input) rather than for one another, and then sums are started late, too,
// and hide behind nothing.  Found with the published speeds in tests/fixtures/scaling: of the
// eleven series there those up to 5.2 % hide their sums, those from 6.3 % on lose what they take.
inline constexpr double kMaxSpread = 0.058;

struct Calibration {
  StepWork work = {};
  bool waits = false;  // kAuto has found that sums are not hidden
  std::string reason =
      {};  // for people: what the speeds say that links do not explain; "" for nothing
};

// Of `work` the buckets and what is measured nowhere are taken.  The speed of one GPU gives
// `alone`; what one node takes longer than that and than its sums gives `spread`, the one number
// that is fitted; what two nodes take longer than all this gives `wait_between`. REQUIRES:
// speeds.one_gpu > 0, batch > 0.
Calibration Calibrate(const StepWork& work, const Links& links, double batch, const Speeds& speeds,
                      Overlap overlap);

}  // namespace scaling
