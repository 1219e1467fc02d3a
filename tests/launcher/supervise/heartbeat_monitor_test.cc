// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/heartbeat.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HeartbeatMonitor, AFileIsLateThatHasNotChangedForTheLimit) {
  HeartbeatMonitor heartbeats(1, 10);
  heartbeats.Look(0, 5);
  heartbeats.Look(0, 6);
  heartbeats.Pass(9.5);
  heartbeats.Look(0, 6);
  EXPECT_THAT(heartbeats.Late(), IsEmpty());
  heartbeats.Pass(0.5);
  EXPECT_THAT(heartbeats.Late(), ElementsAre(0));
  EXPECT_EQ(heartbeats.SilenceOf(0), 10);
  heartbeats.Look(0, 4);  // the clock of a file server may go back
  EXPECT_THAT(heartbeats.Late(), IsEmpty());
}

TEST(HeartbeatMonitor, TheFirstChangeHasTenTimesAsLong) {
  HeartbeatMonitor heartbeats(3, 10);
  for (const auto& [index, time] : {std::pair(0, 5), std::pair(1, 5)}) heartbeats.Look(index, time);
  heartbeats.Look(2, std::nullopt);
  heartbeats.Pass(50);
  heartbeats.Look(0, 5);  // an earlier run has left it
  heartbeats.Look(1, 7);
  heartbeats.Look(2, 7);  // made by this run
  heartbeats.Pass(10);
  EXPECT_THAT(heartbeats.Late(), ElementsAre(1, 2));
  heartbeats.Look(1, 8);
  heartbeats.Look(2, 8);
  heartbeats.Pass(40);
  EXPECT_THAT(heartbeats.Late(), ElementsAre(0, 1, 2));  // the longest first
}

TEST(HeartbeatMonitor, AFileThatIsGoneDoesNotBeat) {
  HeartbeatMonitor heartbeats(1, 10);
  heartbeats.Look(0, 5);
  heartbeats.Look(0, 6);
  heartbeats.Pass(6);
  heartbeats.Look(0, std::nullopt);
  heartbeats.Pass(6);
  heartbeats.Look(0, std::nullopt);
  EXPECT_THAT(heartbeats.Late(), ElementsAre(0));
  heartbeats.Look(0, 6);  // it could not be seen for a while
  EXPECT_THAT(heartbeats.Late(), ElementsAre(0));
}

TEST(HeartbeatMonitor, AFileThatIsForgottenIsNeverLate) {
  HeartbeatMonitor heartbeats(2, 10);
  heartbeats.Forget(0);
  heartbeats.Pass(1000);
  EXPECT_THAT(heartbeats.Late(), ElementsAre(1));
}

}  // namespace
}  // namespace launcher
