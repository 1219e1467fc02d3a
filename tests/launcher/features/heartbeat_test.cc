// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/heartbeat.h"

#include <poll.h>
#include <unistd.h>

#include "launcher/base/error.h"
#include "launcher/features/features.h"
#include "launcher/supervise/supervisor.h"
#include "tests/launcher/features/fake_watched_job.h"
#include "tests/launcher/supervise/supervisor_fixture.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

TEST(HeartbeatMonitor, AFileIsLateThatHasNotChangedForTheLimit) {
  HeartbeatMonitor heartbeats(1, 10);
  heartbeats.Look(0, 5);
  heartbeats.Look(0, 6);
  heartbeats.Pass(9.5);
  heartbeats.Look(0, 6);
  EXPECT_THAT(heartbeats.Late(), IsEmpty());
  heartbeats.Pass(0.5);
  EXPECT_THAT(heartbeats.Late(), ElementsAre(0));
  EXPECT_EQ(heartbeats.SilenceOf(0), 10);
  heartbeats.Look(0, 4);  // the clock of a file server may go back
  EXPECT_THAT(heartbeats.Late(), IsEmpty());
}

TEST(HeartbeatMonitor, TheFirstChangeHasTenTimesAsLong) {
  HeartbeatMonitor heartbeats(3, 10);
  for (const auto& [index, time] : {std::pair(0, 5), std::pair(1, 5)}) heartbeats.Look(index, time);
  heartbeats.Look(2, std::nullopt);
  heartbeats.Pass(50);
  heartbeats.Look(0, 5);  // an earlier run has left it
  heartbeats.Look(1, 7);
  heartbeats.Look(2, 7);  // made by this run
  heartbeats.Pass(10);
  EXPECT_THAT(heartbeats.Late(), ElementsAre(1, 2));
  heartbeats.Look(1, 8);
  heartbeats.Look(2, 8);
  heartbeats.Pass(40);
  EXPECT_THAT(heartbeats.Late(), ElementsAre(0, 1, 2));  // the longest first
}

TEST(HeartbeatMonitor, AFileThatIsGoneDoesNotBeat) {
  HeartbeatMonitor heartbeats(1, 10);
  heartbeats.Look(0, 5);
  heartbeats.Look(0, 6);
  heartbeats.Pass(6);
  heartbeats.Look(0, std::nullopt);
  heartbeats.Pass(6);
  heartbeats.Look(0, std::nullopt);
  EXPECT_THAT(heartbeats.Late(), ElementsAre(0));
  heartbeats.Look(0, 6);  // it could not be seen for a while
  EXPECT_THAT(heartbeats.Late(), ElementsAre(0));
}

TEST(HeartbeatMonitor, AFileThatIsForgottenIsNeverLate) {
  HeartbeatMonitor heartbeats(2, 10);
  heartbeats.Forget(0);
  heartbeats.Pass(1000);
  EXPECT_THAT(heartbeats.Late(), ElementsAre(1));
}

constexpr std::chrono::milliseconds kLimit{300};

bool IsReadable(const Heartbeat& heartbeat, std::chrono::milliseconds timeout) {
  pollfd ready = {heartbeat.fd(), POLLIN, 0};
  return poll(&ready, 1, static_cast<int>(timeout.count())) == 1;
}

TEST(HeartbeatFile, HasTheRankWhereItsMarkIs) {
  EXPECT_EQ(HeartbeatFile("/scratch/beat.%r", 12), "/scratch/beat.12");
  EXPECT_EQ(HeartbeatFile("/scratch/%r/beat%", 0), "/scratch/0/beat%");
  EXPECT_EQ(HeartbeatFile("/scratch/beat", 12), "/scratch/beat");
}

class HeartbeatTest : public SupervisorTest {};

TEST_F(HeartbeatTest, NamesTheRankThatIsLate) {
  Heartbeat heartbeat({.pattern = directory_ + "/beat.%r", .limit = kLimit, .ranks = 2});
  EXPECT_EQ(heartbeat.fd(), -1);
  FakeWatchedJob job;
  heartbeat.OnLaunch(job);
  // Rank 0 touches its file once, and so has less time than rank 1, which never does.
  while (!IsReadable(heartbeat, std::chrono::milliseconds(50))) {
    EXPECT_EQ(job.At(0, heartbeat), "");
    if (!std::filesystem::exists(directory_ + "/beat.0")) {
      std::ofstream(directory_ + "/beat.0") << "1";
    }
  }
  JobStatus status;
  status.ranks.resize(2);
  heartbeat.AddTo(&status);
  EXPECT_GT(status.ranks[1].silence, status.ranks[0].silence);
  EXPECT_THAT(job.At(0, heartbeat),
              MatchesRegex("it hangs: rank 0 on n1 has not touched .*/beat\\.0 for [0-9]+ s "
                           "\\(--hang-after\\)"));
  EXPECT_FALSE(job.was_killed);
  EXPECT_EQ(job.end->exit_code, 70);
  EXPECT_EQ(job.end->kind, OwnEnd::Kind::kHung);
}

