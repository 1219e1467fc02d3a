// SPDX-License-Identifier: Apache-2.0

#include "scaling/calibrate.h"

#include <algorithm>
#include <cmath>

namespace scaling {
namespace {

// Two nodes that take more than this beyond what is known of them have a reason of their own.
constexpr double kMuchBetween = 0.05;

std::string Percent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

std::string Milliseconds(double seconds) {
  return std::to_string(std::lround(1000 * seconds)) + " ms";
}

// With which a step of one node takes `step`.
double SpreadOf(StepWork work, const Links& links, double step) {
  work.spread = 0;
  const int ranks = links.gpus_per_node;
  const double more = step - StepBreakdownOf(work, links, ranks).total();
  return ranks < 2 ? 0 : std::max(0.0, more / ExpectedLargest(ranks));
}

}  // namespace

Calibration Calibrate(const StepWork& work, const Links& links, double batch, const Speeds& speeds,
                      Overlap overlap) {
  Calibration found{.work = work};
  StepWork& step = found.work;
  step.alone = batch / speeds.one_gpu;
  step.spread = 0;
  step.wait_between = 0;
  step.overlaps = overlap != Overlap::kNo;
  if (speeds.one_node > 0) {
    const double node_step = batch * links.gpus_per_node / speeds.one_node;
    step.spread = SpreadOf(step, links, node_step);
    if (overlap == Overlap::kAuto && step.spread > kMaxSpread * step.alone) {
      found.waits = true;
      step.overlaps = false;
      step.spread = SpreadOf(step, links, node_step);
      found.reason = "one node takes " + Percent(node_step / step.alone - 1) +
                     " longer for a step than one GPU, and its links explain " +
                     Milliseconds(StepBreakdownOf(step, links, links.gpus_per_node).sums) + " of " +
                     Milliseconds(node_step - step.alone) +
                     ": ranks wait for their hosts, and their sums start late and are not hidden";
    }
  }
  if (speeds.two_nodes > 0) {
    const int ranks = 2 * links.gpus_per_node;
    const double measured = batch * ranks / speeds.two_nodes;
    step.wait_between = std::max(0.0, measured - StepBreakdownOf(step, links, ranks).total());
    if (step.wait_between > kMuchBetween * measured) {
      found.reason +=
          std::string(found.reason.empty() ? "" : "; ") + "two nodes take " +
          Milliseconds(step.wait_between) +
          " of a step more than the adapters explain: as an all-reduce over another network "
          "would, or through host memory";
    }
  }
  return found;
}

}  // namespace scaling
