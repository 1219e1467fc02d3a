// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/meters/op_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>

namespace trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

// A machine of 100 GFLOP/s and 10 GB/s, and two steps of three ops.
class OpProfileTest : public testing::Test {
 protected:
  static ProfileHead Head() {
    ProfileHead head;
    head.backend = "a back end";
    head.first_step = 4;
    head.steps = 2;
    head.step_seconds = 0.05;
    head.peaks = {100e9, 10e9};
    return head;
  }
  // By computing 10 ms, by moving 5 ms: a limit of 10 ms, in 20 ms.
  // By computing 1 ms, by moving 4 ms, twice in a step: a limit of 8 ms, in 9 ms.
  // A tenth of its limit.
  static std::vector<ProfiledOp> Ops() {
    return {{"conv1", "convolution forward", "1x2 > 1x3, 1x1", {1e9, 50e6}, 2, 0.04},
            {"bn1", "batch norm forward", "1x3", {0.1e9, 40e6}, 4, 0.018},
            {"conv1", "convolution backward filter", "1x2 > 1x3, 1x1", {1e7, 0}, 2, 0.002}};
  }
  const OpProfile profile_ = AnalyzeOps(Head(), Ops());
};

TEST_F(OpProfileTest, AnOpIsHeldToTheLimitThatTakesLonger) {
  ASSERT_EQ(profile_.ops.size(), 3);
  const ProfileRow& convolution = profile_.ops[0];
  EXPECT_EQ(convolution.op, "convolution forward");
  EXPECT_DOUBLE_EQ(convolution.calls, 1);
  EXPECT_DOUBLE_EQ(convolution.seconds, 0.02);
  EXPECT_DOUBLE_EQ(convolution.limit_seconds, 0.01);
  EXPECT_DOUBLE_EQ(convolution.lost_seconds(), 0.01);
  EXPECT_DOUBLE_EQ(convolution.share(), 0.5);
  EXPECT_STREQ(convolution.bound(), "compute");
  const ProfileRow& norm = profile_.ops[1];
  EXPECT_DOUBLE_EQ(norm.calls, 2);
  EXPECT_DOUBLE_EQ(norm.seconds, 0.009);
  EXPECT_DOUBLE_EQ(norm.limit_seconds, 0.008);
  EXPECT_DOUBLE_EQ(norm.work.bytes, 80e6);
  EXPECT_STREQ(norm.bound(), "memory");
}

TEST_F(OpProfileTest, TheWorstIsTheOneWithTheMostTimeBeyondItsLimit) {
  std::vector<ProfiledOp> ops = Ops();
  EXPECT_EQ(profile_.ops[2].op, "convolution backward filter");  // 0.9 ms, at a share of 10 %
  ops[2].seconds = 1;
  EXPECT_EQ(AnalyzeOps(Head(), ops).ops[0].op, "convolution backward filter");
}

TEST_F(OpProfileTest, SumsByLayerAndByKind) {
  ASSERT_EQ(profile_.layers.size(), 2);
  EXPECT_EQ(profile_.layers[0].layer, "conv1");
  EXPECT_EQ(profile_.layers[0].op, "");
  EXPECT_DOUBLE_EQ(profile_.layers[0].seconds, 0.021);
  EXPECT_DOUBLE_EQ(profile_.layers[0].limit_seconds, 0.0101);
  EXPECT_DOUBLE_EQ(profile_.layers[0].work.flop, 1.01e9);
  EXPECT_EQ(profile_.layers[1].layer, "bn1");
  ASSERT_EQ(profile_.kinds.size(), 3);
  EXPECT_EQ(profile_.kinds[0].op, "convolution forward");
  EXPECT_EQ(profile_.kinds[0].layer, "");
  EXPECT_DOUBLE_EQ(profile_.all.seconds, 0.03);
  EXPECT_DOUBLE_EQ(profile_.all.limit_seconds, 0.0181);
}

