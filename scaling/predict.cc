// SPDX-License-Identifier: Apache-2.0

#include "scaling/predict.h"

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

namespace {

constexpr double kMuch = 0.1;      // of a step
constexpr double kHelpful = 1.01;  // times as fast

Links LinksOfAll(const Training& training, int ranks) {
  if (training.others.nodes == 0) return training.links;
  return JoinedLinks(training.links, ranks, training.others.links, training.others.nodes);
}

// `links` and `ranks` of all nodes.
double InputSeconds(const Training& training, const Links& links, int ranks) {
  const Input& input = training.input;
  double seconds = 0;
  if (input.node_images > 0) {
    const int of_node = std::min(ranks, links.gpus_per_node);
    seconds = training.batch * of_node / input.node_images;
  }
  if (input.file_system > 0) {
    seconds = std::max(seconds, training.batch * ranks * input.image_bytes / input.file_system);
  }
  return seconds;
}

Bound BoundOf(const Prediction& at) {
  const StepBreakdown& parts = at.parts;
  if (at.input > parts.total()) return Bound::kInput;
  const double links = parts.exposed + parts.wait;
  const double slowest = parts.slowest + at.kinds_wait;
  if (links + slowest <= kMuch * parts.total()) return Bound::kCompute;
  if (slowest > links) return Bound::kRanks;
  return at.nodes > 1 ? Bound::kBetween : Bound::kInside;
}

}  // namespace

std::string_view NameOf(Bound bound) {
  switch (bound) {
    case Bound::kCompute:
      return "compute";
    case Bound::kRanks:
      return "ranks";
    case Bound::kInside:
      return "link inside";
    case Bound::kBetween:
      return "link between";
    case Bound::kInput:
      return "input";
  }
  return "";
}

Prediction Predict(const Training& training, int ranks) {
  const OtherNodes& others = training.others;
  const Links links = LinksOfAll(training, ranks);
  const int all = ranks + others.ranks();
  Prediction at{.nodes = NodesOf(links, all), .ranks = all};
  StepWork work = training.work;
  double alone = ranks / work.alone;  // batches/s of all GPUs, each by itself
  if (others.nodes > 0) {
    at.kinds_wait = std::abs(work.alone - others.alone);
    alone += others.ranks() / others.alone;
    work.alone = std::max(work.alone, others.alone);
  }
  at.parts = StepBreakdownOf(work, links, all);
  at.input = InputSeconds(training, links, all);
  at.step = std::max(at.parts.total(), at.input);
  at.images_per_second = training.batch * all / at.step;
  at.efficiency = all / at.step / alone;
  at.bound = BoundOf(at);
  return at;
}

std::vector<Change> ChangesThatHelp(const Training& training, int ranks) {
  const Prediction today = Predict(training, ranks);
  std::vector<Change> changes;
  const auto consider = [&](const char* what, const Training& other) {
    const double speed = Predict(other, ranks).images_per_second;
    if (speed >= kHelpful * today.images_per_second) changes.push_back({what, speed});
  };
  Training other = training;
  other.work.alone /= 2;
  other.others.alone /= 2;
  consider(training.others.nodes == 0 ? "a GPU twice as fast" : "GPUs twice as fast", other);

  if (training.others.nodes > 0) {
    other = training;
    other.others = {};
    consider("without the nodes of the other kind", other);
    other = training;
    other.work.alone = other.others.alone = std::min(other.work.alone, other.others.alone);
    consider("GPUs that are all of the quicker kind", other);
  }

  other = training;
  other.input = {};
  consider("input that is never waited for", other);

  other = training;
  other.work.spread = 0;
  consider("ranks that are all alike", other);

  other = training;
  other.work.alone *= 2;
  other.others.alone *= 2;
  other.batch *= 2;
  consider("twice the batch per GPU", other);

  if (!training.work.overlaps) {
    other = training;
    other.work.overlaps = true;
    consider("sums that overlap with backward", other);
  }
  if (training.work.staging_rate > 0) {
    other = training;
    other.work.staging_rate = 0;
    consider("sums of GPU memory, not of host memory", other);
  }
  if (training.sums == AllReduceModel::kFp32) {
    other = training;
    other.work.buckets = ResNet50Buckets(AllReduceModel::kHalf, training.rule, training.backward);
    consider("sums in 16 bits", other);
  }
  if (today.nodes > 1) {
    other = training;
    other.links.between *= 2;
    other.others.links.between *= 2;
    for (BusRate& rate : other.links.measured) rate.rate *= 2;
    consider("twice the adapters of each node", other);
    if (training.work.wait_between > 0) {
      other = training;
      other.work.wait_between = 0;
      consider("without what two nodes wait for", other);
    }
  } else {
    other = training;
    other.links.inside *= 2;
    consider("links twice as fast inside the node", other);
  }
  std::ranges::stable_sort(changes, std::ranges::greater(), &Change::images_per_second);
  return changes;
}

}  // namespace scaling
