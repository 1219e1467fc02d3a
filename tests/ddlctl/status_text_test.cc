// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/status_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/control/sample_status.h"

namespace ddlctl {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(StatusText, SaysEverything) {
  EXPECT_EQ(StatusText(trainer::SampleStatus()),
            "state          training\n"
            "progress       step 1200/25000, epoch 3/50\n"
            "speed          365.1 images/s, 700.0 ms a step\n"
            "own time, median       550.0 ms  of 2 ranks; >: slowest\n"
            "  rank 0, gpu025       550.0 ms    +0 %  data  2 %  GPU 98 %  1980 MHz  61 C\n"
            "> rank 1, gpu026       688.0 ms   +25 %  data 40 %\n"
            "loss           2.4141\n"
            "eta            0:42:07\n"
            "checkpoint     step 1000\n"
            "display_every  10\n"
            "asked for      pause, checkpoint\n"
            "ranks          2\n"
            "rank 0         process 4711 on gpu025, job 123\n"
            "version        ddltraind 0.1.0\n");
}

TEST(StatusText, SaysWhatIsNotKnown) {
  trainer::RunStatus status;
  status.times.step = trainer::RunStatus::kUnknown;
  const std::string text = StatusText(status);
  EXPECT_THAT(text, HasSubstr("speed          ? images/s, ? ms a step\n"));
  EXPECT_THAT(text, HasSubstr("loss           ?\neta            ?\ncheckpoint     none\n"));
  EXPECT_THAT(text, HasSubstr("progress       step 0/0\n"));
  EXPECT_THAT(text, Not(HasSubstr("job")));
  EXPECT_THAT(text, Not(HasSubstr("asked for")));
}

TEST(StatusLine, SaysWhatChanges) {
  trainer::RunStatus status = trainer::SampleStatus();
  EXPECT_EQ(StatusLine(status),
            "training step 1200/25000 epoch 3/50 365.1 images/s loss 2.4141 eta 0:42:07 "
            "checkpoint 1000 slowest rank 1 on gpu026 +25 % asked for pause, checkpoint");
  status.asked.clear();
  status.loads.clear();
  status.epochs = 0;
  status.checkpoint_step = -1;
  EXPECT_EQ(StatusLine(status),
            "training step 1200/25000 365.1 images/s loss 2.4141 eta 0:42:07 checkpoint none");
}

TEST(EpochText, StaysAtTheLastOneAtTheEnd) {
  trainer::RunStatus status = trainer::SampleStatus();
  status.epoch = 50;
  EXPECT_EQ(EpochText(status), "epoch 50/50");
}

TEST(Harmless, MovesNoCursor) { EXPECT_EQ(Harmless("a b~\x1b[2J\n\x7f\xc3"), "a b~?[2J???"); }

}  // namespace
}  // namespace ddlctl
