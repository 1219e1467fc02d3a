// SPDX-License-Identifier: Apache-2.0

#include "scaling/predict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "scaling/calibrate.h"

namespace scaling {
namespace {

// Bede's job: 4 V100 on each node, 256 images, 1,125 images/s of one GPU.
Training OfBede() {
  Training training;
  training.work = {.alone = 256 / 1125.0,
                   .buckets = ResNet50Buckets(Sums::kFp32, BucketRule::kDdltraind)};
  training.links = {.gpus_per_node = 4, .inside = 32e9, .between = AdapterRate(200)};
  return training;
}

std::vector<std::string> NamesOf(const std::vector<Change>& changes) {
  std::vector<std::string> names;
  for (const Change& change : changes) names.push_back(change.what);
  return names;
}

TEST(Predict, OfOneGpuIsItsOwnSpeed) {
  const Prediction at = Predict(OfBede(), 1);
  EXPECT_NEAR(at.images_per_second, 1125, 1e-6);
  EXPECT_EQ(at.efficiency, 1);
  EXPECT_EQ(at.nodes, 1);
  EXPECT_EQ(at.bound, Bound::kCompute);
}

TEST(Predict, OfOverlappedSumsScalesToThousandsOfNodes) {
  EXPECT_GT(Predict(OfBede(), 32).efficiency, 0.99);
  const Prediction large = Predict(OfBede(), 4 * kMostNodes);
  EXPECT_EQ(large.nodes, 4096);
  EXPECT_LT(large.efficiency, Predict(OfBede(), 32).efficiency);
  EXPECT_GT(large.efficiency, 0);
}

TEST(Predict, OfTwoKindsOfNodesAllWaitForTheSlowerOne) {
  Training training = OfBede();
  training.others = {.nodes = 2, .alone = 256 / 450.0, .links = training.links};
  const Prediction at = Predict(training, 16);
  EXPECT_EQ(at.nodes, 6);
  EXPECT_EQ(at.ranks, 24);
  EXPECT_NEAR(at.step, 256 / 450.0, 2e-3);
  EXPECT_NEAR(at.kinds_wait, 256 / 450.0 - 256 / 1125.0, 1e-9);
  EXPECT_NEAR(at.images_per_second, 24 * 450, 50);
  EXPECT_NEAR(at.efficiency, 24 * 450 / (16 * 1125.0 + 8 * 450), 2e-3);
  EXPECT_EQ(at.bound, Bound::kRanks);
  EXPECT_EQ(NamesOf(ChangesThatHelp(training, 16)),
            (std::vector<std::string>{"GPUs that are all of the quicker kind", "GPUs twice as fast",
                                      "without the nodes of the other kind"}));
  // Whichever is named first.
  Training turned = training;
  turned.work.alone = training.others.alone;
  turned.others = {.nodes = 4, .alone = training.work.alone, .links = training.links};
  const Prediction same = Predict(turned, 8);
  EXPECT_EQ(same.step, at.step);
  EXPECT_EQ(same.ranks, at.ranks);
  EXPECT_NEAR(same.efficiency, at.efficiency, 1e-12);
}

TEST(Predict, OfTwoEqualKindsIsThatOfOne) {
  Training training = OfBede();
  training.others = {.nodes = 3, .alone = training.work.alone, .links = training.links};
  const Prediction at = Predict(training, 4);
  const Prediction one_kind = Predict(OfBede(), 16);
  EXPECT_EQ(at.nodes, 4);
  EXPECT_EQ(at.step, one_kind.step);
  EXPECT_NEAR(at.efficiency, one_kind.efficiency, 1e-12);
  EXPECT_EQ(at.bound, one_kind.bound);
}

TEST(Predict, IsBoundByAFileSystemThatAllShare) {
  Training training = OfBede();
  training.input = {.file_system = 2e9, .image_bytes = 110e3};
  const double limit = 2e9 / 110e3;
  EXPECT_EQ(Predict(training, 16).bound, Bound::kCompute);
  const Prediction at = Predict(training, 32);
  EXPECT_EQ(at.bound, Bound::kInput);
  EXPECT_NEAR(at.images_per_second, limit, 1e-6);
  EXPECT_EQ(NamesOf(ChangesThatHelp(training, 32)),
            (std::vector<std::string>{"input that is never waited for"}));
}

TEST(Predict, IsBoundByTheProcessorsOfANode) {
  Training training = OfBede();
  training.input = {.node_images = 2000};
  EXPECT_NEAR(Predict(training, 32).images_per_second, 8 * 2000, 1e-6);
  EXPECT_NEAR(Predict(training, 4).images_per_second, 2000, 1e-6);
}

TEST(Predict, IsBoundByASlowNetwork) {
  Training training = OfBede();
  training.links.between = AdapterRate(5);
  const Prediction at = Predict(training, 32);
  EXPECT_EQ(at.bound, Bound::kBetween);
  EXPECT_EQ(Predict(training, 4).bound, Bound::kCompute);
  const std::vector<Change> changes = ChangesThatHelp(training, 32);
  const std::vector<std::string> names = NamesOf(changes);
  EXPECT_NE(std::ranges::find(names, "twice the adapters of each node"), names.end());
  EXPECT_NE(std::ranges::find(names, "sums in 16 bits"), names.end());
  EXPECT_TRUE(std::ranges::is_sorted(changes, std::ranges::greater(), &Change::images_per_second));
}

TEST(Predict, IsBoundBySlowLinksInTheNode) {
  Training training = OfBede();
  training.links.inside = 0.5e9;
  EXPECT_EQ(Predict(training, 4).bound, Bound::kInside);
}

TEST(Predict, IsBoundByRanksThatAreFarApart) {
  Training training = OfBede();
  training.work.spread = 0.1 * training.work.alone;
  EXPECT_EQ(Predict(training, 32).bound, Bound::kRanks);
}

TEST(Predict, NamesTheGpuWhereNothingElseHelps) {
  EXPECT_EQ(NamesOf(ChangesThatHelp(OfBede(), 4)),
            (std::vector<std::string>{"a GPU twice as fast"}));
}

TEST(Calibrate, OfOneGpuAloneTakesRanksForAlike) {
  const Training training = OfBede();
  const Calibration found = Calibrate(training.work, training.links, 256, {1000}, Overlap::kAuto);
  EXPECT_DOUBLE_EQ(found.work.alone, 0.256);
  EXPECT_EQ(found.work.spread, 0);
  EXPECT_EQ(found.work.wait_between, 0);
  EXPECT_TRUE(found.work.overlaps);
  EXPECT_EQ(found.reason, "");
}

TEST(Calibrate, FindsTheSpreadThatGivesTheSpeedOfTheNode) {
  Training training = OfBede();
  const Calibration found =
      Calibrate(training.work, training.links, 256, {1125, 4400}, Overlap::kAuto);
  EXPECT_FALSE(found.waits);
  EXPECT_EQ(found.reason, "");
  training.work = found.work;
  EXPECT_GT(found.work.spread, 0);
  EXPECT_NEAR(Predict(training, 4).images_per_second, 4400, 1e-6);
}

TEST(Calibrate, TakesANodeThatIsFasterThanItsGpusForAlike) {
  EXPECT_EQ(Calibrate(OfBede().work, OfBede().links, 256, {1125, 4600}, Overlap::kAuto).work.spread,
            0);
}

TEST(Calibrate, SaysThatSoftwareWaits) {
  Training training = OfBede();
  const Calibration found =
      Calibrate(training.work, training.links, 256, {1125, 3900}, Overlap::kAuto);
  EXPECT_TRUE(found.waits);
  EXPECT_FALSE(found.work.overlaps);
  EXPECT_EQ(found.reason,
            "one node takes 15 % longer for a step than one GPU, and its links explain 5 ms of "
            "35 ms: ranks wait for their hosts, and their sums start late and are not hidden");
  training.work = found.work;
  EXPECT_NEAR(Predict(training, 4).images_per_second, 3900, 1e-6);
  // Unless the user knows better.
  EXPECT_FALSE(Calibrate(training.work, training.links, 256, {1125, 3900}, Overlap::kYes).waits);
  EXPECT_FALSE(
      Calibrate(training.work, training.links, 256, {1125, 3900}, Overlap::kNo).work.overlaps);
}

TEST(Calibrate, TakesWhatTwoNodesWaitForToEveryNumberOfNodes) {
  Training training = OfBede();
  const Calibration found =
      Calibrate(training.work, training.links, 256, {1125, 4400, 6000}, Overlap::kAuto);
  training.work = found.work;
  EXPECT_NEAR(Predict(training, 8).images_per_second, 6000, 1e-6);
  EXPECT_NEAR(Predict(training, 4).images_per_second, 4400, 1e-6);
  EXPECT_NEAR(Predict(training, 16).images_per_second, 12000, 200);
  EXPECT_NE(found.reason.find("two nodes take 10"), std::string::npos) << found.reason;
}

}  // namespace
}  // namespace scaling
