// SPDX-License-Identifier: Apache-2.0

#include <numeric>

#include "bench/ddlbench/predict.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

std::string Row(const std::string& layer, const std::string& op, const std::string& seconds) {
  return R"({"layer": ")" + layer + R"(", "op": ")" + op + R"(", "seconds": )" + seconds + "},";
}

// One second in each bottleneck, but for what `more` adds.
std::string Profile(const std::string& more) {
  std::string rows;
  const int bottlenecks[] = {3, 4, 6, 3};
  for (int group = 1; group <= 4; ++group) {
    for (int i = 0; i < bottlenecks[group - 1]; ++i) {
      rows += Row("layer" + std::to_string(group) + "." + std::to_string(i) + ".conv2",
                  "convolution backward data", "1");
    }
  }
  rows += more;
  rows.pop_back();
  return "{\"ops\": [" + rows + "]}";
}

std::string WhyRejected(const std::string& text) {
  return tests::Rejection<trainer::Error>(
      65, [&] { ParseProfiledBackward(text, "p.json"); }, "taken");
}

TEST(ProfiledBackward, AddsUpTheOpsOfABlock) {
  const ProfiledBackward backward = ParseProfiledBackward(
      Profile(Row("conv1", "convolution backward filter", "0.25") +
              Row("maxpool", "max pool backward", "0.5") +
              Row("bn1", "batch norm backward statistics", "0.125") +
              Row("bn1", "batch norm sums", "5") +
              Row("layer1.0.downsample.0", "convolution backward, with batch norms", "2") +
              Row("layer3.5.bn3", "batch norm pair backward", "0.5") +
              Row("layer4.2.conv1", "convolution forward", "3") +
              Row("fc", "linear backward", "0.75") +
              Row("loss", "softmax cross-entropy with gradient", "1") +
              Row("update", "SGD with momentum", "7")),
      "p.json");
  EXPECT_DOUBLE_EQ(backward.times[0], 0.875);
  EXPECT_DOUBLE_EQ(backward.times[1], 3);
  EXPECT_DOUBLE_EQ(backward.times[2], 1);
  EXPECT_DOUBLE_EQ(backward.times[13], 1.5);  // the last of layer3
  EXPECT_DOUBLE_EQ(backward.times[14], 1);
  EXPECT_DOUBLE_EQ(backward.times[16], 1);
  EXPECT_DOUBLE_EQ(backward.times[17], 0.75);
  const double sum = std::accumulate(backward.times.begin(), backward.times.end(), 0.0);
  EXPECT_DOUBLE_EQ(sum, 20.125);
  EXPECT_DOUBLE_EQ(backward.share, sum / (sum + 5 + 3 + 1 + 7));
}

TEST(ProfiledBackward, OfAnotherNetworkOrNoneIsRejected) {
  EXPECT_THAT(WhyRejected("what?"), HasSubstr("p.json: no profile of ddltraind; profile.json is"));
  EXPECT_THAT(WhyRejected("{\"ops\": [{\"layer\": 3}]}"), HasSubstr("no profile of ddltraind"));
  EXPECT_THAT(WhyRejected("{\"ops\": []}"), HasSubstr("not all of the 16 bottlenecks"));
  EXPECT_THAT(WhyRejected(Profile(Row("layer1.3.conv1", "convolution forward", "1"))),
              HasSubstr("'layer1.3.conv1' is no layer of ResNet-50"));
  EXPECT_THAT(WhyRejected(Profile(Row("layer5.0.conv1", "convolution forward", "1"))),
              HasSubstr("'layer5.0.conv1' is no layer"));
  EXPECT_THAT(WhyRejected(Profile(Row("layer4", "convolution forward", "1"))),
              HasSubstr("'layer4'"));
  EXPECT_THAT(WhyRejected(Profile(Row("conv1", "convolution backward data", "-1"))),
              HasSubstr("an op took -1 seconds"));
}

TEST(ProfiledBackward, MovesWhenGradientsAreThere) {
  scaling::BackwardTimes times = {};
  times.fill(1);
  const auto buckets = scaling::ResNet50Buckets(scaling::AllReduceModel::kFp32,
                                                scaling::BucketRule::kDdltraind, times);
  EXPECT_DOUBLE_EQ(buckets.front().ready, 1.0 / 18);
  EXPECT_DOUBLE_EQ(buckets[1].ready, 3.0 / 18);
  EXPECT_DOUBLE_EQ(buckets.back().ready, 1);
}

}  // namespace
}  // namespace bench
