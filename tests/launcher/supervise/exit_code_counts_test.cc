// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "launcher/supervise/failure_report.h"

namespace launcher {
namespace {

RankExit Exited(int rank, int exit_code) {
  RankExit end;
  end.rank = rank;
  end.exit_code = exit_code;
  return end;
}

RankExit Killed(int rank) {
  RankExit end = Exited(rank, 137);
  end.signal = 9;
  return end;
}

TEST(ExitCodeCounts, AFewEndsAreShownAndNotCounted) {
  ExitCodeCounts counts;
  EXPECT_EQ(counts.Text(), "");
  for (int rank = 0; rank < ExitCodeCounts::kShownLines; ++rank)
    EXPECT_TRUE(counts.Add(Killed(rank)));
  EXPECT_EQ(counts.Text(), "");
}

TEST(ExitCodeCounts, OfAllRanksAtOnceTheFirstAreShownAndAllAreCounted) {
  ExitCodeCounts counts;
  int shown = 0;
  for (int rank = 32767; rank >= 0; --rank) {
    if (counts.Add(rank == 5 ? Exited(rank, 3) : Killed(rank))) ++shown;
  }
  EXPECT_EQ(shown, 8);
  EXPECT_EQ(counts.Text(),
            "32768 ranks ended: 32767 with signal 9 (Killed), 1 with exit code 3; 8 lines about "
            "them are above, 32760 were left out");
}

TEST(ExitCodeCounts, ARankThatBothTheShimAndSrunTellOfCountsOnce) {
  ExitCodeCounts counts;
  for (int rank = 0; rank < 10; ++rank) counts.Add(Exited(rank, 1));
  counts.Add(Exited(0, 1), {{0, 9}});
  counts.Add(Killed(8), {{8, 8}, {20, 21}});
  EXPECT_EQ(counts.Text(),
            "12 ranks ended: 10 with exit code 1, 2 with signal 9 (Killed); 8 lines about them are "
            "above, 4 were left out");
}

TEST(ExitCodeCounts, OfManyWaysToEndTheMostFrequentAreTold) {
  ExitCodeCounts counts;
  int rank = 0;
  for (int code = 1; code <= 9; ++code) {
    for (int i = 0; i < code; ++i) counts.Add(Exited(rank++, code));
  }
  EXPECT_EQ(counts.Text(),
            "45 ranks ended: 9 with exit code 9, 8 with exit code 8, 7 with exit code 7, 6 with "
            "exit code 6, 5 with exit code 5, 4 with exit code 4, 6 otherwise; 8 lines about them "
            "are above, 37 were left out");
}

}  // namespace
}  // namespace launcher
