// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/text/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include <limits>
#include <sstream>

namespace trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ProgressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  Progress Make(const ProgressOptions& options) {
    return Progress(options, line_, [this] { return now_; });
  }
  static ProgressState At(std::int64_t step) {
    return {.epoch = 2,
            .epochs = 50,
            .step = step,
            .total_steps = 1000,
            .images_per_second = 365.14,
            .loss = 2.41409,
            .learning_rate = 0.1024};
  }
  std::string Take() {
    std::string text = out_.str();
    out_.str("");
    return text;
  }
  TimePoint now_{std::chrono::seconds(1605627653)};
  std::ostringstream out_;
  RedrawnLine line_{out_};
};

TEST_F(ProgressTest, PrintsOneLinePerIntervalToAFile) {
  Progress progress = Make({});
  progress.Update(At(100));
  EXPECT_EQ(Take(),
            "2020-11-17T15:40:53+00:00 epoch 3/50 step 100/1000 365.1 images/s loss 2.4141 "
            "lr 0.1024 eta ?\n");
  now_ += std::chrono::seconds(9);
  progress.Update(At(109));
  EXPECT_EQ(Take(), "");
  now_ += std::chrono::seconds(1);
  progress.Update(At(110));  // ten steps took ten seconds
  EXPECT_EQ(Take(),
            "2020-11-17T15:41:03+00:00 epoch 3/50 step 110/1000 365.1 images/s loss 2.4141 "
            "lr 0.1024 eta 0:14:50\n");
}

TEST_F(ProgressTest, GoesOnWhereTheClockIsSetBack) {
  Progress progress = Make({});
  progress.Update(At(100));
  Take();
  now_ -= std::chrono::hours(1);
  progress.Update(At(101));
  EXPECT_THAT(Take(), HasSubstr("step 101/1000"));
  progress.Update(At(102));
  EXPECT_EQ(Take(), "");
}

TEST_F(ProgressTest, AlwaysPrintsTheLastStep) {
  Progress progress = Make({});
  progress.Update(At(999));
  Take();
  ProgressState last = At(1000);
  last.epoch = 50;
  progress.Update(last);
  EXPECT_THAT(Take(), HasSubstr("epoch 50/50 step 1000/1000"));
}

TEST_F(ProgressTest, ShowsNoEpochWhenTheRunIsCountedInSteps) {
  Progress progress = Make({});
  ProgressState state = At(1);
  state.epochs = 0;
  progress.Update(state);
  EXPECT_THAT(Take(), HasSubstr("+00:00 step 1/1000 "));
}

TEST_F(ProgressTest, NeverWritesACarriageReturnToAFile) {
  Progress progress = Make({.interval_seconds = 0});
  for (int step = 1; step <= 1000; ++step) progress.Update(At(step));
  line_.End();
  EXPECT_THAT(out_.str(), Not(HasSubstr("\r")));
  EXPECT_THAT(out_.str(), Not(HasSubstr("\x1b")));
}

TEST_F(ProgressTest, RedrawsOnATerminal) {
  int columns = 40;
  Progress progress = Make({.terminal = true, .columns = [&] { return columns; }});
  progress.Update(At(500));
  EXPECT_EQ(Take(), "\r[======>     ] epoch 3/50 step 500/1000\x1b[K");
  progress.Update(At(501));
  EXPECT_EQ(Take(), "");
  // Made narrower, wider, and narrower than a bar.
  for (const int now : {30, 60, 5}) {
    columns = now;
    progress.Update(At(1000));
    EXPECT_EQ(Take().size(), std::string("\r\x1b[K").size() + static_cast<std::size_t>(now) - 1);
  }
  line_.End();
  EXPECT_EQ(Take(), "\n");
}

TEST_F(ProgressTest, UsesColorOnlyWhenAsked) {
  Progress progress = Make({.terminal = true, .color = true, .columns = [] { return 40; }});
  progress.Update(At(500));
  EXPECT_THAT(Take(), StartsWith("\r\x1b[32m["));
}

TEST(FormatDuration, PrintsHoursAndDays) {
  EXPECT_EQ(FormatDuration(0), "0:00:00");
  EXPECT_EQ(FormatDuration(2527.4), "0:42:07");
  EXPECT_EQ(FormatDuration(86399), "23:59:59");
  EXPECT_EQ(FormatDuration(2 * 86400 + 3 * 3600 + 4 * 60 + 5), "2d 03:04:05");
  EXPECT_EQ(FormatDuration(-1), "?");
  EXPECT_EQ(FormatDuration(std::numeric_limits<double>::quiet_NaN()), "?");
  EXPECT_EQ(FormatDuration(std::numeric_limits<double>::infinity()), "?");
}

}  // namespace
}  // namespace trainer
