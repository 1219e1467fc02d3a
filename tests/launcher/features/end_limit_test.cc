// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/end_limit.h"

#include "launcher/features/features.h"
#include "tests/launcher/features/fake_watched_job.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using ::testing::ContainsRegex;
using Event = JobWatcher::Event;

class EndLimitTest : public testing::Test {
 protected:
  EndLimitTest() { job_.started_ranks = {0, 1, 2}; }

  std::string Ends(int rank, int ms, int code = 0) {
    job_.ended_ranks.insert(rank);
    if (code != 0) job_.codes[rank] = code;
    return job_.At(ms, limit_, Event::kEnd);
  }

  FakeWatchedJob job_{{"n1", "n2", "n2"}};
  EndLimit limit_{std::chrono::milliseconds(100)};
};

TEST_F(EndLimitTest, BeginsWithTheFirstRankThatEnds) {
  EXPECT_EQ(limit_.deadline(), std::nullopt);
  EXPECT_EQ(Ends(1, 10), "");
  EXPECT_EQ(Ends(0, 100), "");
  EXPECT_EQ(job_.At(109, limit_), "");
  EXPECT_EQ(job_.At(110, limit_),
            "its end hung: rank 2 on n2 did not end in time after the other ranks had "
            "(--end-limit)");
  EXPECT_TRUE(job_.was_killed);
  EXPECT_EQ(job_.end->exit_code, 69);
  EXPECT_EQ(job_.end->kind, OwnEnd::Kind::kHung);
}

TEST_F(EndLimitTest, AnEarlyStopKeepsItsCode) {
  Ends(0, 0, 75);
  EXPECT_THAT(job_.At(100, limit_), HasSubstr("rank 1 on n2, rank 2 on n2 did not end"));
  EXPECT_EQ(job_.end->exit_code, 75);
}

TEST_F(EndLimitTest, AFailureAfterARequestToStopCountsMoreThanAnEarlyStop) {
  job_.is_stop_requested = true;
  Ends(0, 0, 75);
  Ends(1, 10, 3);
  EXPECT_THAT(job_.At(100, limit_), HasSubstr("rank 2 on n2 did not end"));
  EXPECT_EQ(job_.end->exit_code, 3);
}

TEST_F(EndLimitTest, IsNoneOnceAllHaveEndedOrBeforeAllHaveStarted) {
  for (const int rank : {0, 1, 2}) Ends(rank, 10);
  EXPECT_EQ(limit_.deadline(), std::nullopt);
  job_.started_ranks = {0};
  job_.ended_ranks = {0};
  EXPECT_EQ(job_.At(20, limit_, Event::kEnd), "");
  EXPECT_EQ(job_.At(1000, limit_), "");
  job_.started_ranks = {0, 1, 2};
  EXPECT_EQ(job_.At(1000, limit_, Event::kStart), "");
  EXPECT_NE(job_.At(1100, limit_), "");
}

TEST_F(EndLimitTest, BeginsAnewWhereRanksCouldNotGoOn) {
  Ends(0, 0);
  job_.are_ranks_held = true;
  EXPECT_EQ(job_.At(100, limit_), "");
  job_.are_ranks_held = false;
  EXPECT_EQ(job_.At(199, limit_), "");
  limit_.OnContinue(job_);
  EXPECT_EQ(job_.At(298, limit_), "");
  EXPECT_NE(job_.At(299, limit_), "");
}

TEST_F(EndLimitTest, IsNoneOnceTheJobEnds) {
  Ends(0, 0);
  job_.is_running = false;
  EXPECT_EQ(job_.At(100, limit_), "");
  EXPECT_EQ(limit_.deadline(), std::nullopt);
}

TEST(EndLimitOption, IsAMinuteForDdltraind) {
  const auto shown = [](const std::vector<std::string>& arguments) {
    return SettingsText(MergeSettings(ParseOptions(arguments), SiteConfig(), {}));
  };
  EXPECT_THAT(shown({"./train"}), ContainsRegex("end_limit: 0 +# default"));
  EXPECT_THAT(shown({"numactl", "-l", "/opt/bin/ddltraind", "--mode=evaluate"}),
              ContainsRegex("end_limit: 60 +# default"));
  EXPECT_THAT(shown({"--end-limit=5", "ddltraind"}), ContainsRegex("end_limit: 5 +# command line"));
  EXPECT_THAT(shown({"--end-limit=0", "ddltraind"}), HasSubstr("end_limit: 0 "));
}

}  // namespace
}  // namespace launcher
