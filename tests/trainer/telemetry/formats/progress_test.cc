// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/progress.h"

#include <stdlib.h>
#include <time.h>

#include "tests/support/test.h"

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
  // After `steps` of them.
  static StepMetrics At(std::int64_t steps) {
    return {.step = steps - 1,
            .total_steps = 1000,
            .epoch = 2,
            .epochs = 50,
            .images_per_second = 365.14,
            .total_loss = 2.41409,
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
  progress.Step(At(100));
  EXPECT_EQ(Take(),
            "2020-11-17T15:40:53+00:00 epoch 3/50 step 100/1000 365.1 images/s loss 2.4141 "
            "lr 0.1024 eta ?\n");
  now_ += std::chrono::seconds(9);
  progress.Step(At(109));
  EXPECT_EQ(Take(), "");
  now_ += std::chrono::seconds(1);
  progress.Step(At(110));  // ten steps took ten seconds
  EXPECT_EQ(Take(),
            "2020-11-17T15:41:03+00:00 epoch 3/50 step 110/1000 365.1 images/s loss 2.4141 "
            "lr 0.1024 eta 0:14:50\n");
}

TEST_F(ProgressTest, GoesOnWhereTheClockIsSetBack) {
  Progress progress = Make({});
  progress.Step(At(100));
  Take();
  now_ -= std::chrono::hours(1);
  progress.Step(At(101));
  EXPECT_THAT(Take(), HasSubstr("step 101/1000"));
  progress.Step(At(102));
  EXPECT_EQ(Take(), "");
}

TEST_F(ProgressTest, AlwaysPrintsTheLastStep) {
  Progress progress = Make({});
  progress.Step(At(999));
  Take();
  StepMetrics last = At(1000);
  last.epoch = 50;
  progress.Step(last);
  EXPECT_THAT(Take(), HasSubstr("epoch 50/50 step 1000/1000"));
}

TEST_F(ProgressTest, ShowsNoEpochWhenTheRunIsCountedInSteps) {
  Progress progress = Make({});
  StepMetrics state = At(1);
  state.epochs = 0;
  progress.Step(state);
  EXPECT_THAT(Take(), HasSubstr("+00:00 step 1/1000 "));
}

TEST_F(ProgressTest, NeverWritesACarriageReturnToAFile) {
  Progress progress = Make({.interval_seconds = 0});
  for (int step = 1; step <= 1000; ++step) progress.Step(At(step));
  line_.End();
  EXPECT_THAT(out_.str(), Not(HasSubstr("\r")));
  EXPECT_THAT(out_.str(), Not(HasSubstr("\x1b")));
}

TEST_F(ProgressTest, RedrawsOnATerminal) {
  int columns = 40;
  Progress progress = Make({.terminal = true, .columns = [&] { return columns; }});
  progress.Step(At(500));
  EXPECT_EQ(Take(), "\r[======>     ] epoch 3/50 step 500/1000\x1b[K");
  progress.Step(At(501));
  EXPECT_EQ(Take(), "");
  // Made narrower, wider, and narrower than a bar.
  for (const int now : {30, 60, 5}) {
    columns = now;
    progress.Step(At(1000));
    EXPECT_EQ(Take().size(), std::string("\r\x1b[K").size() + static_cast<std::size_t>(now) - 1);
  }
  line_.End();
  EXPECT_EQ(Take(), "\n");
}

TEST_F(ProgressTest, UsesColorOnlyWhenAsked) {
  Progress progress = Make({.terminal = true, .color = true, .columns = [] { return 40; }});
  progress.Step(At(500));
  EXPECT_THAT(Take(), StartsWith("\r\x1b[32m["));
}

}  // namespace
}  // namespace trainer
