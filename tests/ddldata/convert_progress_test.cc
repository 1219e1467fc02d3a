// SPDX-License-Identifier: Apache-2.0

#include "ddldata/convert_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <sstream>

namespace trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class ConvertProgressTest : public ::testing::Test {
 protected:
  WallClock Clock() {
    return [this] { return now_; };
  }
  void Wait(int seconds) { now_ += std::chrono::seconds(seconds); }

  TimePoint now_ = SystemClock()();
  std::ostringstream out_;
};

TEST_F(ConvertProgressTest, IsALineNowAndThenInAFile) {
  ConvertProgress progress({.interval_seconds = 10}, out_, Clock());
  Wait(11);
  progress.Listed(2048);
  EXPECT_THAT(out_.str(), MatchesRegex("[^ ]+ 2048 images found\n"));
  out_.str("");
  Wait(11);
  progress.Listed(1024, "annotations read");
  EXPECT_THAT(out_.str(), MatchesRegex("[^ ]+ 1024 annotations read\n"));
  out_.str("");
  progress.Begin(4, 4'000'000);
  Wait(5);
  progress.Add(1'000'000);
  EXPECT_EQ(out_.str(), "");
  Wait(5);
  progress.Add(1'000'000);
  EXPECT_THAT(out_.str(),
              MatchesRegex("[^ ]+ 2/4 images 50.0 % 0.2 images/s 0.2 MB/s eta 0:00:10\n"));
  out_.str("");
  progress.Note("left out: x");
  EXPECT_EQ(out_.str(), "ddldata: note: left out: x\n");
  progress.Add(1'000'000);
  // The last one is always shown.
  progress.Add(1'000'000);
  EXPECT_THAT(out_.str(), HasSubstr(" 4/4 images 100.0 % 0.4 images/s 0.4 MB/s eta 0:00:00\n"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("3/4")));
}

TEST_F(ConvertProgressTest, GoesOnWhereTheClockIsSetBack) {
  ConvertProgress progress({.interval_seconds = 10}, out_, Clock());
  Wait(11);
  progress.Listed(2048);
  out_.str("");
  Wait(-3600);
  progress.Listed(2049);
  EXPECT_THAT(out_.str(), HasSubstr("2049"));
  out_.str("");
  Wait(9);
  progress.Listed(2050);
  EXPECT_EQ(out_.str(), "");
}

TEST_F(ConvertProgressTest, IsOneLineRedrawnOnATerminal) {
  ConvertProgress progress({.terminal = true, .columns = [] { return 40; }}, out_, Clock());
  progress.Begin(4, 4'000);
  Wait(1);
  progress.Add(1'000);
  EXPECT_EQ(out_.str(), "\r[===>        ] 1/4 images 25.0 % 1.0 im\x1b[K");
  out_.str("");
  progress.Note("x");
  EXPECT_EQ(out_.str(), "\nddldata: note: x\n");
}

}  // namespace
}  // namespace trainer
