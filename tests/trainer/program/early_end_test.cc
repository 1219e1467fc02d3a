// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/early_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "tests/trainer/temporary_folder.h"
#include "trainer/comm/single.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kNow = 1'795'330'000;  // seconds since 1970

class EarlyEndTest : public testing::Test {
 protected:
  EarlyEndTest() {
    options_.mode = RunMode::kTrain;
    options_.results_dir = folder_.path();
  }
  std::unique_ptr<RunRequests> Make(const std::optional<std::string>& end_time) {
    const EnvironmentLookup get = [&](const std::string& name) {
      EXPECT_EQ(name, "SLURM_JOB_END_TIME");
      return end_time;
    };
    const WallClock clock = [] { return TimePoint(std::chrono::seconds(kNow)); };
    return MakeRunRequests(options_, get, clock, MakeLogger(log_, 0, "info"));
  }
  int End(const StopCause& cause) {
    const auto alone = MakeSingleCommunicator();
    return EndStopped(options_, 7, cause, *alone, MakeLogger(log_, 0, "info"));
  }

  const TemporaryFolder folder_;
  Options options_;
  std::ostringstream log_;
};

TEST_F(EarlyEndTest, OutsideSlurmNoTimeIsWatchedAndNothingIsSaid) {
  const auto requests = Make({});
  ASSERT_NE(requests, nullptr);
  EXPECT_FALSE(requests->Look().stop);
  EXPECT_EQ(log_.str(), "");
}

TEST_F(EarlyEndTest, StopsAsLongBeforeTheEndAsItIsTold) {
  options_.stop_margin = "120";
  EXPECT_FALSE(Make(std::to_string(kNow + 121))->Look().stop);
  EXPECT_TRUE(Make(std::to_string(kNow + 120))->Look().stop);
  options_.stop_margin = "auto";
  EXPECT_FALSE(Make(std::to_string(kNow + 120))->Look().stop);
  options_.stop_margin = "off";
  log_.str("");
  EXPECT_FALSE(Make(std::to_string(kNow + 1))->Look().stop);
  EXPECT_EQ(log_.str(), "");
}

TEST_F(EarlyEndTest, ATimeThatIsOverOrNoneIsSaidAndNotWatched) {
  EXPECT_FALSE(Make(std::to_string(kNow))->Look().stop);
  EXPECT_THAT(log_.str(), HasSubstr("warning: SLURM_JOB_END_TIME=1795330000 is over: the end of "
                                    "the job's time is not watched"));
  for (const char* text : {"", "tomorrow", "12x"}) {
    log_.str("");
    EXPECT_FALSE(Make(text)->Look().stop);
    EXPECT_THAT(log_.str(), HasSubstr("is no time in seconds since 1970"));
  }
}

TEST_F(EarlyEndTest, ModesThatKeepNoWeightsAreNotAskedForAny) {
  for (const RunMode mode : {RunMode::kEvaluate, RunMode::kPredict, RunMode::kTrainingBenchmark,
                             RunMode::kInferenceBenchmark}) {
    options_.mode = mode;
    EXPECT_EQ(Make(std::to_string(kNow + 1)), nullptr);
  }
}

TEST_F(EarlyEndTest, SaysWhatHasStoppedTheRunAndEndsWith75) {
  EXPECT_EQ(End({0, "by the file run/stop"}), EX_TEMPFAIL);
  EXPECT_THAT(log_.str(), HasSubstr("stopped by the file run/stop after step 7: give the same "
                                    "command again to go on"));
  EXPECT_EQ(End({15, "for the end of the job's time"}), EX_TEMPFAIL);
  EXPECT_THAT(log_.str(), HasSubstr("stopped by signal 15 after step 7"));
  options_.resume = false;
  End({15, ""});
  EXPECT_THAT(log_.str(), HasSubstr("without --resume=never"));
}

TEST_F(EarlyEndTest, ARunWithoutACheckpointEndsWithItsSignal) {
  options_.mode = RunMode::kEvaluate;
  EXPECT_EQ(End({10, ""}), 138);
  EXPECT_THAT(log_.str(), HasSubstr("--mode=evaluate writes no checkpoint"));
}

}  // namespace
}  // namespace trainer
