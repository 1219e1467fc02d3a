// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/heartbeat.h"

#include <poll.h>
#include <unistd.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "launcher/base/error.h"
#include "launcher/features/features.h"
#include "launcher/supervise/supervisor.h"
#include "tests/launcher/features/fake_watched_job.h"
#include "tests/launcher/supervise/supervisor_fixture.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

TEST(HeartbeatClock, CountsTimeInWhichThisProcessRanAndFilesWereSeen) {
  struct Part {
    int times;
    double seconds;
    bool no_answers;
  };
  struct Row {
    const char* what;
    std::vector<Part> parts;
    double counted;
  };
  // A tick has 5 s.
  for (const Row& row : {Row{"between two passes", {{10, 5, false}}, 50},
                         {"a pass of 40 s over many files", {{8, 5, false}}, 40},
                         {"a file that answers after 8 s", {{1, 5, true}, {1, 3, false}}, 8},
                         {"stopped for an hour", {{1, 3600, false}}, 10},
                         {"stopped for an hour, in a pass", {{1, 3600, true}, {1, 5, false}}, 10},
                         {"a file system that hangs", {{720, 5, true}, {1, 1, false}}, 10},
                         {"one that goes on hanging", {{720, 5, true}}, 0},
                         {"one that hangs twice",
                          {{20, 5, true}, {1, 1, false}, {20, 5, true}, {2, 1, false}},
                          21}}) {
    HeartbeatClock clock(5);
    double counted = 0;
    for (const Part& part : row.parts) {
      for (int i = 0; i < part.times; ++i) counted += clock.Count(part.seconds, part.no_answers);
    }
    EXPECT_EQ(counted, row.counted) << row.what;
  }
}

// Looks at the file now.
void Look(HeartbeatMonitor* heartbeats, int index, std::optional<std::int64_t> time) {
  heartbeats->Look(index, time, heartbeats->elapsed());
}

TEST(HeartbeatMonitor, AFileIsLateThatHasNotChangedForTheLimit) {
  HeartbeatMonitor heartbeats(1, 10);
  Look(&heartbeats, 0, 5);
  Look(&heartbeats, 0, 6);
  heartbeats.Pass(9.5);
  Look(&heartbeats, 0, 6);
  EXPECT_THAT(heartbeats.Late(), IsEmpty());
  heartbeats.Pass(0.5);
  Look(&heartbeats, 0, 6);
  EXPECT_THAT(heartbeats.Late(), ElementsAre(0));
  EXPECT_EQ(heartbeats.SilenceOf(0), 10);
  Look(&heartbeats, 0, 4);  // the clock of a file server may go back
  EXPECT_THAT(heartbeats.Late(), IsEmpty());
}

TEST(HeartbeatMonitor, WhatHasPassedSinceAFileWasAskedForDoesNotCount) {
  HeartbeatMonitor heartbeats(2, 10);
  for (const int index : {0, 1}) {
    Look(&heartbeats, index, 5);
    Look(&heartbeats, index, 6);
  }
  heartbeats.Pass(9);
  heartbeats.Look(0, 6, heartbeats.elapsed());
  const double as_of = heartbeats.elapsed();
  heartbeats.Pass(50);  // the other file's answer takes its time, and the first is not asked for
  heartbeats.Look(1, 6, as_of);
  EXPECT_THAT(heartbeats.Late(), IsEmpty());
  heartbeats.Look(1, 7, as_of);  // changed since it was asked for
  EXPECT_EQ(heartbeats.SilenceOf(1), 0);
  heartbeats.Look(0, 6, heartbeats.elapsed());
  EXPECT_THAT(heartbeats.Late(), ElementsAre(0));
}

