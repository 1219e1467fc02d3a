// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/speeds/variability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace bench {
namespace {

using testing::HasSubstr;
using testing::Not;

// numpy.percentile of the same values.
TEST(Box, HasTheQuartilesOfPandas) {
  const std::vector<double> values = {7, 1, 3, 2};
  const Box box = BoxOf(values);
  EXPECT_DOUBLE_EQ(box.q1, 1.75);
  EXPECT_DOUBLE_EQ(box.median, 2.5);
  EXPECT_DOUBLE_EQ(box.q3, 4);
  EXPECT_DOUBLE_EQ(box.lower(), 1.75 - 1.5 * 2.25);
  EXPECT_DOUBLE_EQ(box.upper(), 4 + 1.5 * 2.25);
  EXPECT_DOUBLE_EQ(box.variation(), 4 * 2.25 / 2.5);
  const std::vector<double> one = {3};
  EXPECT_DOUBLE_EQ(BoxOf(one).q1, 3);
  EXPECT_DOUBLE_EQ(BoxOf(one).variation(), 0);
}

// Eight GPUs of two nodes; the last one is slow, and the first has three runs.
class VariabilityTest : public testing::Test {
 protected:
  static DeviceRuns Runs() {
    DeviceRuns runs;
    const double seconds[] = {0.100, 0.101, 0.102, 0.103, 0.104, 0.105, 0.106, 0.150};
    for (int i = 0; i < 8; ++i) {
      DeviceRun run;
      // Mean as above.
      run.durations = {seconds[i] - 0.01, seconds[i] + 0.01};
      runs[{i < 4 ? "c1" : "c2", i % 4}]["1000"] = run;
    }
    RunsOfDevice& first = runs[{"c1", 0}];
    first["1001"].durations = {0.098};
    first["1002"].durations = {0.101};
    first["1000"].watts = 250;
    first["1001"].watts = 254;
    return runs;
  }
  const Variability result_ = AnalyzeVariability(Runs());
  const DeviceVariability& Of(const std::string& host, int device) const {
    for (const DeviceVariability& found : result_.devices) {
      if (found.place == DevicePlace{host, device}) return found;
    }
    throw std::out_of_range(host);
  }
};

TEST_F(VariabilityTest, AGpuIsAsFastAsTheMedianOfItsRuns) {
  const DeviceVariability& first = Of("c1", 0);
  EXPECT_EQ(first.runs, 3);
  EXPECT_DOUBLE_EQ(first.seconds, 0.1);
  EXPECT_DOUBLE_EQ(first.repeat_spread, (0.101 - 0.098) / 0.1);
  EXPECT_DOUBLE_EQ(first.min_seconds, 0.09);
  EXPECT_DOUBLE_EQ(first.max_seconds, 0.11);
  EXPECT_EQ(first.watts, 252);
  EXPECT_FALSE(first.mhz);
  EXPECT_DOUBLE_EQ(result_.max_repeat_spread, first.repeat_spread);
}

TEST_F(VariabilityTest, OutliersAreBeyondTheWhiskers) {
  EXPECT_DOUBLE_EQ(result_.box.median, 0.1035);
  EXPECT_EQ(Of("c2", 3).outlier, 1);
  EXPECT_EQ(Of("c1", 0).outlier, 0);
  EXPECT_EQ(result_.devices.front().place, (DevicePlace{"c2", 3})) << "the slowest first";
  EXPECT_DOUBLE_EQ(Of("c2", 3).normalized, 0.15 / 0.1035);
  EXPECT_DOUBLE_EQ(result_.range, (0.15 - 0.1) / 0.1035);
  DeviceRuns runs = Runs();
  runs[{"c1", 2}]["1000"].durations = {0.01};
  EXPECT_EQ(AnalyzeVariability(runs).devices.back().outlier, -1);
}

TEST_F(VariabilityTest, TheTextSaysAllOfIt) {
  const std::string text = FormatVariability(result_);
  EXPECT_THAT(text,
              HasSubstr("| c2                   | 3      | 1    | 150.000   | 1.4493     | "
                        "140.000   | 160.000   | -         | -     | -   | -    | slow    |"));
  EXPECT_THAT(text, HasSubstr("8 GPUs of 2 nodes: median 103.500 ms, quartiles 101.750 and 105.250 "
                              "ms"));
  EXPECT_THAT(text, HasSubstr("variation 13.53 % of the median from whisker to whisker, 48.31 % "
                              "from the fastest to the slowest"));
  EXPECT_THAT(text, HasSubstr("outliers: 1 slow, 0 fast"));
  EXPECT_THAT(text, HasSubstr("repeats on one GPU: 3.00 % apart in the median, 3.00 % at most"));
  DeviceRuns once = Runs();
  once[{"c1", 0}].erase("1001");
  once[{"c1", 0}].erase("1002");
  EXPECT_THAT(FormatVariability(AnalyzeVariability(once)), Not(HasSubstr("repeats on one GPU")));
}

TEST_F(VariabilityTest, JsonHasTheSame) {
  const auto document = nlohmann::json::parse(VariabilityJson(result_));
  EXPECT_EQ(document.at("median_seconds"), 0.1035);
  EXPECT_EQ(document.at("slow_outliers"), 1);
  ASSERT_EQ(document.at("devices").size(), 8);
  EXPECT_EQ(document["devices"][0].at("host"), "c2");
  EXPECT_EQ(document["devices"][0].at("outlier"), "slow");
  EXPECT_FALSE(document["devices"][0].contains("watts"));
  EXPECT_EQ(document["devices"][7].at("watts"), 252);
}

}  // namespace
}  // namespace bench