TEST_F(HeartbeatTest, PassesOverRanksThatHaveEnded) {
  Heartbeat heartbeat(
      {.pattern = directory_ + "/beat.%r", .limit = std::chrono::milliseconds(20), .ranks = 2});
  FakeWatchedJob job;
  job.ended_ranks = {0, 1};
  heartbeat.OnLaunch(job);
  ASSERT_TRUE(IsReadable(heartbeat, kLong));
  EXPECT_EQ(job.At(0, heartbeat), "");
  EXPECT_FALSE(IsReadable(heartbeat, kLimit));
}

TEST_F(HeartbeatTest, NamesNoRankWhereTheFileIsThatOfAll) {
  Heartbeat heartbeat(
      {.pattern = directory_ + "/beat", .limit = std::chrono::milliseconds(20), .ranks = 2});
  FakeWatchedJob job;
  job.ended_ranks = {0};
  heartbeat.OnLaunch(job);
  ASSERT_TRUE(IsReadable(heartbeat, kLong));
  EXPECT_THAT(job.At(0, heartbeat),
              MatchesRegex("it hangs: no rank has touched .*/beat for [0-9]+ s .*"));
}

TEST_F(HeartbeatTest, IsNotAskedForWhereRanksCannotGoOnOrEnd) {
  Heartbeat heartbeat(
      {.pattern = directory_ + "/beat", .limit = std::chrono::milliseconds(20), .ranks = 2});
  FakeWatchedJob job;
  heartbeat.OnLaunch(job);
  ASSERT_TRUE(IsReadable(heartbeat, kLong));
  job.is_output_held = true;
  EXPECT_EQ(job.At(0, heartbeat), "");
  ASSERT_TRUE(IsReadable(heartbeat, kLong));  // once more
  job.is_stop_requested = true;
  EXPECT_EQ(job.At(0, heartbeat), "");
  EXPECT_EQ(heartbeat.fd(), -1);
}

TEST(HeartbeatOption, IsAnAbsolutePathThatRanksAreTold) {
  const auto merged = [](const std::vector<std::string>& arguments) {
    return MergeSettings(ParseOptions(arguments), SiteConfig(), {});
  };
  const Settings settings = merged({"--heartbeat=beats/%r", "--hang-after=20", "./train"});
  EXPECT_THAT(settings.rank_settings.at("DDLRUN_HEARTBEAT"), MatchesRegex("/.*/beats/%r"));
  EXPECT_THAT(SettingsText(settings), ::testing::ContainsRegex("hang_after: 20 +# command line"));
  EXPECT_THAT(SettingsText(merged({"--heartbeat=/b"})),
              ::testing::ContainsRegex("hang_after: 300 +# default"));
  EXPECT_FALSE(merged({"./train"}).rank_settings.contains("DDLRUN_HEARTBEAT"));
  EXPECT_THROW(merged({"--hang-after=20", "./train"}), LaunchError);
}

TEST_F(HeartbeatTest, EndsAJobThatHangs) {
  // The limit is many beats long, since a busy machine may keep a rank waiting.
  const std::string heartbeats = "for i in $(seq 12); do echo > beat; sleep 0.1; done; ";
  const auto run = [&](const std::string& script) {
    ChildCommand command;
    command.rank = 0;
    command.argv = {"/bin/sh", "-c", "cd '" + directory_ + "'; " + script};
    command.environment = {"PATH=/usr/bin:/bin"};
    SupervisorOptions options;
    options.grace = std::chrono::milliseconds(100);
    options.hosts = {"n1"};
    options.watchers.push_back(std::make_unique<Heartbeat>(
        HeartbeatOptions{.pattern = directory_ + "/beat", .limit = std::chrono::seconds(2)}));
    SignalRelay signals;
    return Supervise({command}, options, signals);
  };
  const JobResult well = run(heartbeats + heartbeats);
  EXPECT_EQ(well.exit_code, 0);
  EXPECT_FALSE(well.own_end);
  const JobResult hung = run(heartbeats + "trap '' TERM; while :; do sleep 1; done");
  EXPECT_EQ(hung.exit_code, 70);
  EXPECT_FALSE(hung.failure);
  EXPECT_THAT(hung.own_end.value().text,
              MatchesRegex("it hangs: no rank has touched .*/beat for [0-9]+ s .*"));
  // After an order to stop the ranks may take their time.
  const JobResult stopped = run("trap '' TERM; " + heartbeats + ": > ready; " +
                                SignalWhenReady("TERM") + "sleep 3; exit 75");
  EXPECT_EQ(stopped.exit_code, 75);
}

}  // namespace

}  // namespace launcher
