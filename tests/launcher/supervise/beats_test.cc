// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/beats.h"

#include "tests/support/test.h"

namespace launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Beats, AFileIsLateThatHasNotChangedForTheLimit) {
  Beats beats(1, 10);
  beats.Look(0, 5);
  beats.Look(0, 6);
  beats.Pass(9.5);
  beats.Look(0, 6);
  EXPECT_THAT(beats.Late(), IsEmpty());
  beats.Pass(0.5);
  EXPECT_THAT(beats.Late(), ElementsAre(0));
  EXPECT_EQ(beats.SilenceOf(0), 10);
  beats.Look(0, 4);  // the clock of a file server may go back
  EXPECT_THAT(beats.Late(), IsEmpty());
}

TEST(Beats, TheFirstChangeHasTenTimesAsLong) {
  Beats beats(3, 10);
  for (const auto& [index, time] : {std::pair(0, 5), std::pair(1, 5)}) beats.Look(index, time);
  beats.Look(2, std::nullopt);
  beats.Pass(50);
  beats.Look(0, 5);  // an earlier run has left it
  beats.Look(1, 7);
  beats.Look(2, 7);  // made by this run
  beats.Pass(10);
  EXPECT_THAT(beats.Late(), ElementsAre(1, 2));
  beats.Look(1, 8);
  beats.Look(2, 8);
  beats.Pass(40);
  EXPECT_THAT(beats.Late(), ElementsAre(0, 1, 2));  // the longest first
}

TEST(Beats, AFileThatIsGoneDoesNotBeat) {
  Beats beats(1, 10);
  beats.Look(0, 5);
  beats.Look(0, 6);
  beats.Pass(6);
  beats.Look(0, std::nullopt);
  beats.Pass(6);
  beats.Look(0, std::nullopt);
  EXPECT_THAT(beats.Late(), ElementsAre(0));
  beats.Look(0, 6);  // it could not be seen for a while
  EXPECT_THAT(beats.Late(), ElementsAre(0));
}

TEST(Beats, AFileThatIsForgottenIsNeverLate) {
  Beats beats(2, 10);
  beats.Forget(0);
  beats.Pass(1000);
  EXPECT_THAT(beats.Late(), ElementsAre(1));
}

}  // namespace
}  // namespace launcher
