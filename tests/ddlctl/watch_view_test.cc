// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/watch_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/trainer/control/sample_status.h"

namespace ddlctl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::size_t LettersOf(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80;
  }));
}

// Speeds rise and losses fall over so many steps.
Seen SeenSteps(int steps) {
  Seen seen;
  trainer::RunStatus status = trainer::SampleStatus();
  for (int i = 0; i < steps; ++i) {
    status.step = i;
    status.images_per_second = i;
    status.loss = -i;
    seen.Add(status);
  }
  return seen;
}

TEST(Sparkline, RisesFromTheLeastToTheMost) {
  EXPECT_EQ(Sparkline({0, 1, 2, 3, 4, 5, 6, 7}, 8, true), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(Sparkline({0, 1, 2, 3, 4, 5, 6, 7}, 8, false), "_.-~=+*#");
  EXPECT_EQ(Sparkline({10, -10}, 8, false), "#_");
}

TEST(Sparkline, ShowsTheLastValuesAsFarAsThereIsRoom) {
  EXPECT_EQ(Sparkline({100, 0, 7}, 2, false), "_#");
  EXPECT_EQ(Sparkline({1, 2}, 0, false), "");
  EXPECT_EQ(Sparkline({}, 5, false), "");
}

TEST(Sparkline, OfOneValueOrNoneIsInTheMiddleOrBlank) {
  EXPECT_EQ(Sparkline({3, 3}, 5, false), "==");
  EXPECT_EQ(Sparkline({NAN, 0, INFINITY, 7}, 5, false), " _ #");
  EXPECT_EQ(Sparkline({NAN}, 5, false), " ");
}

TEST(SeenSteps, CountsEachStepOnceAndForgetsTheOldest) {
  Seen seen = SeenSteps(3);
  EXPECT_THAT(seen.speeds(), ElementsAre(0, 1, 2));
  EXPECT_THAT(seen.losses(), ElementsAre(0, -1, -2));
  trainer::RunStatus status = trainer::SampleStatus();
  status.step = 2;
  seen.Add(status);
  trainer::RunStatus unknown;
  unknown.step = 9;
  seen.Add(unknown);
  EXPECT_EQ(seen.speeds().size(), 3U);
  seen = SeenSteps(static_cast<int>(Seen::kMost) + 5);
  EXPECT_EQ(seen.speeds().size(), Seen::kMost);
  EXPECT_EQ(seen.losses().size(), Seen::kMost);
  EXPECT_EQ(seen.speeds().front(), 5);
}

TEST(Draw, FitsAScreenOfEightyColumns) {
  EXPECT_THAT(
      Draw(trainer::SampleStatus(), SeenSteps(8), {.is_utf8 = false}),
      ElementsAre("training  step 1200/25000  epoch 3/50                           2 ranks, gpu025",
                  "[==>                                                    ]   4.8 %, 0:42:07 left",
                  "images/s                  365.1  _.-~=+*#",  //
                  "loss                     2.4141  #*+=~-._",  //
                  "step                   700.0 ms",            //
                  "  input wait            10.0 ms  #",         //
                  "  forward              200.0 ms  #############",
                  "  backward             400.0 ms  ##########################",
                  "  exposed all-reduce    20.0 ms  #",  //
                  "  update                70.0 ms  #####",
                  "own time, median       550.0 ms  of 2 ranks; >: slowest",
                  "  rank 0, gpu025       550.0 ms    +0 %  data  2 %  GPU 98 %  1980 MHz  61 C",
                  "> rank 1, gpu026       688.0 ms   +25 %  data 40 %",
                  "checkpoint of step 1000; asked for: pause, checkpoint"));
}

TEST(Draw, FillsTheRoomThereIsAndNoMore) {
  trainer::RunStatus status = trainer::SampleStatus();
  status.times.phases[2] = status.times.step;
  for (const bool is_utf8 : {true, false}) {
    for (const int columns : {1, 2, 20, 40, 79, 80, 81, 132, 300}) {
      std::size_t longest = 0;
      for (const std::string& line :
           Draw(status, SeenSteps(512), {.columns = columns, .is_utf8 = is_utf8})) {
        longest = std::max(longest, LettersOf(line));
      }
      EXPECT_LT(longest, std::max<std::size_t>(static_cast<std::size_t>(columns), 2)) << columns;
      if (columns >= 80) {
        EXPECT_EQ(longest, static_cast<std::size_t>(columns) - 1);
      }
    }
  }
}

TEST(Draw, HasFewerLinesThanTheScreen) {
  const auto lines_of = [](int rows) {
    return Draw(trainer::SampleStatus(), SeenSteps(3), {.rows = rows});
  };
  const std::vector<std::string> all = lines_of(0);
  ASSERT_GT(all.size(), 6U);
  const auto wanted = static_cast<int>(all.size());
  EXPECT_EQ(lines_of(wanted + 1), all);
  EXPECT_EQ(lines_of(wanted).size(), all.size() - 1);
  for (const int rows : {2, 3, 6}) {
    const auto count = rows - 1;
    EXPECT_EQ(lines_of(rows), std::vector<std::string>(all.begin(), all.begin() + count)) << rows;
  }
  EXPECT_EQ(lines_of(1).size(), 1U);
}

TEST(Draw, LeavesOutWhatIsNotKnownYet) {
  const std::vector<std::string> lines = Draw({}, {}, {});
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_THAT(lines[0], HasSubstr("starting  step 0/0"));
  EXPECT_THAT(lines[1], HasSubstr("0.0 %, ? left"));
  EXPECT_THAT(lines[2], HasSubstr("?"));
  EXPECT_EQ(lines[4], "no checkpoint yet");
}

TEST(Draw, ShowsNothingThatMovesACursor) {
  trainer::RunStatus status = trainer::SampleStatus();
  status.identity.host = "\x1b[2Jgpu";
  EXPECT_THAT(Draw(status, {}, {})[0], HasSubstr("2 ranks, ?[2Jgpu"));
}

}  // namespace
}  // namespace ddlctl
