// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/start_limit.h"

#include "tests/launcher/features/fake_watched_job.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using Event = JobWatcher::Event;

// Of four ranks on three nodes; what is launched at 0 may take 100 ms.
struct Start {
  explicit Start(const char* launcher = "srun") : job({"n1", "n2", "n2", "n3"}, launcher) {
    limit.OnLaunch(job);
  }

  std::string Starts(const std::set<int>& ranks, int ms) {
    job.started_ranks.insert(ranks.begin(), ranks.end());
    return job.At(ms, limit, Event::kStart);
  }

  FakeWatchedJob job;
  StartLimit limit{std::chrono::milliseconds(100)};
};

TEST(StartLimit, NamesTheNodesThatHaveNotStarted) {
  Start start;
  EXPECT_EQ(start.Starts({0, 3}, 50), "");
  EXPECT_EQ(start.job.At(99, start.limit), "");
  EXPECT_EQ(start.job.At(100, start.limit),
            "its start hung: on n2 not all programs ran when the time for that was over "
            "(start_seconds of the site file)");
  EXPECT_TRUE(start.job.was_killed);
  EXPECT_EQ(start.job.end->exit_code, 69);
  EXPECT_EQ(start.job.end->kind, OwnEnd::Kind::kStartHung);
  JobResult result;
  start.limit.OnEnd(start.job, &result);
  EXPECT_THAT(result.silent_nodes, ElementsAre("n2"));
}

TEST(StartLimit, IsNoneOnceAllHaveStartedOrTheJobEnds) {
  Start all;
  EXPECT_EQ(all.Starts({0, 1, 2, 3}, 50), "");
  EXPECT_EQ(all.limit.deadline(), std::nullopt);
  EXPECT_EQ(all.job.At(1000, all.limit), "");
  Start ending;
  ending.job.is_running = false;
  EXPECT_EQ(ending.job.At(1000, ending.limit), "");
  EXPECT_EQ(ending.limit.deadline(), std::nullopt);
  const Start local("local");  // which starts them itself
  EXPECT_EQ(local.limit.deadline(), std::nullopt);
}

TEST(StartLimit, DoesNotCountTheWaitForResources) {
  Start start;
  EXPECT_EQ(start.job.At(50, start.limit, Event::kWaiting), "");
  EXPECT_EQ(start.job.At(5000, start.limit), "");
  start.limit.OnContinue(start.job);
  EXPECT_EQ(start.limit.deadline(), std::nullopt);
  EXPECT_EQ(start.job.At(6000, start.limit, Event::kGranted), "");
  EXPECT_EQ(start.job.At(6099, start.limit), "");
  EXPECT_NE(start.job.At(6100, start.limit), "");
}

TEST(StartLimit, BeginsAnewWhereNothingCouldGoOn) {
  Start start;
  start.job.are_ranks_held = true;
  EXPECT_EQ(start.job.At(100, start.limit), "");
  start.job.are_ranks_held = false;
  EXPECT_EQ(start.job.At(199, start.limit), "");
  start.limit.OnContinue(start.job);
  EXPECT_EQ(start.job.At(298, start.limit), "");
  EXPECT_NE(start.job.At(299, start.limit), "");
}

TEST(StartLimit, IsNoneForAnMpirunThroughWhichNoShimIsHeard) {
  Start unheard("mpirun");
  EXPECT_EQ(unheard.job.At(100, unheard.limit), "");
  EXPECT_EQ(unheard.limit.deadline(), std::nullopt);
  Start heard("mpirun");
  EXPECT_EQ(heard.Starts({0}, 50), "");
  EXPECT_NE(heard.job.At(100, heard.limit), "");
  JobResult result;
  heard.limit.OnEnd(heard.job, &result);
  EXPECT_THAT(result.silent_nodes, IsEmpty());  // which are for steps of srun
  Start childless("mpirun");
  childless.job.may_have_started_any = false;
  EXPECT_NE(childless.job.At(100, childless.limit), "");
}

TEST(NodesNotStarted, AreNamedOnceInTheOrderOfTheirRanks) {
  const std::vector<std::string> hosts = {"n2", "n1", "n2", "n3", "n1"};
  EXPECT_THAT(NodesNotStarted(hosts, {}), ElementsAre("n2", "n1", "n3"));
  EXPECT_THAT(NodesNotStarted(hosts, {0, 1, 3}), ElementsAre("n2", "n1"));
  EXPECT_THAT(NodesNotStarted(hosts, {0, 1, 2, 3, 4}), IsEmpty());
}

}  // namespace
}  // namespace launcher
