// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/rank_loads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace trainer {
namespace {

using testing::IsEmpty;

RankSaid Said(double seconds, int percent) {
  RankSaid said = {.input_wait_seconds = seconds, .device = {}, .is_known = true};
  said.device.busy_percent = percent;
  said.device.compute_mhz = 1980;
  said.device.celsius = 61;
  return said;
}

TEST(RankLoads, AreUnknownAtFirst) {
  RankLoads loads;
  EXPECT_THAT(loads.Slowest(), IsEmpty());
  EXPECT_TRUE(std::isnan(loads.Median()));
  loads.Add(std::vector<double>{0, NAN}, {});
  EXPECT_THAT(loads.Slowest(), IsEmpty());
  EXPECT_TRUE(std::isnan(loads.Median()));
}

TEST(RankLoads, HaveHostsTimesAndWhatWasSaid) {
  RankLoads loads;
  loads.SetHosts({"n1", std::string(200, 'x')});
  const std::vector<RankSaid> said = {Said(0.25, 98), {}};
  loads.Add(std::vector<double>{2, 4}, said);
  const std::vector<RankLoad> all = loads.Slowest();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].rank, 0);
  EXPECT_EQ(all[0].host, "n1");
  EXPECT_EQ(all[0].own_seconds, 2);
  EXPECT_EQ(all[0].input_wait_seconds, 0.25);
  EXPECT_EQ(all[0].gpu_percent, 98);
  EXPECT_EQ(all[0].compute_mhz, 1980);
  EXPECT_EQ(all[0].celsius, 61);
  EXPECT_EQ(all[1].host.size(), RankLoads::kLetters);
  EXPECT_EQ(all[1].own_seconds, 4);
  EXPECT_TRUE(std::isnan(all[1].input_wait_seconds));
  EXPECT_FALSE(all[1].gpu_percent || all[1].compute_mhz || all[1].celsius);
  EXPECT_EQ(loads.Median(), 2) << "the lower of two";
}

TEST(RankLoads, AreMeansThatForgetWhatIsLongAgo) {
  RankLoads loads;
  loads.Add(std::vector<double>{1}, {});
  loads.Add(std::vector<double>{3}, {});
  EXPECT_EQ(loads.Median(), 2);
  loads.Add(std::vector<double>{0}, {});
  EXPECT_EQ(loads.Median(), 2) << "not known";
  for (int i = 0; i < 200; ++i) loads.Add(std::vector<double>{8}, {});
  EXPECT_NEAR(loads.Median(), 8, 0.001);
  loads.Add(std::vector<double>{28}, {});
  EXPECT_NEAR(loads.Median(), 9, 0.001) << "a twentieth of it counts";
}

TEST(RankLoads, OfManyRanksAreTheSlowest) {
  RankLoads loads;
  std::vector<double> seconds(100, 1);
  seconds[99] = 3;
  seconds[50] = 2;
  loads.Add(seconds, {});
  const std::vector<RankLoad> told = loads.Slowest();
  ASSERT_EQ(told.size(), RankLoads::kMost);
  EXPECT_EQ(told[61].rank, 61);
  EXPECT_EQ(told[62].rank, 62) << "50 is among the first";
  EXPECT_EQ(told[63].rank, 99);
  EXPECT_EQ(loads.Median(), 1);
}

}  // namespace
}  // namespace trainer
