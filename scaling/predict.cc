// SPDX-License-Identifier: Apache-2.0

#include "scaling/predict.h"

#include <algorithm>
#include <cmath>

namespace scaling {
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
