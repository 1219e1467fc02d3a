// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/job_result.h"

#include "launcher/supervise/deadline.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

TEST(Deadlines, TheFirstOfThemCounts) {
  using std::chrono::microseconds;
  const std::chrono::steady_clock::time_point now{std::chrono::seconds(10)};
  EXPECT_EQ(MillisecondsLeft({}, now), -1);
  EXPECT_EQ(MillisecondsLeft({std::nullopt, std::nullopt}, now), -1);
  EXPECT_EQ(
      MillisecondsLeft({now + microseconds(5000), std::nullopt, now + microseconds(2001)}, now), 3);
  EXPECT_EQ(MillisecondsLeft({now + microseconds(5000), now - microseconds(5000)}, now), 0);
}

TEST(SilentNodes, AreThoseOfWhichNoEndWasTold) {
  const std::vector<std::string> hosts = {"n4", "n1", "n2.site", "n3", "n4"};
  EXPECT_THAT(SilentNodes(hosts, {"n1.site", "n[2-3]"}), ElementsAre("n4"));
  EXPECT_THAT(SilentNodes(hosts, {"n3"}), ElementsAre("n4", "n1", "n2.site"));
  EXPECT_THAT(SilentNodes(hosts, {"n[1-4]"}), IsEmpty());
}

TEST(SilentNodes, AreNoneWhereNothingWasTold) {
  EXPECT_THAT(SilentNodes({"n1", "n2"}, {}), IsEmpty());
  EXPECT_THAT(SilentNodes({"n1", "n2"}, {"n[1-"}), IsEmpty());
}

TEST(SomeOf, NamesAFew) {
  std::vector<std::string> names;
  for (int node = 1; node < 9; ++node) names.push_back("n" + std::to_string(node));
  EXPECT_EQ(SomeOf(names), "n1, n2, n3, n4, n5, n6, n7, n8");
  names.emplace_back("n9");
  EXPECT_EQ(SomeOf(names), "n1, n2, n3, n4, n5, n6, n7, n8, ...");
}

}  // namespace
}  // namespace launcher