TEST(HeartbeatMonitor, TheFirstChangeHasTenTimesAsLong) {
  HeartbeatMonitor heartbeats(3, 10);
  for (const auto& [index, time] : {std::pair(0, 5), std::pair(1, 5)}) {
    Look(&heartbeats, index, time);
  }
  Look(&heartbeats, 2, std::nullopt);
  heartbeats.Pass(50);
  Look(&heartbeats, 0, 5);  // an earlier run has left it
  Look(&heartbeats, 1, 7);
  Look(&heartbeats, 2, 7);  // made by this run
  heartbeats.Pass(10);
  for (const auto& [index, time] : {std::pair(0, 5), std::pair(1, 7), std::pair(2, 7)}) {
    Look(&heartbeats, index, time);
  }
  EXPECT_THAT(heartbeats.Late(), ElementsAre(1, 2));
  Look(&heartbeats, 1, 8);
  Look(&heartbeats, 2, 8);
  heartbeats.Pass(40);
  for (const auto& [index, time] : {std::pair(0, 5), std::pair(1, 8), std::pair(2, 8)}) {
    Look(&heartbeats, index, time);
  }
  EXPECT_THAT(heartbeats.Late(), ElementsAre(0, 1, 2));  // the longest first
}

TEST(HeartbeatMonitor, AFileThatIsGoneDoesNotBeat) {
  HeartbeatMonitor heartbeats(1, 10);
  Look(&heartbeats, 0, 5);
  Look(&heartbeats, 0, 6);
  heartbeats.Pass(6);
  Look(&heartbeats, 0, std::nullopt);
  heartbeats.Pass(6);
  Look(&heartbeats, 0, std::nullopt);
  EXPECT_THAT(heartbeats.Late(), ElementsAre(0));
  Look(&heartbeats, 0, 6);  // it could not be seen for a while
  EXPECT_THAT(heartbeats.Late(), ElementsAre(0));
}

TEST(HeartbeatMonitor, AFileThatIsForgottenIsNeverLate) {
  HeartbeatMonitor heartbeats(2, 10);
  heartbeats.Forget(0);
  heartbeats.Pass(1000);
  for (const int index : {0, 1}) Look(&heartbeats, index, std::nullopt);
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

// One thread would need 2 s for a pass.
TEST_F(HeartbeatTest, SeesThatManyRanksHangOnASlowFileSystem) {
  // Of threads that may outlive this test.
  struct Looks {
    std::mutex mutex;
    std::map<std::string, int> of_path;
  };
  const auto looks = std::make_shared<Looks>();
  const auto time_of = [looks](const std::string& path) -> std::optional<std::int64_t> {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::lock_guard lock(looks->mutex);
    return std::min(2, ++looks->of_path[path]);  // it changes once
  };
  Heartbeat heartbeat({.pattern = directory_ + "/beat.%r",
                       .limit = std::chrono::seconds(1),
                       .ranks = 2000,
                       .time_of = time_of});
  FakeWatchedJob job;
  const auto start = std::chrono::steady_clock::now();
  heartbeat.OnLaunch(job);
  ASSERT_TRUE(IsReadable(heartbeat, kLong));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(6));
  EXPECT_THAT(job.At(0, heartbeat), MatchesRegex("it hangs: rank [0-9]+ on .*"));
}

TEST_F(HeartbeatTest, SaysNothingWhereTheFileSystemDoesNotAnswer) {
  // Of threads that may outlive this test.
  struct Looks {
    std::mutex mutex;
    std::condition_variable answers;
    bool may_answer = false;
    int threads = 0;
  };
  const auto looks = std::make_shared<Looks>();
  Heartbeat heartbeat({.pattern = directory_ + "/beat.%r",
                       .limit = std::chrono::milliseconds(20),
                       .ranks = 100,
                       .time_of = [looks](const std::string&) -> std::optional<std::int64_t> {
                         std::unique_lock lock(looks->mutex);
                         ++looks->threads;
                         looks->answers.wait(lock, [&] { return looks->may_answer; });
                         return std::nullopt;
                       }});
  FakeWatchedJob job;
  heartbeat.OnLaunch(job);
  EXPECT_FALSE(IsReadable(heartbeat, std::chrono::milliseconds(1000)));
  const std::lock_guard lock(looks->mutex);
  EXPECT_EQ(looks->threads, 16);  // no more than that wait
  looks->may_answer = true;
  looks->answers.notify_all();
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
  job.are_ranks_held = true;
  EXPECT_EQ(job.At(0, heartbeat), "");
  ASSERT_TRUE(IsReadable(heartbeat, kLong));  // once more
  // After somebody was attached to a rank the time begins anew.
  job.are_ranks_held = false;
  heartbeat.OnDetach(job);
  EXPECT_EQ(job.At(0, heartbeat), "");
  ASSERT_TRUE(IsReadable(heartbeat, kLong));
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