TEST_F(OpProfileTest, LinesSayWhatWasMeasuredAndAgainstWhat) {
  const std::vector<std::string> lines = ProfileLines(profile_, 2);
  EXPECT_EQ(lines[0], "Profile of steps 4 to 5 on rank 0, means of a step; a back end");
  EXPECT_EQ(lines[1], "limits   100.0 GFLOP/s and 10.00 GB/s, given by --roofline");
  EXPECT_EQ(lines[2],
            "step     50.000 ms: 30.000 ms in ops, which at their limits take 18.100 ms (60 %); "
            "20.000 ms outside of ops");
  EXPECT_THAT(lines, Contains("Ops, likewise (the first 2 of 3)"));
  EXPECT_THAT(lines, Contains("By layer, likewise"));
  EXPECT_THAT(lines, Contains("    10.000    20.000       40.0        1     1.000     50.00      "
                              "50.0      2.5  compute   50 %  conv1  convolution forward  "
                              "1x2 > 1x3, 1x1"));
  ProfileHead head = Head();
  head.are_peaks_measured = true;
  EXPECT_THAT(ProfileLines(AnalyzeOps(head, Ops()), 2)[1],
              HasSubstr("measured at the start of this run"));
}

TEST_F(OpProfileTest, TitlesStandAboveTheirNumbers) {
  std::string titles;
  std::string numbers;
  const std::vector<std::string> lines = ProfileLines(profile_, 2);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].ends_with("share")) continue;
    titles = lines[i];
    numbers = lines[i + 1];
  }
  for (const char* title : {"lost ms", "% of step", "GFLOP/s", "GB/s"}) {
    const std::size_t end = titles.find(title) + std::string(title).size();
    EXPECT_TRUE(std::isdigit(numbers.at(end - 1))) << title << " of " << numbers;
    EXPECT_EQ(numbers.at(end), ' ') << title << " of " << numbers;
  }
}

TEST_F(OpProfileTest, CsvHasALineForEachOp) {
  std::istringstream lines(ProfileCsv(profile_));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "layer,op,shape,calls,seconds,flop,bytes,limit,limit_seconds,lost_seconds,share");
  std::getline(lines, line);
  EXPECT_EQ(line,
            "conv1,convolution forward,\"1x2 > 1x3, 1x1\",1.0,0.02,1000000000.0,50000000.0,compute,"
            "0.01,0.01,0.5");
  std::getline(lines, line);
  EXPECT_THAT(line, StartsWith("bn1,batch norm forward,1x3,2.0,0.009,"));
}

TEST_F(OpProfileTest, JsonHasAllOfIt) {
  const auto document = nlohmann::json::parse(ProfileJson(profile_));
  EXPECT_EQ(document.at("backend"), "a back end");
  EXPECT_EQ(document.at("first_step"), 4);
  EXPECT_EQ(document.at("steps"), 2);
  EXPECT_EQ(document.at("step_seconds"), 0.05);
  EXPECT_EQ(document.at("op_seconds"), 0.03);
  EXPECT_EQ(document.at("peak_flops"), 100e9);
  EXPECT_EQ(document.at("peak_bytes_per_second"), 10e9);
  EXPECT_EQ(document.at("peaks"), "given");
  ASSERT_EQ(document.at("ops").size(), 3);
  EXPECT_EQ(document["ops"][0].at("layer"), "conv1");
  EXPECT_EQ(document["ops"][0].at("limit"), "compute");
  EXPECT_EQ(document["ops"][0].at("lost_seconds"), 0.01);
  EXPECT_EQ(document.at("layers").size(), 2);
  EXPECT_FALSE(document["layers"][0].contains("op"));
  EXPECT_EQ(document.at("kinds").size(), 3);
}

TEST(OpProfile, OfNoOpsIsEmpty) {
  ProfileHead head;
  head.peaks = {1, 1};
  const OpProfile profile = AnalyzeOps(head, {});
  EXPECT_EQ(profile.all.share(), 0);
  EXPECT_TRUE(nlohmann::json::parse(ProfileJson(profile)).at("ops").empty());
}

}  // namespace
}  // namespace trainer
